# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of what XLA has compiled, with the times of JAX's profiler."""

from __future__ import annotations

import os
import pathlib
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from baechi.graphs.hlo_text import Instruction, Module, ProfileError, parse
from baechi.graphs.problem import Graph, Output

# What only names values again.
_VIEWS = ("bitcast", "tuple", "get-tuple-element", "optimization-barrier")
_WRAPPED = re.compile(r"\w+\((.*)\)")  # jvp(body)
# Below this a constant is made wherever it is read.
_SMALL_CONSTANT = 4096

Leaf = tuple[int, int]  # an operator of the graph, and which of its outputs


def graph_of_xla(
    compiled: Any, profile: str | os.PathLike[str], *, untimed_ns: int | None = None
) -> Graph:
    """The graph of a compiled function, for `baechi.place`: an operator is what XLA runs at once.

    compiled: `jax.jit(f).lower(...).compile()`, or its text (`as_text()`), of one device.
    profile: the folder that `jax.profiler.trace` wrote while this very program ran, of which the
        newest `.xplane.pb` file is read, or such a file. Names are all that is compared: of the
        module (`jit_f`) and of its operators. An operator's time is the median over the runs in
        it, in nanoseconds, for devices of the kind where it ran (`host`, `cuda`).
    untimed_ns: what operators take that the profile does not have.

    Parameters are operators without time that hold their bytes; one whose place a result takes
    (a donated argument) is in a group with the operator that makes it. What XLA runs in scratch is
    not in its text: operators have none. Loops and branches are one operator each.

    Raises ProfileError for a text that is not XLA's, and where the profile has no function of that
    name, or several, or, without `untimed_ns`, not an operator.
    """
    if not isinstance(compiled, str) and not hasattr(compiled, "as_text"):
        raise TypeError(
            f"compiled is a {type(compiled).__name__}: give jax.jit(f).lower(...).compile(), or "
            "its text"
        )
    module = parse(compiled if isinstance(compiled, str) else compiled.as_text())
    kind, times = _read_profile(_file_of(profile), module.name)
    return _Builder(module, kind, times, untimed_ns).build()


def _file_of(profile: str | os.PathLike[str]) -> pathlib.Path:
    path = pathlib.Path(profile)
    if not path.is_dir():
        if not path.exists():
            raise ProfileError(f"{path}: there is no such profile")
        return path
    files = sorted(path.rglob("*.xplane.pb"))
    if not files:
        raise ProfileError(f"{path}: has no .xplane.pb file, which jax.profiler.trace writes")
    return files[-1]  # folders are named by their time


def _read_profile(path: pathlib.Path, module: str) -> tuple[str, dict[str, int]]:
    """The kind of device where a module ran, and the median time of each of its operators."""
    from jax.profiler import ProfileData

    try:
        data = ProfileData.from_file(os.fspath(path))
    except Exception as error:
        raise ProfileError(f"{path}: no profile of JAX: {error}") from error
    others: set[str] = set()
    programs: set[Any] = set()
    found: dict[str, dict[str, dict[Any, int]]] = {}
    for plane in data.planes:
        runs: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" not in stats:
                    continue
                if stats.get("hlo_module") == module:
                    runs[str(stats["hlo_op"])][stats.get("run_id")] += round(event.duration_ns)
                    programs.add(stats.get("program_id"))
                else:
                    others.add(str(stats.get("hlo_module")))
        if runs:
            found[plane.name] = runs
    if not found:
        known = f"; it has {', '.join(sorted(others))}" if others else ""
        raise ProfileError(f"{path}: the function '{module}' did not run in it{known}")
    if len(programs) > 1:
        raise ProfileError(
            f"{path}: {len(programs)} programs of the name '{module}' ran in it: give the "
            "functions names of their own, or profile one at a time"
        )
    name = min(found)  # of several devices that run the same, the first
    times = {op: round(statistics.median(each.values())) for op, each in found[name].items()}
    return ("cuda" if "GPU" in name else "host"), times


class _Builder:
    def __init__(self, module: Module, kind: str, times: dict[str, int], untimed_ns: int | None):
        self._module, self._kind, self._times = module, kind, times
        self._untimed_ns = untimed_ns
        self._graph = Graph()
        self._leaves: dict[str, list[Leaf | None]] = {}
        self._untimed: list[str] = []

    def build(self) -> Graph:
        instructions = self._module.computations[self._module.entry]
        for each in instructions:
            self._leaves[each.name] = self._add(each)
        if self._untimed and self._untimed_ns is None:
            raise ProfileError(
                f"the profile has no time of {', '.join(self._untimed[:5])}"
                f"{', ...' if len(self._untimed) > 5 else ''} ({len(self._untimed)} of "
                f"{len(self._graph.ops)} operators): give untimed_ns, or profile what is compiled"
            )
        self._mark_results(next(each for each in instructions if each.is_root))
        return self._graph

    def _add(self, each: Instruction) -> list[Leaf | None]:
        """Its tensors; None where they are made wherever they are read."""
        if each.opcode in _VIEWS:
            return self._view(each)
        size = sum(each.leaves)
        if each.opcode == "constant" and size <= _SMALL_CONSTANT:
            return [None] * len(each.leaves)
        if each.opcode in ("parameter", "constant"):
            # Its tensors lie in what it holds for good.
            outputs = [Output(leaf, memory=0) for leaf in each.leaves]
            op = self._graph.add(_name(each), 0, outputs=outputs, resident=size)
        else:
            op = self._graph.add(
                _name(each),
                self._time(each),
                outputs=list(each.leaves),
                inputs=list(dict.fromkeys(self._read(each))),
                after=sorted({leaf[0] for leaf in self._waits(each) if leaf}),
                backward=_is_backward(each),
            )
        return [(op, output) for output in range(len(each.leaves))]

    def _find(self, reader: Instruction, name: str) -> list[Leaf | None]:
        if name not in self._leaves:
            raise ProfileError(f"line {reader.line}: {reader.name} reads {name} before it is there")
        return self._leaves[name]

    def _read(self, each: Instruction) -> Iterable[Leaf]:
        for name in each.operands:
            yield from (leaf for leaf in self._find(each, name) if leaf)

    def _waits(self, each: Instruction) -> Iterable[Leaf | None]:
        for name in each.predecessors:
            yield from self._find(each, name)

    def _view(self, each: Instruction) -> list[Leaf | None]:
        read = [leaf for name in each.operands for leaf in self._find(each, name)]
        if each.opcode != "get-tuple-element":
            return read
        index = each.index("index")
        if len(each.leaves) != 1 or index >= len(read):
            raise ProfileError(f"line {each.line}: {each.name} takes a tuple out of a tuple")
        return [read[index]]

    def _time(self, each: Instruction) -> dict[str, int]:
        time = self._times.get(each.name)
        if time is None:
            inner = self._times_within(each)
            time = sum(inner) if inner else None
        if time is None:
            self._untimed.append(each.name)
            time = self._untimed_ns or 0
        return {self._kind: time}

    def _times_within(self, each: Instruction) -> list[int]:
        """Of a loop or a branch that has no time of its own."""
        found: list[int] = []
        for computation in each.called:
            for inner in self._module.computations.get(computation, []):
                time = self._times.get(inner.name)
                found += self._times_within(inner) if time is None else [time]
        return found

    def _mark_results(self, root: Instruction) -> None:
        parameters = [
            each
            for each in self._module.computations[self._module.entry]
            if each.opcode == "parameter"
        ]
        by_number = {each.index("number"): each for each in parameters}
        for result, leaf in enumerate(self._leaves[root.name]):
            if leaf is None:
                continue
            op, output = leaf
            maker = self._graph.ops[op]
            maker.result = True
            donated = by_number.get(self._module.aliases.get(result, -1))
            if donated is None or not isinstance(maker.outputs[output], int):
                continue
            # In the parameter's place: no memory of its own, and on its device.
            argument = self._leaves[donated.name][0]
            if argument is None or maker.group or self._graph.ops[argument[0]].group:
                continue
            maker.outputs = list(maker.outputs)
            maker.outputs[output] = Output(donated.leaves[0], memory=0)
            maker.group = self._graph.ops[argument[0]].group = f"update/{donated.name}"


def _name(each: Instruction) -> str:
    """XLA's, behind the model's scopes (`jax.named_scope`) without the transformations' names."""
    parts = ["backward"] if _is_backward(each) else []
    for scope in each.scope.split("/")[1:-1]:
        while found := _WRAPPED.fullmatch(scope):
            scope = found[1]
        parts += [scope] if scope else []
    return "/".join([*parts, each.name])


def _is_backward(each: Instruction) -> bool:
    return "transpose(" in each.scope
