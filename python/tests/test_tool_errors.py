# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is told of a tool that fails."""

import pytest

from baechi.compiling import tools


def test_a_signal_is_told(monkeypatch):
    monkeypatch.setattr(tools, "find", lambda name: "/bin/sh")
    with pytest.raises(
        tools.CompileError, match="(?s)^sh failed:\nsome words\nit was ended by SIGSEGV"
    ):
        tools.run("sh", "-c", "echo some words >&2; kill -SEGV $$")
