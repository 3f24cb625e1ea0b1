# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of the importer. See docs/import.md."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib.util
import inspect
import lzma
import os
import pathlib
import sys

from baechi import files, models
from baechi.importer.errors import ImportFailure

_REFERENCE_SUFFIXES = (".npz", ".json")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m baechi.importer",
        description="Imports a JAX training step as an MLIR module of linalg on tensors.",
    )
    parser.add_argument(
        "model",
        help=f"one of {', '.join(models.NAMES)}; or PATH.py:FUNCTION, a function that "
        "returns (step, example_args, donate_argnums)",
    )
    parser.add_argument("--preset", help="a named size of the model (default: tiny)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        nargs="+",
        metavar="KEY=VALUE",
        help="changes fields of the preset, or gives FUNCTION its keyword arguments",
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
    parser.add_argument("--steps", type=int, default=20, help="steps of a .json reference")
    return parser


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        _run(options)
    except ImportFailure as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.steps < 1:
        raise ImportFailure(f"--steps={options.steps}: at least one step is needed")
    references = [pathlib.Path(file) for file in options.reference]
    for file in references:
        if file.suffix not in _REFERENCE_SUFFIXES:
            raise ImportFailure(f"{file}: a reference file ends in .npz or .json")
    settings = _settings([item for group in options.set for item in group])
    path, colon, function = options.model.rpartition(":")
    if not colon and options.model not in models.NAMES:
        raise ImportFailure(
            f"unknown model '{options.model}'; known: {', '.join(models.NAMES)}; "
            "a model of your own is PATH.py:FUNCTION"
        )
    # The reference is the CPU's, also where JAX finds something else; no log lines.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        from baechi.importer import jax as importer
        from baechi.importer import reference
    except ModuleNotFoundError as error:
        raise ImportFailure(
            f"the Python package '{error.name}' is missing; scripts/python-env installs it"
        ) from error

    if colon:
        if options.preset:
            raise ImportFailure("--preset is for the models of the collection; use --set")
        name, step = function, _own_step(path, function, settings)
    else:
        name, step = options.model, _collected_step(options.model, options.preset, settings)
    imported = importer.import_step(*step, name=name)
    _write(options.output, imported.text)
    for file in references:
        reference.write(file, name, step[0], imported.signature, options.steps)
    updated = sum(argument.updated_by is not None for argument in imported.signature.arguments)
    print(
        f"{name}: {imported.operations} linalg operations, "
        f"{len(imported.signature.arguments)} arguments ({updated} updated), "
        f"{len(imported.signature.results)} results",
        file=sys.stderr,
    )


def _write(output: str, text: str) -> None:
    if output == "-":
        sys.stdout.write(text)
    elif output.endswith(".xz"):
        files.write(pathlib.Path(output), lzma.compress(text.encode()))
    else:
        files.write(pathlib.Path(output), text.encode())


def _settings(items: list[str]) -> dict[str, object]:
    settings = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise ImportFailure(f"--set {item}: expected KEY=VALUE")
        try:
            settings[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            settings[key] = text
    return settings


def _collected_step(model: str, preset: str | None, settings: dict[str, object]):
    module = models.load(model)
    preset = preset or "tiny"
    if preset not in module.PRESETS:
        known = ", ".join(module.PRESETS)
        raise ImportFailure(f"{model} has no preset '{preset}'; known: {known}")
    config = module.PRESETS[preset]
    fields = dataclasses.asdict(config)
    for key, value in settings.items():
        if key not in fields:
            raise ImportFailure(f"--set {key}: {model} has only {', '.join(fields)}")
        settings[key] = _typed(key, value, fields[key])
    try:
        return module.training_step(dataclasses.replace(config, **settings))
    except ValueError as error:
        raise ImportFailure(f"{model}: {error}") from error


def _typed(key: str, value: object, old: object) -> object:
    """The value in the type of the field that it replaces."""
    kind = type(old)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise ImportFailure(f"--set {key}={value}: expected {_KINDS[kind]}, as in {key}={old}")
    if kind is not str and value <= 0:
        raise ImportFailure(f"--set {key}={value}: expected a positive number")
    return value


_KINDS = {int: "an integer", float: "a number", str: "a word"}


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
