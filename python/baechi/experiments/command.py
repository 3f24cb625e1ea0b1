# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of `python -m baechi.experiments`."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import pathlib
import sys
from collections.abc import Callable

from baechi.compiling import stepgraph, tools
from baechi.experiments import (
    benchmarks,
    bosen,
    compiling,
    execution,
    halves,
    hardware,
    learning,
    losses,
    memory,
    orion,
    p3,
    pieces,
    placers,
    report,
    resuming,
)
from baechi.experiments.tables import TABLES, Setting, Table
from baechi.importer.common.errors import ImportFailure

_HELP = {
    "table3": "operators, groups and placement times",
    "table4": "steps by placer with ample memory",
    "table5": "steps by placer with 30 % of the memory",
    "table6": "grouping steps and the search off and on",
    "table7": "a row a placer: steps, seconds, evaluations",
    "all": "all of these",
    "learned": "placers that learn, by evaluations and seconds (minutes; not among all)",
    "pieces": "steps in pieces beside whole operators, predicted (minutes; not among all)",
    "compile": "import and compilation: seconds and memory (minutes; not among all)",
    "p3": "steps of replicas over bandwidth, by what is sent first (not among all)",
    "orion": "serial loops in blocks and data parallel, by passes (minutes; not among all)",
    "bosen": "bounded staleness by what is sent first (minutes; not among all)",
    "bosen-large": "the same of one problem with more workers and rows (minutes; not among all)",
    "memory": "larger models, and less memory, by a pool (minutes; not among all)",
    "halves": "every model in half of its memory, and less by a pool (minutes; not among all)",
    "losses": "losses on host devices beside JAX's (minutes; not among all)",
    "losses-pieces": "the same in pieces, by what may be cut (minutes; not among all)",
}
# Tables by model; `pieces` goes on by itself.
_RESUMED = (*TABLES, "all", "learned", "compile", "losses", "losses-pieces")


def _parser() -> argparse.ArgumentParser:
    reduced = ", ".join(model.name for model in benchmarks.REDUCED)
    known = "; ".join(f"{name}: {text}" for name, text in _HELP.items()).replace("%", "%%")
    parser = argparse.ArgumentParser(
        prog="python -m baechi.experiments",
        description="The experiments of the Baechi paper: full-size models imported from JAX, "
        "placed on the paper's machine, beside the paper's figures.",
    )
    parser.add_argument("experiment", choices=list(_HELP), metavar="EXPERIMENT", help=known)
    parser.add_argument("--models", type=_names, default=[], help="only these, with commas")
    parser.add_argument("--placers", type=_names, default=[], help="only these, with commas")
    parser.add_argument(
        "--execute",
        metavar="MACHINE",
        nargs="?",
        const="host:2",
        help="table4's placers by running them on MACHINE instead, as host:4, cuda:2 or a machine "
        f"file (default: host:2); reduced models: {reduced}",
    )
    parser.add_argument(
        "--evaluations",
        type=_budget,
        default=placers.EVALUATIONS,
        metavar="N",
        help="what each placer that learns may spend (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        metavar="N",
        help="pieces: begin no further way of a model and machine after so many seconds; what was "
        "made is kept, and the same command goes on from there",
    )
    parser.add_argument(
        "--ways",
        type=_names,
        default=[],
        metavar="NAMES",
        help="pieces: only these, with commas; the others' cells stay as FOLDER has them: "
        + ", ".join(pieces.WAYS),
    )
    parser.add_argument(
        "--quick", action="store_true", help="bosen with little data and two passes, as a trial"
    )
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        metavar="FOLDER",
        help="write experiments.json (which grows), experiments.md and plots there",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="leave out models whose rows FOLDER has of the same graphs, machine, options, tools "
        "and code: the same command goes on where it was ended (" + ", ".join(_RESUMED) + ")",
    )
    parser.add_argument(
        "--with",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="a Python module that registers further placers",
    )
    return parser


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _budget(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of evaluations: 1 to 2^31 - 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds: 0 to 10^6")
    return seconds


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        for table in _run(options):
            print(report.markdown(table))
        return 0
    except (ImportFailure, tools.CompileError, FileNotFoundError) as error:
        print(f"error: {str(error).removeprefix('error: ')}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
    return 1


def _run(options: argparse.Namespace) -> list[Table]:
    for module in options.modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise ImportFailure(f"--with={module}: {error}") from error
    if unknown := [name for name in options.placers if name not in placers.PLACERS]:
        known = ", ".join(placers.PLACERS)
        raise ImportFailure(f"unknown placer '{unknown[0]}'; known: {known}")
    if unknown := [name for name in options.ways if name not in pieces.WAYS]:
        raise ImportFailure(f"unknown way '{unknown[0]}'; known: {', '.join(pieces.WAYS)}")
    if options.resume and not options.output:
        raise ImportFailure("--resume goes on from what --output=FOLDER has: name it")
    if options.resume and options.experiment not in _RESUMED:
        raise ImportFailure(
            f"--resume is not for {options.experiment}; it is for {', '.join(_RESUMED)}"
        )
    before: dict[str, Table] = {}
    if options.output and (options.output / report.RESULTS).exists():
        before = report.read(options.output / report.RESULTS)  # wrong ones are told before the work
    if options.execute:
        stepgraph.machine(options.execute)  # before minutes of importing
    machine = hardware.socc2020()
    if options.experiment in ("p3", "orion", "bosen", "bosen-large", "memory", "halves"):
        with _Progress() as progress:
            if options.experiment == "bosen":
                made = bosen.tables(options.models, progress, options.quick)
            elif options.experiment == "bosen-large":
                made = bosen.large_tables(progress, options.quick)
            else:
                make = {"p3": p3, "orion": orion, "memory": memory, "halves": halves}
                made = make[options.experiment].tables(options.models, progress)
        if options.output:
            report.keep(options.output, made, machine.description)
        return _published(options.output, made, machine.description)
    models = benchmarks.REDUCED if options.execute else benchmarks.FULL
    if options.experiment in ("losses", "losses-pieces"):
        models = benchmarks.TRAINED
    if options.experiment == "learned":
        models = benchmarks.LEARNED
    with _Progress() as progress:
        setting = Setting(
            machine,
            benchmarks.chosen(models, options.models),
            options.placers or _by_default(options.experiment),
            progress,
            options.evaluations,
            options.seconds,
            options.ways,
            before if options.ways else {},
        )
        made = [
            _by_model(name, make, setting, options, before)
            for name, make in _tables(options).items()
        ]
    return _published(options.output, made, machine.description)


def _published(output: pathlib.Path | None, made: list[Table], machine: str) -> list[Table]:
    if output:
        for file in (output / report.RESULTS, *report.publish(output, machine)):
            print(f"wrote {file}", file=sys.stderr)
    return made


def _by_default(experiment: str) -> list[str]:
    if experiment == "learned":
        return learning.PLACERS
    return [name for name in placers.PLACERS if name not in placers.ON_REQUEST]


def _tables(options: argparse.Namespace) -> dict[str, Callable[[Setting], Table]]:
    """What makes the tables that were asked for, by their names."""
    if options.experiment == "losses":
        return {"losses": losses.loss_curves}
    if options.experiment == "losses-pieces":
        return {"losses-pieces": losses.loss_curves_in_pieces}
    if options.experiment == "learned":
        return {"learned": learning.learned_placers}
    if options.experiment == "pieces":
        return {"pieces": pieces.steps_in_pieces, "pieces-fast": pieces.steps_on_fast_links}
    if options.experiment == "compile":
        return {"compile": compiling.compile_times}
    if options.execute:
        return {"executed": lambda setting: execution.steps_executed(setting, options.execute)}
    names = list(TABLES) if options.experiment == "all" else [options.experiment]
    return {name: TABLES[name] for name in names}


def _by_model(
    name: str,
    make: Callable[[Setting], Table],
    setting: Setting,
    options: argparse.Namespace,
    before: dict[str, Table],
) -> Table:
    """A table, written after each model: what an hour of work found is not lost when
    something fails at its end."""
    code = others = ""
    if options.output and options.experiment in _RESUMED:
        code = resuming.state_of_code(options.modules)
    if options.execute:
        others = str(stepgraph.machine(options.execute))
    tables = []
    for benchmark in setting.benchmarks:
        stamp = resuming.made_of(name, benchmark, setting, code + others) if code else ""
        if options.resume and (rows := resuming.kept(before.get(name), benchmark, stamp)):
            setting.tell(f"{benchmark.name}: is there")
            tables.append(dataclasses.replace(before[name], rows=rows))
            continue
        table = make(dataclasses.replace(setting, benchmarks=[benchmark]))
        tables.append(resuming.stamped(table, stamp) if stamp else table)
        if options.output:
            report.keep(options.output, tables[-1:], setting.machine.description)
    return dataclasses.replace(tables[-1], rows=[row for table in tables for row in table.rows])


class _Progress:
    """A line on the terminal: what is done now, how many parts are done, since when."""

    def __enter__(self) -> _Progress:
        try:
            from tqdm import tqdm
        except ModuleNotFoundError as error:
            raise ImportFailure("tqdm is missing; scripts/python-env installs it") from error
        self._bar = tqdm(unit=" parts", disable=None, leave=False, file=sys.stderr)
        return self

    def __call__(self, what: str) -> None:
        self._bar.set_description(what)
        self._bar.update()

    def __exit__(self, *_: object) -> None:
        self._bar.close()
