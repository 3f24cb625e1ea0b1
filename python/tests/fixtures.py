# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the committed modules are, and how to read them."""

from __future__ import annotations

import json
import lzma
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "test" / "fixtures"
TINY = ["mlp_tiny", "transformer_tiny", "gnmt_tiny"]
ALL = [*TINY, "mlp_small", "transformer_small", "gnmt_small", "gnmt_large"]


def text(name: str) -> str:
    plain = FOLDER / f"{name}.mlir"
    if plain.exists():
        return plain.read_text()
    return lzma.decompress((FOLDER / f"{name}.mlir.xz").read_bytes()).decode()


def reference(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.reference.json").read_text())
