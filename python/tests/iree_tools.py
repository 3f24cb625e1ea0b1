# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles exported programs with IREE, runs them, and reads from IREE's own
IR which device each operator went to."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator

import numpy as np

import native

FOLDER = pathlib.Path(sys.executable).parent
VERSION = "3.12.0"


def compile_for_host(source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Compiles for local devices; the IR after each phase is in folder/phases."""
    library = folder / "step.vmfb"
    native.run(
        FOLDER / "iree-compile",
        source,
        "--iree-execution-model=async-external",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
        "--mlir-print-debuginfo",
        f"--dump-compilation-phases-to={folder / 'phases'}",
        "-o",
        library,
    )
    return library


def run_on_host(library: pathlib.Path, devices: int, inputs, results: int, *flags):
    """Runs @step once on `devices` local devices of one thread each."""
    folder = library.parent
    for i, value in enumerate(inputs):
        np.save(folder / f"input{i}.npy", value)
    native.run(
        FOLDER / "iree-run-module",
        f"--module={library}",
        "--function=step",
        *["--device=local-task"] * devices,
        "--task_topology_group_count=1",
        *[f"--input=@{folder}/input{i}.npy" for i in range(len(inputs))],
        *[f"--output=@{folder}/output{i}.npy" for i in range(results)],
        *flags,
    )
    return [np.load(folder / f"output{i}.npy") for i in range(results)]


def dispatches(phases: pathlib.Path) -> Iterator[tuple[str | None, set[str]]]:
    """Device and operators of each dispatch of the whole program, as IREE's
    Stream dialect has them; of fused operators only the main ones."""
    lines, locations = _read(phases, "stream")
    device, inside = None, False
    for line in lines:
        if "stream.cmd.execute" in line:
            found = re.search(r"execute (?:once )?on\(#hal\.device\.affinity<@(\w+)>\)", line)
            device = found[1] if found else None
        elif "stream.cmd.dispatch" in line:
            inside = True
        if inside and (found := re.search(r"\} loc\((.*)\)$", line)):
            inside = False
            yield device, locations.operators(found[1])


def executions(phases: pathlib.Path) -> list[tuple[str | None, set[str], set[int]]]:
    """Device and operators of each execution of IREE's Stream dialect, and the
    positions of the executions that end before it begins."""
    lines, locations = _read(phases, "stream")
    found: list[tuple[str | None, set[str], set[int]]] = []
    before: dict[str, set[int]] = {}  # of each timepoint
    inside, names = False, set[str]()
    for line in lines:
        if match := re.match(r"\s*(%[^=]*) = stream\.", line):
            waits = re.search(r"(?:await|join max)\(([^)]*)\)", line)
            timepoints = re.findall(r"%\w+", waits[1]) if waits else []
            ends = set().union(*(before.get(name, set()) for name in timepoints))
            if "stream.cmd.execute" in line:
                device = re.search(r"on\(#hal\.device\.affinity<@(\w+)>\)", line)
                names = set()
                found.append((device[1] if device else None, names, ends))
                ends = ends | {len(found) - 1}
            for result in re.findall(r"%\w+", match[1]):
                before[result] = ends
        elif "stream.cmd.dispatch" in line:
            inside = True
        if inside and (location := re.search(r"\} loc\((.*)\)$", line)):
            inside = False
            names |= locations.operators(location[1])
    return found


def fused_operators(phases: pathlib.Path) -> Iterator[set[str]]:
    """All operators of each dispatch, before equal dispatches are merged."""
    lines, locations = _read(phases, "dispatch-creation")
    names: set[str] = set()
    indent = None
    for line in lines:
        here = len(line) - len(line.lstrip())
        if indent is None and "flow.dispatch.workgroups" in line:
            names, indent = set(), here
        elif indent is not None:
            # Constants and fills are copies of ones that were first elsewhere.
            computes = re.match(
                r"\s*(\} -> tensor|%\S+ = (?!arith\.constant)(arith|math)\.|\S+\.tensor\.store )",
                line,
            )
            if computes and (found := re.search(r" loc\((.*)\)$", line)):
                names |= locations.operators(found[1])
            if here == indent and line.lstrip().startswith("}"):
                yield names
                indent = None


def _read(phases: pathlib.Path, phase: str):
    (file,) = phases.glob(f"*.{phase}.mlir")
    text = file.read_text()
    locations = _Locations(text)
    return text[text.index("util.func public @step(") :].splitlines(), locations


class _Locations:
    """Locations as text. Where calls were inlined, the operator is the caller:
    the export names its location."""

    _TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|#loc\d*|callsite|fused|unknown|at|.)')

    def __init__(self, text: str):
        self._texts = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
        self._known: dict[str, set[str]] = {}

    def operators(self, text: str) -> set[str]:
        if text not in self._known:
            tokens = self._TOKEN.findall(text)
            self._known[text] = self._parse(tokens)
        return self._known[text]

    def _parse(self, tokens: list[str]) -> set[str]:
        token = tokens.pop(0)
        if token.startswith("#loc"):
            return self.operators(self._texts[token])
        if token.startswith('"'):
            if tokens[:1] == [":"]:  # a file, with a line and a column
                while tokens and tokens[0] not in (",", "]", ")", "at"):
                    tokens.pop(0)
                return set()
            if tokens[:1] == ["("]:
                self._enclosed(tokens)
            return {token[1:-1]}
        if token == "callsite":
            tokens.pop(0)
            callee = self._parse(tokens)
            assert tokens.pop(0) == "at"
            caller = self._parse(tokens)
            tokens.pop(0)
            return caller or callee
        if token == "fused":
            if tokens[0] == "<":
                while tokens.pop(0) != ">":
                    pass
            return self._enclosed(tokens)
        return set()

    def _enclosed(self, tokens: list[str]) -> set[str]:
        """What a list in brackets names."""
        names: set[str] = set()
        while tokens.pop(0) not in ("]", ")"):
            names |= self._parse(tokens)
        return names
