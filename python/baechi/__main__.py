# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m baechi`: what is installed, and where; the text that a report of an error needs."""

import argparse
import importlib.metadata
import os
import platform
from collections.abc import Iterator

import baechi
from baechi.compiling import caches, compiler, tools

_TOOLS = ("baechi-run", "baechi-opt", "baechi-place", "baechi-translate")
_PACKAGES = ("jax", "torch", "torch-mlir", "onnx", "numpy")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m baechi",
        description="Tells what is installed, and where.",
        epilog="To import a model: python -m baechi.importer --help",
    )
    parser.add_argument("--version", action="version", version=f"Baechi {baechi.__version__}")
    parser.parse_args(arguments)
    for name, value in _told():
        print(f"{name:18}{value}")
    return 0


def _told() -> Iterator[tuple[str, str]]:
    yield "Baechi", f"{baechi.__version__} in {baechi.__path__[0]}"
    yield "Python", f"{platform.python_version()} on {platform.platform()}"
    yield "processors", f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}"
    for package in _PACKAGES:
        yield package, _version(package)
    for tool in _TOOLS:
        yield tool, _place(tool)
    yield "baechi.place", _extension()
    yield "steps compile", _way()
    yield "kernels", str(caches.folder())
    for name in sorted(os.environ):
        if name.startswith("BAECHI_"):
            yield name, os.environ[name]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _place(tool: str) -> str:
    try:
        return str(tools.find(tool))
    except FileNotFoundError as error:
        return str(error)


def _extension() -> str:
    try:
        from baechi.graphs.native import _placement
    except ImportError as error:
        return f"cannot be loaded: {error}"
    return str(_placement.__file__)


def _way() -> str:
    try:
        return "in process" if compiler.is_in_process() else "in a process of their own"
    except (ValueError, FileNotFoundError) as error:
        return str(error)


if __name__ == "__main__":
    raise SystemExit(main())
