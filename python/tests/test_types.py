# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types, as users' checkers see them (the package has py.typed)."""

import ast
import inspect
import pathlib
import subprocess
import sys

import pytest

import baechi
from baechi.graphs.native import _placement

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKED = [
    "common",
    "pictures",
    "graphs",
    "compiling",
    "steps",
    "checking",
    "jax",
    "learned",
    "loops",
    "replicas",
]

pytest.importorskip("mypy")


def mypy(*arguments):
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_types_are_right_and_refuse_what_is_wrong(tmp_path):
    use = tmp_path / "use.py"
    use.write_text(
        "import baechi\n"
        "graph = baechi.Graph()\n"
        "graph.add('a', 1, outputs=[8])\n"
        "machine = baechi.Machine([baechi.Device('gpu0', 'cuda', 100)])\n"
        "placement = baechi.place(graph, machine, budget=0.5)\n"
        "step: int = placement.step_ns\n"
        "found = baechi.Evaluator({}, 'machine.json')([0])\n"
        "fits: bool = found.fits\n"
        "wrong: str = placement.step_ns\n"
        "baechi.place(graph)\n"
        "baechi.place(graph, machine, budget=None)\n"
    )
    done = mypy(use, *(ROOT / "python" / "baechi" / room for room in CHECKED))
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [int(line.split(":")[1]) for line in errors] == [9, 10, 11], done.stdout


def test_a_compiled_step_has_the_types_of_the_step(tmp_path):
    pytest.importorskip("jax")
    use = tmp_path / "use.py"
    use.write_text(
        "import baechi\n"
        "def step(x: float, n: int = 1) -> str: return ''\n"
        "fast = baechi.jit(step, machine='host:2')\n"
        "right: str = fast(1.0, n=2)\n"
        "wrong: int = fast(1.0)\n"
        "fast('x')\n"
        "@baechi.jit(static_argnums=1)\n"
        "def again(x: float, n: int) -> float: return x\n"
        "result: float = again(1.0, 2)\n"
        "again(1.0)\n"
        "report: str = again.report()\n"
        "baechi.jit(step, machines='host:2')\n"
    )
    errors = [line for line in mypy(use).stdout.splitlines() if ": error:" in line]
    assert sorted({int(line.split(":")[1]) for line in errors}) == [5, 6, 10, 12], errors


def test_the_stub_is_the_extension_s():
    tree = ast.parse((ROOT / "python" / "baechi" / "_placement.pyi").read_text())
    module = _placement

    def members(of):
        return {name for name in vars(of) if not name.startswith("_")}

    def declared(body):
        kinds = (ast.FunctionDef, ast.ClassDef)
        return {node.name: node for node in body if isinstance(node, kinds)}

    stub = declared(tree.body)
    assert set(stub) == members(module)
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef) and name != "PlacementError":
            methods = {m for m in declared(node.body) if not m.startswith("_")}
            assert methods == members(getattr(module, name)), name
    for name in ("place", "compare", "judge", "read_file"):
        words = getattr(module, name).__doc__.split("(", 1)[1].split(") ->")[0]
        given = [argument.split(":")[0].strip() for argument in words.split(", ")]
        assert given == [argument.arg for argument in stub[name].args.args], name


def test_everything_public_is_documented():
    for name in baechi.__all__:
        if name == "jit":
            continue
        public = getattr(baechi, name)
        assert inspect.getdoc(public), name
        for member, value in vars(public).items() if inspect.isclass(public) else ():
            if not member.startswith("_") and (callable(value) or hasattr(value, "fget")):
                assert inspect.getdoc(value), f"{name}.{member}"
