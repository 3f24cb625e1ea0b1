# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What rows of experiments were made of: another extension or framework is other code."""

import importlib.machinery
import importlib.metadata

import pytest

pytest.importorskip("jax")

import baechi  # noqa: E402
from baechi.experiments import resuming  # noqa: E402


def test_what_rows_are_made_of_is_all_code(tmp_path, monkeypatch):
    before = resuming.state_of_code([])
    assert before == resuming.state_of_code([])
    # Another version of a framework, or of none.
    versions = importlib.metadata.version
    for name in ("jax", "jaxlib", "torch-mlir"):
        with monkeypatch.context() as change:
            change.setattr(
                "importlib.metadata.version",
                lambda of, changed=name: "0.0.1" if of == changed else versions(of),
            )
            assert resuming.state_of_code([]) != before
    # Another extension module, and then other code in it.
    folder = tmp_path / "extensions"
    folder.mkdir()
    monkeypatch.setattr(baechi, "__path__", [*baechi.__path__, str(folder)])
    assert resuming.state_of_code([]) == before
    module = folder / f"_more{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    module.write_bytes(b"one")
    one = resuming.state_of_code([])
    module.write_bytes(b"two")
    assert len({before, one, resuming.state_of_code([])}) == 3
