# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package imports, and says what is missing, where no framework is installed."""

import os
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Hides the frameworks from a fresh interpreter.
HIDE = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "torch", "torch_mlir", "onnx", "accelerate"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def run(program):
    return subprocess.run(
        [sys.executable, "-c", HIDE + program],
        capture_output=True,
        text=True,
        cwd=ROOT / "python",
    )


def test_the_package_imports():
    done = run(
        "import baechi, baechi.steps.program, baechi.commands.import_model;"
        "import baechi.importer.common.module"
    )
    assert done.returncode == 0, done.stderr


def test_what_is_missing_is_named():
    done = run("import baechi.torch")
    assert "baechi.torch needs the package 'torch': pip install '.[torch]'" in done.stderr
    done = run("import baechi.onnx")
    assert "baechi.onnx needs the package 'onnx': pip install '.[onnx]'" in done.stderr


def test_the_command_says_what_is_missing(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"")
    done = run(
        "from baechi.commands.import_model import main\n"
        f"sys.exit(main([{str(tmp_path / 'net.onnx')!r}, '-o', '-']))"
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "error: the Python package 'onnx' is missing; pip install '.[onnx]'" in done.stderr


def test_all_names_but_those_of_jax_are_there():
    done = run(
        "from baechi import *\nimport baechi\n"
        "print('place' in dir() or 'Graph' in dir(), 'jit' in dir(), baechi.__version__)\n"
        "assert set(baechi.__all__) <= set(dir(baechi)) and 'importlib' not in dir(baechi)\n"
        "baechi.jit"
    )
    assert done.stdout.startswith("True False 0.")
    assert "baechi.jit needs the package 'jax': install it with baechi's extra" in done.stderr
    assert "pip install '.[import]'" in done.stderr


def test_the_package_tells_of_itself(tmp_path):
    """`python -m baechi` is what one gives with a report: it works where nothing else does."""
    done = run("import runpy; sys.argv = ['x']; runpy.run_module('baechi', run_name='__main__')")
    assert done.returncode == 0, done.stderr
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert said["Python"].startswith(sys.version.split()[0])
    assert "baechi-run" in said and "kernels" in said
    module = [sys.executable, "-m", "baechi", "--version"]
    done = subprocess.run(module, capture_output=True, text=True, cwd=ROOT / "python")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert done.stdout == f"Baechi {version}\n"
    odd = {**os.environ, "BAECHI_TOOLS": str(tmp_path / "missing"), "BAECHI_COMPILER": "magic"}
    done = subprocess.run(module[:-1], capture_output=True, text=True, cwd=ROOT / "python", env=odd)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert "there is no such folder" in said["baechi-run"] and said["BAECHI_COMPILER"] == "magic"


def test_another_jax_is_named():
    # What JAX keeps to itself is elsewhere in another version.
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, jax\ndel jax._src.prng\nsys.modules['jax._src.prng'] = None\n"
            "import baechi\nbaechi.jit",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT / "python",
    )
    assert "baechi.jit cannot use JAX " in done.stderr
    assert "in a checkout by pip install '.[import]'" in done.stderr
