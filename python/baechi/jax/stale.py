# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replicas of a step that each go on at their own pace (docs/replicas.md): its state lies in a
parameter store, of which a replica reads values that are as late as was asked for by name."""

from __future__ import annotations

import concurrent.futures
import functools
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from baechi.jax import random_keys, stale_ranks, stale_saved
from baechi.jax.bound import choose
from baechi.jax.jit import jit
from baechi.jax.stale_batch import Batches, merged
from baechi.jax.stale_state import StaleState, arrays, copied
from baechi.replicas.arguments import StoreError, whole
from baechi.replicas.store import ParameterStore, StoreReport
from baechi.steps.compiled import as_key

S = TypeVar("S")


class StaleStep(Generic[S]):
    """A step of replicas with a bound of staleness; see `stale_step`."""

    def __init__(
        self,
        step: Callable[..., tuple[S, Any]],
        state: S,
        *,
        replicas: int,
        staleness: int,
        in_axes: Any = 0,
        bandwidth: float | None = None,
        order: str = "relative",
        revised: float | Mapping[str, float] | None = None,
        patience: float = 60.0,
        ahead: int = 2,
        checked: bool = False,
        ranks: str | None = None,
        restored: str | os.PathLike[str] | None = None,
        compiled: bool = True,
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
        **options: Any,
    ):
        self._step = step
        self._count = whole("the number of replicas", replicas, "how many there are")
        static = choose(step, static_argnums, static_argnames, "static")
        self._batches = Batches(step, static, in_axes, self._count)
        if refused := sorted({"machine", "replicas", "exchange", "donate_argnums"} & set(options)):
            raise TypeError(
                f"stale_step has no option {refused[0]!r}: each replica has a host device of its "
                "own, and the state is what it shares"
            )
        if staleness == 0 and bandwidth is not None:
            raise StoreError(
                f"bandwidth is {bandwidth} and staleness 0: what is sent between the calls' ends "
                "would be part of some replicas' state and not of others'; leave the bandwidth "
                "out, or give a staleness of 1 or more"
            )
        self._state = StaleState(state, self._count, compiled, revised)
        if not compiled and options:
            raise TypeError(
                f"stale_step has {min(options)!r}, an option of compiling, and compiled=False: "
                "leave one of them out"
            )
        self._ahead = whole("ahead", ahead, "how many calls may wait, at least 1")
        if self._ahead < 1:
            raise StoreError(f"ahead is {ahead}: give how many calls may wait, at least 1")
        self._known: set[Any] = set()  # the calls' shapes that are compiled
        self._calls: list[_Call] = []  # that may not have ended
        self._error: BaseException | None = None  # of a replica that has stopped
        given: dict[str, Any] = {
            "workers": self._count,
            "staleness": staleness,
            "budget": bandwidth,
            "order": order,
            "revised": self._state.revised,
            "patience": patience,
            "checked": checked,
        }
        make = functools.partial(_made, given=given, goes_on=None)
        alike = given | {"in_axes": in_axes}
        if restored is not None:
            saved = stale_saved.Saved(restored)
            saved.check(self._state.about())
            store = saved.store({key: value for key, value in given.items() if key != "revised"})
            tables = {name: store.read(name) for name in store.tables}
            first = self._state.own(0)
            self._state.put(tables, saved.own(len(first), first))
            alike["restored"] = saved.digest
            make = functools.partial(_made, given=given, goes_on=(tables, store))
        self._group = stale_ranks.join(
            ranks, make, self._state.tables, self._count, alike, patience, self._stop
        )
        self._is_compiled = compiled
        self._steps: dict[int, Callable[..., Any]] = dict.fromkeys(self._group.mine, step)
        if compiled:
            self._steps = {
                worker: jit(
                    step,
                    machine="host:1",
                    donate_argnums=(),
                    static_argnums=static_argnums,
                    static_argnames=static_argnames,
                    # Not later, in a replica's thread: the others would wait for it.
                    **({"replan": "never"} | options),
                )
                for worker in self._group.mine
            }
        self._queues: dict[int, queue.SimpleQueue[_Call | None]] = {
            worker: queue.SimpleQueue() for worker in self._group.mine
        }
        self._threads = [
            threading.Thread(target=self._work, args=(worker,), daemon=True)
            for worker in self._group.mine
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, *batch: Any, **named: Any) -> concurrent.futures.Future[Any]:
        """Gives each replica its part and returns: the result is what the step returns beside
        the state, of all replicas along a new first dimension. Waits while more than `ahead`
        calls have not ended."""
        if not self._queues:
            raise RuntimeError(
                "stale_step is called after close(), and its replicas' threads have ended: call it "
                "within its `with`, or before close(); state() and report() are there still"
            )
        if named:
            raise TypeError(
                f"stale_step is called with {min(named)!r} by name: give what follows the state by "
                "position, as in_axes are"
            )
        parts = self._batches.parts(batch)
        while len(self._calls) > self._ahead:
            self._calls[0].wait()
            self._settle()
        self._settle()
        if self._is_compiled:
            self._compile(parts, self._batches.static(batch))
        digest = self._group.digest(batch)
        call = _Call(parts, self._group, digest, self._state.check_same, self._stop)
        self._calls.append(call)
        if self._error is not None:  # since then: its thread takes no calls any more
            call.fail(self._error)
        for each in self._queues.values():
            each.put(call)
        return call.result

    def state(self) -> S:
        """The state with all updates of all calls, for which it waits."""
        self._finish_calls()
        return self._seen(self._group.values())

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the state with all updates of all calls, for which it waits, so that
        `stale_step(..., restored=file)` goes on from it. Of several ranks, all of which call it,
        the first one writes the file."""
        if not self._queues:
            raise RuntimeError(
                "stale_step is saved after close(), and its replicas have finished: save it within "
                "its `with`, or before close()"
            )
        self._finish_calls()
        own = self._state.own(self._group.mine[0])
        about = self._state.about()
        self._group.save(lambda store: stale_saved.write(file, store, own, about))

    def report(self) -> StoreReport:
        """What was sent, waited for, and how late reads were, so far. Of several ranks the first
        has it."""
        return self._group.report()

    def close(self) -> None:
        """Ends the replicas' threads, when they have done what they were given."""
        for each in self._queues.values():
            each.put(None)
        for thread in self._threads:
            thread.join()
        if self._queues:
            self._group.close()
        self._queues = {}

    def __enter__(self) -> StaleStep[S]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *rest: object) -> None:
        if error is not None:
            self._group.fail(None, error)
        self.close()

    def _seen(self, tables: dict[str, np.ndarray]) -> Any:
        return self._state.seen(self._group.mine[0], lambda name, rows: tables[name][rows])

    def _compile(self, parts: list[tuple[Any, ...]], static: dict[int, Any]) -> None:
        """For all replicas before any runs: nobody waits for another that still compiles."""
        dynamic = tuple(value for i, value in enumerate(parts[0]) if i not in static)
        leaves, tree = jax.tree.flatten(dynamic)
        shapes = tuple((np.shape(leaf), str(jax.numpy.result_type(leaf))) for leaf in leaves)
        known = tree, shapes, tuple((i, as_key(value)) for i, value in static.items())
        if known in self._known:
            return
        self._finish_calls()
        state = self._seen(self._state.tables)
        result = jax.eval_shape(
            lambda state, *rest: self._step(state, *merged(static, rest)), state, *dynamic
        )
        self._state.check_next(result)
        for worker, step in self._steps.items():
            jax.tree.map(arrays, step(state, *parts[worker]))
        self._group.meet("compiles the step")
        self._known.add(known)

    def _work(self, worker: int) -> None:
        try:
            with self._group.store.worker(worker):
                for call in self._given(worker):
                    rest, own = self._turn(worker, call.parts[worker])
                    call.end(worker, rest, own)
        except BaseException as error:
            self._group.fail(worker, error)
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        """A replica, or a rank, has failed."""
        # Its own rather than that of one that stops for it, whichever comes first.
        if self._error is None or isinstance(self._error, StoreError):
            self._error = error
        for each in list(self._calls):
            each.fail(error)

    def _given(self, worker: int) -> Iterator[_Call]:
        mine = self._queues[worker]
        while (call := mine.get()) is not None:
            yield call

    def _turn(self, worker: int, part: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """One clock of a replica: what its step computes beside the state, and what it keeps."""
        before = self._state.seen(worker, functools.partial(self._group.store.get, worker))
        # What is not compiled may change what it is given.
        given = before if self._is_compiled else jax.tree.map(copied, before)
        result = self._steps[worker](given, *part)
        if isinstance(result, tuple) and len(result) == 2:
            result = (jax.tree.map(arrays, result[0]), result[1])
        after = self._state.check_next(result)
        for table, rows, change in self._state.changes(before, after, self._count):
            self._group.store.inc(worker, table, rows, change)
        self._group.store.clock(worker)
        return jax.tree.map(arrays, result[1]), self._state.keep(worker, after)

    def _settle(self) -> None:
        """Forgets calls that have ended; raises what has stopped a replica."""
        while self._calls and self._calls[0].result.done():
            self._calls.pop(0)
        if self._error is not None:
            raise self._error

    def _finish_calls(self) -> None:
        for call in list(self._calls):
            call.wait()
        self._settle()


def stale_step(
    step: Callable[..., tuple[S, Any]],
    state: S,
    *,
    replicas: int,
    staleness: int,
    **options: Any,
) -> StaleStep[S]:
    """Trains with replicas whose state is late, by a bound.

    `step(state, *batch)` is that of one device: it returns the next state, and what else it
    computes. Each of `replicas=N` computes it of its part of the batch, and of the state as it
    sees it: with all replicas' changes but those of their last `staleness` calls, of which it
    has its own and maybe others. What a replica changes is divided by N and added to the state:
    with `staleness=0` the next state is the mean of the replicas' own, which for gradients of
    means over the batch is the step of the whole batch. That is what the state has of floating
    point, in float32 where it is shared; a count or a random key is each replica's own, and has to
    be the same at all.

        with baechi.stale_step(train, params, replicas=4, staleness=2) as step:
            for x, y in batches:
                losses = step(x, y)  # a future; the replicas' losses
            params = step.state()

    in_axes: the dimension that each argument beside the state is cut along, None for what all
        replicas have, as of `jax.vmap`.
    bandwidth: bytes per second, each way, that a replica sends and receives between its calls'
        ends, rows in the `order` of `ParameterStore`; None: what must be there, at the ends, and
        nothing else with `staleness=0`.
    revised: the size of steps that the store makes of gradients and that know how late these
        are (adaptive revision; without delay AdaGrad): what a replica's step changes is taken
        for its gradient's share, whatever that is multiplied by, so for a step that goes along
        the gradient and keeps nothing of it. For all arrays, or by the names of some,
        `{"state['w']": 0.5}`.
    static_argnums, static_argnames: hashable Python values, of which each set is a program, as of
        `baechi.jit`, but given by position, as all that follows the state; that is the step's
        argument 0. They are cut along nothing.
    ahead: how many calls may wait before the next one does.
    patience: seconds that a replica waits for another before an error names that.
    checked: every read of the state is compared with the bound.
    ranks: "launcher", the replicas are divided among the processes that mpirun, torchrun or srun
        has started, of one machine or several. All of them make the same calls with the same
        arguments, and get the same results; the first one has the store. None: threads.
    restored: a file that `step.save(file)` wrote: its state in place of the one that is given,
        whose structure, types and shapes have to be the same. The number of replicas may be
        another one. All ranks read it.
    compiled: False calls the step as it is, by a thread for each replica, with arrays of NumPy: of
        any framework.
    Others are those of `baechi.jit`, for the replicas' programs on one host device each.
    """
    return StaleStep(step, state, replicas=replicas, staleness=staleness, **options)


class _Call:
    """Parts of a batch, and what the replicas have made of them."""

    def __init__(
        self,
        parts: list[tuple[Any, ...]],
        group: stale_ranks.Alone,
        digest: bytes,
        check: Callable[[list[list[Any]]], None],
        stop: Callable[[BaseException], None],
    ):
        self.parts = parts
        self.result: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._group, self._digest = group, digest
        self._check, self._stop = check, stop
        self._made: stale_ranks.Made = {}
        self._lock = threading.Lock()

    def end(self, worker: int, made: Any, kept: list[Any]) -> None:
        """The last one here gives all of them."""
        with self._lock:
            self._made[worker] = made, kept
            if len(self._made) < len(self._group.mine) or self.result.done():
                return
        self._group.give(self._digest, self._made).add_done_callback(self._give)

    def _give(self, answer: concurrent.futures.Future[stale_ranks.Made]) -> None:
        """Those of all replicas."""
        try:
            in_order = [each for _, each in sorted(answer.result().items())]
            self._check([kept for _, kept in in_order])
            stacked = jax.tree.map(_stack, *(rest for rest, _ in in_order))
        except BaseException as error:
            return self._stop(error)
        with self._lock:
            if not self.result.done():
                self.result.set_result(stacked)

    def fail(self, error: BaseException) -> None:
        with self._lock:
            if not self.result.done():
                self.result.set_exception(error)

    def wait(self) -> None:
        concurrent.futures.wait([self.result])


def _made(
    tables: stale_ranks.Tables,
    given: Mapping[str, Any],
    goes_on: tuple[stale_ranks.Tables, ParameterStore] | None,
) -> ParameterStore:
    """A store of tables; goes_on: one that was restored has these."""
    if goes_on is not None and tables is goes_on[0]:
        return goes_on[1]
    return ParameterStore(tables, **given)


def _stack(*each: Any) -> Any:
    return (jax.numpy if random_keys.kind(each[0]) else np).stack(each)
