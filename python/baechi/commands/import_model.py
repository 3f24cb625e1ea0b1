# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of the importer. See docs/import.md."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import lzma
import os
import pathlib
import sys
from collections.abc import Sequence

from baechi import models
from baechi.common import files
from baechi.importer.common.errors import ImportFailure
from baechi.importer.common.module import Argument
from baechi.models import configuration

_REFERENCE_SUFFIXES = (".npz", ".json")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m baechi.importer",
        description="Imports a JAX training step, a file of StableHLO or an ONNX model as an MLIR "
        "module of linalg on tensors.",
    )
    parser.add_argument(
        "model",
        help=f"one of {', '.join(models.NAMES)}; or PATH.py:FUNCTION, a function that "
        "returns (step, example_args, donate_argnums); or PATH.mlir, PATH.mlirbc of StableHLO; "
        "or PATH.onnx",
    )
    parser.add_argument("--preset", help="a named size of the model (default: tiny)")
    configuration.add_set(
        parser,
        "changes fields of the preset, gives FUNCTION its keyword arguments, or an ONNX "
        "model's named dimensions their sizes",
    )
    parser.add_argument(
        "-o", "--output", required=True, help="the .mlir or .mlir.xz file; - for stdout"
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="FILE",
        help="also runs the step in JAX: .npz for the arrays around the first step, "
        ".json for losses and statistics",
    )
    parser.add_argument(
        "--no-loops",
        action="store_true",
        help="products with one-hot matrices for the gradients of look-ups, for compilers "
        "without loops",
    )
    parser.add_argument("--steps", type=int, default=20, help="steps of a .json reference")
    return parser


def main(argv: list[str] | None = None) -> int:
    try:
        import_model(argv)
    except ImportFailure as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def import_model(argv: list[str] | None = None) -> None:
    """What the command does. Raises ImportFailure and OSError."""
    _run(_parser().parse_args(argv))


def _run(options: argparse.Namespace) -> None:
    if options.steps < 1:
        raise ImportFailure(f"--steps={options.steps}: at least one step is needed")
    references = [pathlib.Path(file) for file in options.reference]
    for file in references:
        if file.suffix not in _REFERENCE_SUFFIXES:
            raise ImportFailure(f"{file}: a reference file ends in .npz or .json")
    settings = configuration.settings(options.set)
    if options.model.endswith(".onnx"):
        _import_onnx(options, settings)
        return
    if options.model.endswith((".mlir", ".mlirbc")):
        _import_stablehlo(options, settings)
        return
    path, colon, function = options.model.rpartition(":")
    if not colon and options.model not in models.NAMES:
        raise ImportFailure(
            f"unknown model '{options.model}'; known: {', '.join(models.NAMES)}; "
            "a model of your own is PATH.py:FUNCTION"
        )
    _prepare_jax()
    from baechi.importer.jax import reference
    from baechi.importer.jax import step as importer

    if colon:
        if options.preset:
            raise ImportFailure("--preset is for the models of the collection; use --set")
        name, step = function, _own_step(path, function, settings)
    else:
        name = options.model
        step = configuration.training_step(name, options.preset, settings)
    imported = importer.import_step(*step, name=name, loops=not options.no_loops)
    _write(options.output, imported.text)
    for file in references:
        reference.write(file, name, step[0], imported.signature, options.steps)
    _tell(name, imported.operations, imported.signature.arguments, imported.signature.results)


def _tell(
    name: str, operations: int, arguments: Sequence[Argument], results: Sequence[str]
) -> None:
    updated = sum(argument.updated_by is not None for argument in arguments)
    print(
        f"{name}: {operations} linalg operations, {len(arguments)} arguments ({updated} updated), "
        f"{len(results)} results",
        file=sys.stderr,
    )


def _prepare_jax() -> None:
    # The reference is the CPU's, also where JAX finds something else; no log lines.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        import baechi.importer.jax  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportFailure(
            f"the Python package '{error.name}' is missing; scripts/python-env installs it"
        ) from error


def _import_stablehlo(options: argparse.Namespace, settings: dict[str, object]) -> None:
    if options.preset or options.reference or options.no_loops or settings:
        raise ImportFailure(
            "--preset, --set, --reference and --no-loops are for JAX steps, not for files of "
            "StableHLO"
        )
    _prepare_jax()
    from baechi.importer.jax import hlo_file

    name = _module_name(options.model)
    imported = hlo_file.import_file(options.model, name)
    _write(options.output, imported.text)
    _tell(name, imported.operations, imported.arguments, imported.results)


def _module_name(path: str) -> str:
    name = pathlib.Path(path).stem
    return name if name.isidentifier() else "model"


def _import_onnx(options: argparse.Namespace, sizes: dict[str, object]) -> None:
    if options.preset or options.reference or options.no_loops:
        raise ImportFailure(
            "--preset, --reference and --no-loops are for JAX steps, not for ONNX models"
        )
    if wrong := [key for key, size in sizes.items() if type(size) is not int or size < 1]:
        raise ImportFailure(f"--set {wrong[0]}={sizes[wrong[0]]}: expected a size, as in batch=8")
    try:
        from baechi.importer.onnx import model as importer
    except ModuleNotFoundError as error:
        raise ImportFailure(
            f"the Python package '{error.name}' is missing; pip install '.[onnx]' or "
            "scripts/torch-env in a checkout of Baechi"
        ) from error
    name = _module_name(options.model)
    imported = importer.import_model(options.model, sizes, name)
    _write(options.output, imported.text)
    print(
        f"{name}: {imported.operations} linalg operations, {len(imported.arguments)} arguments "
        f"({len(imported.weights)} weights), {len(imported.results)} results",
        file=sys.stderr,
    )


def _write(output: str, text: str) -> None:
    if output == "-":
        sys.stdout.write(text)
    elif output.endswith(".xz"):
        files.write(pathlib.Path(output), lzma.compress(text.encode()))
    else:
        files.write(pathlib.Path(output), text.encode())


def _own_step(path: str, function: str, settings: dict[str, object]):
    file = pathlib.Path(path)
    if not file.is_file():
        raise ImportFailure(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None:
        raise ImportFailure(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))  # for the model's own imports
    spec.loader.exec_module(module)
    make = getattr(module, function, None)
    if not callable(make):
        raise ImportFailure(f"{path} has no function '{function}'")
    try:
        inspect.signature(make).bind(**settings)
    except TypeError as error:
        raise ImportFailure(f"{path}:{function}: {error} (--set gives arguments)") from error
    made = make(**settings)
    if not (isinstance(made, tuple) and len(made) == 3 and callable(made[0])):
        raise ImportFailure(f"{path}:{function} must return (step, example_args, donate_argnums)")
    return made
