# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model's configuration from what a command line says: a preset and settings."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from baechi import models
from baechi.importer.common.errors import ImportFailure

DEFAULT_PRESET = "tiny"
_KINDS = {int: "an integer", float: "a number", str: "a word"}


def add_set(parser: argparse.ArgumentParser, text: str) -> None:
    """The option `--set KEY=VALUE...`, for `settings`; text: what it changes."""
    parser.add_argument(
        "--set", action="extend", default=[], nargs="+", metavar="KEY=VALUE", help=text
    )


def add_placer(parser: argparse.ArgumentParser, text: str) -> None:
    """The option `--placer`."""
    parser.add_argument("--placer", default="msct", help=text)
    add_former(parser, "--place", "placer")


def add_former(parser: argparse.ArgumentParser, word: str, dest: str, **options: Any) -> None:
    """A word of before that sets `dest`, with a note; a flag takes `nargs=0, const=VALUE`."""
    parser.add_argument(
        word,
        dest=dest,
        action=_Former,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
        **options,
    )


class _Former(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        print(f"note: {option_string} is now --{self.dest.replace('_', '-')}", file=sys.stderr)
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


def settings(items: Iterable[str]) -> dict[str, Any]:
    """The KEY=VALUE of a command line; a value that is no Python literal is a word."""
    found = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise ImportFailure(f"--set {item}: expected KEY=VALUE")
        try:
            found[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[key] = text
    return found


def configure(
    model: str,
    preset: str | None = None,
    changes: Mapping[str, Any] = {},
    load: Callable[[str], Any] = models.load,
):
    """The `Config` of a model of the collection: a preset with changed fields.

    load: finds the model's module. Raises ImportFailure, which names what is known.
    """
    module = load(model)
    preset = preset or DEFAULT_PRESET
    if preset not in module.PRESETS:
        known = ", ".join(module.PRESETS)
        raise ImportFailure(f"{model} has no preset '{preset}'; known: {known}")
    config = module.PRESETS[preset]
    fields = dataclasses.asdict(config)
    typed = {}
    for key, value in changes.items():
        if key not in fields:
            raise ImportFailure(f"--set {key}: {model} has only {', '.join(fields)}")
        typed[key] = _typed(key, value, fields[key])
    return dataclasses.replace(config, **typed)


def training_step(model: str, preset: str | None = None, changes: Mapping[str, Any] = {}):
    """`(step, args, donate_argnums)` of a model of the collection."""
    config = configure(model, preset, changes)
    try:
        return models.load(model).training_step(config)
    except ValueError as error:
        raise ImportFailure(f"{model}: {error}") from error


def _typed(key: str, value: object, old: object) -> object:
    """The value in the type of the field that it replaces."""
    kind = type(old)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise ImportFailure(f"--set {key}={value}: expected {_KINDS[kind]}, as in {key}={old}")
    if kind is int and value <= 0:
        raise ImportFailure(f"--set {key}={value}: expected a positive number")
    if kind is float and not 0 <= value < float("inf"):
        raise ImportFailure(f"--set {key}={value}: expected a number, 0 or more")
    return value
