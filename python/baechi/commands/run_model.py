# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of `python -m baechi.models`: import, place, run, report.

A thin layer over the importer and `baechi-run`, whose options it takes.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from baechi import models
from baechi.compiling import stepgraph, tools
from baechi.importer.common.errors import ImportFailure
from baechi.models import configuration, expert


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m baechi.models",
        description="Imports a model of the collection, places it on a machine, runs it and "
        "reports. Options that are not listed here go to baechi-run (--steps, --budget, --html, "
        "--store, --emit, ...; baechi-run --help).",
        allow_abbrev=False,
    )
    parser.add_argument("model", help=", ".join(models.NAMES))
    parser.add_argument("--preset", help="a named size (default: tiny)")
    configuration.add_set(parser, "changes fields of the preset: layers=8 batch=256")
    parser.add_argument(
        "--machine", default="host:2", help="host:N[@SIZE] or a machine file (default: host:2)"
    )
    configuration.add_placer(
        parser, "a placer of baechi-run, or expert: the model's own (default: msct)"
    )
    parser.add_argument(
        "--check-jax",
        action="store_true",
        help="compare the losses of all steps with jax.jit's",
    )
    parser.add_argument("--keep", metavar="FOLDER", help="where the files between stay")
    return parser


def main(argv: list[str] | None = None) -> int:
    options, further = _parser().parse_known_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="baechi-models-") as temporary:
            folder = pathlib.Path(options.keep or temporary)
            folder.mkdir(parents=True, exist_ok=True)
            return _run(options, further, folder)
    except (ImportFailure, tools.CompileError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, further: list[str], folder: pathlib.Path) -> int:
    program = tools.find("baechi-run")  # before minutes of importing
    if options.model not in models.NAMES:
        raise ImportFailure(f"unknown model '{options.model}'; known: {', '.join(models.NAMES)}")
    if options.placer == "expert" and options.model not in expert.known():
        expert.rules(options.model, [])
    module = folder / f"{options.model}.mlir"
    flags = _import(options, further, module)
    if options.placer == "expert":
        placement = expert_placement(options.model, module, options.machine, folder)
        # All is pinned: the placer has nothing to decide but the order.
        flags += [f"--placement={placement}", "--placer=metf", "--budget=0"]
    else:
        flags.append(f"--placer={options.placer}")
    command = [program, module, f"--machine={options.machine}", *flags, *further]
    return subprocess.run(command).returncode


def _import(options: argparse.Namespace, further: list[str], module: pathlib.Path) -> list[str]:
    """Writes the module, and what JAX computes where that was asked for; returns
    the options for baechi-run that follow from it."""
    from baechi.commands import import_model as cli

    arguments = [options.model, "-o", str(module)]
    if options.preset:
        arguments.append(f"--preset={options.preset}")
    if options.set:
        arguments += ["--set", *options.set]
    if not options.check_jax:
        cli.import_model(arguments)
        return []
    reference = module.with_suffix(".reference.json")
    asked = [word.partition("=")[2] for word in further if word.startswith("--steps=")]
    steps = asked[-1] if asked else "20"
    cli.import_model([*arguments, f"--reference={reference}", f"--steps={steps}"])
    return [f"--reference={reference}"]


def expert_placement(
    model: str, module: pathlib.Path, machine: str, folder: pathlib.Path
) -> pathlib.Path:
    """The placement file of a model's expert rules on a machine, by names.

    Raises CompileError: it does not fit, say.
    """
    described = stepgraph.machine(machine)
    (folder / "machine.json").write_text(json.dumps(described))
    kinds = {device["kind"] for device in described["devices"]}
    roofline = ",".join(f"{kind}:50:10:200" for kind in sorted(kinds))
    stepgraph.write_graph(module, folder / "graph.json", roofline)
    rules, placement = folder / f"{model}.expert", folder / "placement.json"
    rules.write_text(expert.rules(model, [device["name"] for device in described["devices"]]))
    tools.run(
        "baechi-place",
        folder / "graph.json",
        folder / "machine.json",
        "--placer=expert",
        f"--expert={rules}",
        "--budget=0",
        "-o",
        placement,
    )
    return placement
