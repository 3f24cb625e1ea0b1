# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.foreach`: a serial loop over entries, in parallel where its accesses allow it."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from baechi.common.launch import Launch, find_launch
from baechi.compiling.options import CompileOptions
from baechi.loops import analysis, blocks
from baechi.loops.analysis import Analysis
from baechi.loops.blocks import Layout
from baechi.loops.choice import choose
from baechi.loops.compiled import Compiled, OnDevices
from baechi.loops.entries import Entries, as_array
from baechi.loops.errors import LoopError, defined_at
from baechi.loops.launched import OnLaunched
from baechi.loops.module_text import module_of
from baechi.loops.on_store import OnStore
from baechi.loops.prefetch import Prefetch, prefetch_of
from baechi.loops.ranks import OnRanks
from baechi.loops.simulated import Simulated
from baechi.loops.tracing import Body, shape_of, trace
from baechi.pictures.picture import Picture

_FALLBACKS = ("refuse", "serial")


def foreach(
    body: Callable[..., Any] | None = None,
    *,
    machine: str = "host:2",
    ranks: int | str = 1,
    workers: int = 4,
    ordered: bool = False,
    reassociate: bool = False,
    buffered: Sequence[str] = (),
    exchanges: int = 1,
    staleness: int | None = None,
    fallback: str = "refuse",
    verbose: bool | None = None,
) -> Any:
    """Makes a loop of a body; usable as a decorator.

    body: a function of an entry's keys (a tuple; of one key the key alone), its value and
        arrays. `x[i]`, with keys, sums of keys and numbers, and slices, reads; `x[i] = v` and
        `x[i] += v` write. What it returns, if anything, is the entry's new value. JAX traces
        it.
    machine: `host:N[@SIZE]`.
    ranks: processes that the devices are divided among; the first call starts them. "launcher":
        those that mpirun, torchrun or srun has started this program in, on one machine; each of
        them calls the loop with the same arguments and gets the result. They change no bit.
    workers: blocks that may run at once. Blocks, their order and so the result follow from
        this number alone, on any number of devices.
    ordered: entries follow each other as their keys do, lexicographically. Without it, any
        order is right, and the loop is as a serial run in the order of its blocks.
    reassociate: arrays that are only added to may be summed up by each block for itself,
        and then in the blocks' order.
    buffered: arrays whose writes may be seen late. The blocks that run at once change copies
        of their own, whose changes are then added up, in the blocks' order.
    exchanges: how many times in a block its changes of buffered arrays are added up.
    staleness: workers go at their own pace, each on a thread of its own or in one of `ranks`,
        and buffered arrays are in a parameter store (`baechi.ParameterStore`): what a worker
        reads lacks no change that is older than so many exchanges. Without it, workers wait for
        each other, and results are the same each time.
    fallback: for a loop that may not run in parallel `refuse` (LoopError) or `serial`.
    verbose: as for `baechi.jit`.

    The loop is called with entries (`baechi.Entries`) and the arrays, and gives the arrays
    that the body writes, in their order, after the new values if it returns any; one result
    alone is no tuple. `passes=N` runs over the entries N times. Raises LoopError, with the
    place and the mend.
    """
    if body is None:
        same = {key: value for key, value in locals().items() if key != "body"}
        return functools.partial(foreach, **same)
    if not callable(body):
        raise TypeError(f"baechi.foreach takes a function, not {body!r}")
    if fallback not in _FALLBACKS:
        raise ValueError(f"fallback is {fallback!r}: give 'refuse' or 'serial'")
    devices = _devices_of(machine)
    launch = _launch_of(machine, devices, staleness) if ranks == "launcher" else None
    if ranks == "launcher":
        ranks = launch.ranks if launch else 1
    if not isinstance(ranks, int) or isinstance(ranks, bool) or not 1 <= ranks <= devices:
        raise ValueError(
            f"ranks is {ranks!r}: give 1 to {devices}, as many as devices, or 'launcher'"
        )
    _check_number("workers", workers, 1)
    _check_number("exchanges", exchanges, 1)
    if exchanges > 1 and not buffered:
        raise ValueError(f"exchanges is {exchanges} and no array is buffered: name some")
    if staleness is not None:
        _check_number("staleness", staleness, 0)
        if not buffered:
            raise ValueError(f"staleness is {staleness} and no array is buffered: name some")
        if ranks > workers:
            raise ValueError(
                f"ranks is {ranks} and workers {workers}: with a staleness each rank has workers "
                "of its own; give as many workers at least"
            )
    if isinstance(buffered, str):
        raise TypeError(f"buffered is {buffered!r}: give a list of names, [{buffered!r}]")
    return Loop(
        body,
        os.fspath(machine),
        ranks,
        launch,
        workers,
        ordered,
        reassociate,
        tuple(buffered),
        exchanges,
        staleness,
        fallback,
        verbose,
    )


class Loop:
    """A loop over entries; see `foreach`."""

    def __init__(
        self,
        body: Callable[..., Any],
        machine: str,
        ranks: int,
        launch: Launch | None,
        workers: int,
        ordered: bool,
        reassociate: bool,
        buffered: tuple[str, ...],
        exchanges: int,
        staleness: int | None,
        fallback: str,
        verbose: bool | None,
    ):
        functools.update_wrapper(self, body)
        self._body, self._machine, self._ranks, self._workers = body, machine, ranks, workers
        self._launch = launch
        self._ordered, self._reassociate, self._buffered = ordered, reassociate, buffered
        self._exchanges, self._staleness = exchanges, staleness
        self._fallback, self._verbose = fallback, verbose
        self._known: dict[Any, Compiled | OnStore] = {}
        self._last: Compiled | OnStore | None = None
        self._simulated: dict[Any, Simulated] = {}

    def analyse(self, entries: Entries, *arrays: Any) -> Analysis:
        """What of the loop may run at once, and what forbids more; nothing is compiled."""
        return self._analysed(entries, self._shapes_of(arrays))[1]

    def order(self, entries: Entries, *arrays: Any) -> np.ndarray:
        """The entries' numbers in the order of the serial run that the loop is equal to."""
        return self.layout(entries, *arrays).order()

    def layout(self, entries: Entries, *arrays: Any) -> Layout:
        """The blocks, the entries of each, and how the arrays are cut."""
        return self._laid_out(entries, self._shapes_of(arrays))[2]

    def __call__(self, entries: Entries, *arrays: Any, passes: int = 1, **named: Any) -> Any:
        if named:
            raise LoopError(
                f"{defined_at(self._body)}the loop is called with {min(named)!r} by name: give the "
                "entries and then the arrays by position, in the order in which the body takes "
                "them; by name are passes alone"
            )
        _check_number("passes", passes, 0)
        given = self._taken(arrays)
        self._last = self._compiled(entries, given)
        return self._last.run(entries, given, passes)

    def simulate(self, entries: Entries, *arrays: Any, passes: int = 1) -> Any:
        """What calling the loop gives, bit for bit, by one block after the other on one device:
        for more workers than a program with all blocks is worth compiling for. With a staleness
        workers share a simulated network, and the bits are those of each simulation."""
        _check_number("passes", passes, 0)
        given = self._taken(arrays)
        if self._staleness is not None:
            program = self._compiled(entries, given)
            if isinstance(program, OnStore):
                return program.simulate(entries, given, passes)
        shapes = [shape_of(array) for array in given]
        kind = _kind(entries, shapes)
        if kind not in self._simulated:
            body, _, layout = self._laid_out(entries, shapes)
            simulated = Simulated(entries, body, shapes, layout, self._verbose)
            self._simulated[kind] = simulated
        return self._simulated[kind].run(entries, given, passes)

    def prefetch(self, entries: Entries, *arrays: Any) -> Prefetch:
        """What each block reads at positions that data tell, by a slice of the body that is run
        over its entries, and what fetching it from another machine would take."""
        shapes = self._shapes_of(arrays)
        body, _, layout = self._laid_out(entries, shapes)
        return prefetch_of(entries, body, shapes, layout)

    def report(self) -> str:
        """The placement, predicted and measured times of the program that was called last; with a
        staleness what the store has sent, and how late reads were."""
        if self._last is None:
            raise RuntimeError("the loop has not run yet: call it first")
        return self._last.report()

    def picture(self) -> Picture:
        """What `baechi.plot_timeline` draws: the plan of the program that was called last."""
        if isinstance(self._last, Compiled):
            return self._last.picture()
        raise RuntimeError(
            "there is no plan to draw: "
            + (
                "workers with a staleness go at their own pace"
                if self._last
                else "call the loop first"
            )
        )

    def _compiled(self, entries: Entries, arrays: Sequence[Any]) -> Compiled | OnStore:
        shapes = [shape_of(array) for array in arrays]
        kind = _kind(entries, shapes)
        if kind not in self._known:
            self._known[kind] = self._compile(entries, shapes)
        return self._known[kind]

    def _compile(self, entries: Entries, shapes: list[jax.ShapeDtypeStruct]) -> Compiled | OnStore:
        body, found, layout = self._laid_out(entries, shapes)
        count = _devices_of(self._machine)
        falls_back = layout.workers == 1 and not any(p.buffered for p in layout.pieces)
        if self._staleness is not None and not falls_back:
            how = (self._staleness, count, self._ranks, self._verbose)
            return OnStore(entries, body, shapes, layout, *how)
        devices = [f"host{d}" for d in range(count)]
        module = module_of(entries, body, shapes, layout, devices, self._ranks > 1)
        options = CompileOptions(
            machine=self._machine,
            budget="0",
            pin=module.pins,
            costs="roofline",
            unroll="never",
            verbose=self._verbose,
        )
        runs: OnDevices | OnRanks | OnLaunched
        if self._launch is not None:
            runs = OnLaunched(module, options, self._launch)
        elif self._ranks > 1:
            runs = OnRanks(module, options, self._ranks)
        else:
            runs = OnDevices(module, options)
        return Compiled(runs, body, layout, shapes, found.plans)

    def _analysed(
        self, entries: Entries, shapes: list[jax.ShapeDtypeStruct]
    ) -> tuple[Body, Analysis]:
        if not isinstance(entries, Entries):
            raise TypeError(
                f"a loop is over entries, not a {type(entries).__name__}: give "
                "baechi.Entries((rows, columns), values) first, then the arrays"
            )
        names = self._names(len(shapes))
        body = trace(self._body, entries, shapes, names)
        found = analysis.analyse(
            body, entries, shapes, self._ordered, self._reassociate, self._buffered
        )
        return body, choose(found, body, entries, self._buffered, self._workers)

    def _laid_out(
        self, entries: Entries, shapes: list[jax.ShapeDtypeStruct]
    ) -> tuple[Body, Analysis, Layout]:
        body, found = self._analysed(entries, shapes)
        if not any(access.writes for access in body.accesses) and not body.new_values:
            raise LoopError(
                f"{defined_at(self._body)}'{getattr(self._body, '__name__', 'the body')}' writes "
                "nothing: write "
                "x[i] = value or x[i] += value, or return a new value"
            )
        layout = blocks.lay_out(
            entries,
            body,
            found,
            shapes,
            self._workers,
            self._ordered,
            self._buffered,
            self._fallback,
        )
        return body, found, blocks.exchanging(layout, self._exchanges)

    def _taken(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        named = zip(self._names(len(arrays)), arrays, strict=True)
        return [as_array(array, f"'{name}'") for name, array in named]

    def _shapes_of(self, arrays: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
        return [shape_of(array) for array in self._taken(arrays)]

    def _names(self, count: int) -> list[str]:
        if inspect.iscoroutinefunction(self._body) or inspect.isgeneratorfunction(self._body):
            raise LoopError(
                f"{defined_at(self._body)}the body awaits or yields, and blocks compute it to its "
                "end: write it with def, without await and yield; what it returns is the entry's "
                "new value"
            )
        parameters = list(inspect.signature(self._body).parameters.values())
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        taken = [p for p in parameters if p.kind in kinds]
        names = [p.name for p in taken]
        # Others have their defaults: steps and the like.
        rest = [p for p in parameters if p not in taken[: count + 2]]
        if len(names) < count + 2 or any(_is_needed(p) for p in rest):
            raise LoopError(
                f"{defined_at(self._body)}the body takes {', '.join(names)}, and the loop is "
                f"called with entries and {count} arrays: it takes the keys, the value and each "
                "array, and what else it takes has a default"
            )
        return names[2 : count + 2]


def _kind(entries: Any, shapes: Sequence[jax.ShapeDtypeStruct]) -> Any:
    """Equal for what a program is the same for."""
    arrays = tuple((like.shape, like.dtype) for like in shapes)
    # What is no entries is told of later.
    return (entries.kind() if isinstance(entries, Entries) else None), arrays


def _devices_of(machine: str) -> int:
    found = re.fullmatch(r"host(?::([1-9]\d*))?(?:@.*)?", os.fspath(machine))
    if not found:
        raise ValueError(f"machine is {machine!r}: loops run on host devices, give 'host:2'")
    return int(found[1] or 1)


def _launch_of(machine: str, devices: int, staleness: int | None) -> Launch | None:
    launch = find_launch()
    if launch is None:
        return None
    started = f"ranks is 'launcher', and {launch.launcher} has started {launch.ranks} processes"
    if staleness is not None:
        raise ValueError(
            f"{started}: with a staleness workers share one store; give the number of processes, "
            "which the loop starts, and run the program once"
        )
    if launch.here < launch.ranks:
        raise ValueError(
            f"{started}, {launch.here} of them on this machine: a loop's arrays go to them by "
            "files; start all on one machine"
        )
    if launch.ranks > devices:
        raise ValueError(
            f"{started} for the {devices} devices of {machine!r}: give each one at least, "
            f"machine='host:{launch.ranks}'"
        )
    return launch


def _is_needed(parameter: inspect.Parameter) -> bool:
    several = parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD
    return parameter.default is parameter.empty and parameter.kind not in several


def _check_number(option: str, given: Any, least: int) -> None:
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < least:
        raise ValueError(f"{option} is {given!r}: give a number of at least {least}")
