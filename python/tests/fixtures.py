# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the committed modules are, and how to read them."""

from __future__ import annotations

import json
import lzma
import pathlib
import re

import numpy as np

from baechi import init

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "test" / "fixtures"
MODELS = ["mlp", "transformer", "moe", "lstm", "gnmt", "convnet", "resnet", "inception"]
TINY = [f"{model}_tiny" for model in MODELS]
# Those that the system's compiler has done with in seconds, all in one function.
SHORT = [name for name in TINY if name.split("_")[0] not in ("moe", "resnet", "inception")]
ALL = [*TINY, "mlp_small", "transformer_small", "gnmt_small", "gnmt_large"]


def text(name: str) -> str:
    plain = FOLDER / f"{name}.mlir"
    if plain.exists():
        return plain.read_text()
    return lzma.decompress((FOLDER / f"{name}.mlir.xz").read_bytes()).decode()


def reference(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.reference.json").read_text())


def initial_values(name: str) -> list[np.ndarray]:
    """What the arguments of a fixture's step begin with, by their baechi.init."""
    return initial_values_of(text(name))


def initial_values_of(module: str) -> list[np.ndarray]:
    """The same of a module's text."""
    return [value_of(*found) for found in arguments_of(module)]


def arguments_of(module: str) -> list[tuple[str, str]]:
    """Each argument's type and the fields of its baechi.init, for value_of."""
    argument = r"%a(?:rg)?\d+: tensor<([^>]*)> \{[^%]*?baechi\.init = \{([^}]*)\}"
    return re.findall(argument, module)


def value_of(type_: str, fields: str) -> np.ndarray:
    *shape, element = type_.split("x")
    of = dict(re.findall(r"(\w+) = \"?([^\s\",]+)", fields))
    extents = tuple(map(int, shape))
    dtype = {"f32": "float32", "i32": "int32"}[element]
    number = float if dtype == "float32" else int
    if of["kind"] == "constant":
        return init.Constant(extents, dtype, number(of["value"])).value()
    kind = {"uniform": init.Uniform, "randint": init.RandInt}[of["kind"]]
    return kind(extents, dtype, number(of["low"]), number(of["high"]), int(of["seed"])).value()
