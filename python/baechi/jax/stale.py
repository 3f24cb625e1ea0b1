# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replicas of a step that each go on at their own pace (docs/replicas.md): its state lies in a
parameter store, of which a replica reads values that are as late as was asked for by name."""

from __future__ import annotations

import concurrent.futures
import copy
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from baechi.jax.in_axes import axes_of_arguments, axes_of_leaves
from baechi.jax.jit import jit
from baechi.replicas.arguments import StoreError, whole
from baechi.replicas.store import ParameterStore, StoreReport

S = TypeVar("S")

# Of a table's rows; a row is what the store sends at once.
_WIDEST = 1024


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
        patience: float = 60.0,
        ahead: int = 2,
        checked: bool = False,
        compiled: bool = True,
        **options: Any,
    ):
        self._step = step
        self._count = whole("the number of replicas", replicas, "how many there are")
        self._axes = in_axes
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
        paths, self._tree = jax.tree.flatten_with_path(state)
        self._leaves = [_Leaf(jax.tree_util.keystr(path), leaf) for path, leaf in paths]
        starts = {leaf.table: leaf.rows_of(value) for leaf, (_, value) in zip(self._leaves, paths)}
        self._store = ParameterStore(
            starts,
            workers=self._count,
            staleness=staleness,
            budget=bandwidth,
            order=order,
            patience=patience,
            checked=checked,
        )
        if not compiled and options:
            raise TypeError(
                f"stale_step has {min(options)!r}, an option of compiling, and compiled=False: "
                "leave one of them out"
            )
        self._is_compiled = compiled
        self._steps: list[Callable[..., Any]] = [step] * self._count
        if compiled:
            self._steps = [
                jit(step, machine="host:1", donate_argnums=(), **options)
                for _ in range(self._count)
            ]
        self._ahead = whole("ahead", ahead, "how many calls may wait, at least 1")
        if self._ahead < 1:
            raise StoreError(f"ahead is {ahead}: give how many calls may wait, at least 1")
        self._known: set[Any] = set()  # the calls' shapes that are compiled
        self._calls: list[_Call] = []  # that may not have ended
        self._error: BaseException | None = None  # of a replica that has stopped
        self._queues: list[queue.SimpleQueue[_Call | None]] = [
            queue.SimpleQueue() for _ in range(self._count)
        ]
        self._threads = [
            threading.Thread(target=self._work, args=(worker,), daemon=True)
            for worker in range(self._count)
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, *batch: Any) -> concurrent.futures.Future[Any]:
        """Gives each replica its part and returns: the result is what the step returns beside
        the state, of all replicas along a new first dimension. Waits while more than `ahead`
        calls have not ended."""
        if not self._queues:
            raise RuntimeError(
                "stale_step is called after close(), and its replicas' threads have ended: call it "
                "within its `with`, or before close(); state() and report() are there still"
            )
        parts = self._parts(batch)
        while len(self._calls) > self._ahead:
            self._calls[0].wait()
            self._settle()
        self._settle()
        if self._is_compiled:
            self._compile(parts)
        call = _Call(parts)
        self._calls.append(call)
        if self._error is not None:  # since then: its thread takes no calls any more
            call.fail(self._error)
        for each in self._queues:
            each.put(call)
        return call.result

    def state(self) -> S:
        """The state with all updates of all calls, for which it waits."""
        self._finish_calls()
        self._store.drain()
        values = [leaf.value_of(self._store.read(leaf.table)) for leaf in self._leaves]
        return jax.tree.unflatten(self._tree, values)

    def report(self) -> StoreReport:
        """What was sent, waited for, and how late reads were, so far."""
        return self._store.report()

    def close(self) -> None:
        """Ends the replicas' threads, when they have done what they were given."""
        for each in self._queues:
            each.put(None)
        for thread in self._threads:
            thread.join()
        self._queues = []

    def __enter__(self) -> StaleStep[S]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _parts(self, batch: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        axes = axes_of_arguments(self._axes, len(batch), "beside its state")
        leaves, tree = jax.tree.flatten(batch)
        cut = [
            _parts_of(leaf, axis, self._count)
            for axis, leaf in zip(axes_of_leaves(axes, batch, self._count), leaves, strict=True)
        ]
        return [jax.tree.unflatten(tree, mine) for mine in zip(*cut, strict=True)] or [
            batch
        ] * self._count

    def _compile(self, parts: list[tuple[Any, ...]]) -> None:
        """For all replicas before any runs: nobody waits for another that still compiles."""
        key = jax.tree.map(lambda leaf: (np.shape(leaf), jax.numpy.result_type(leaf)), parts[0])
        known = str(key)
        if known in self._known:
            return
        self._finish_calls()
        values = [leaf.value_of(self._store.read(leaf.table)) for leaf in self._leaves]
        state = jax.tree.unflatten(self._tree, values)
        result = jax.eval_shape(self._step, state, *parts[0])
        _check_next(result, self._tree, self._leaves)
        for step, mine in zip(self._steps, parts, strict=True):
            jax.tree.map(np.asarray, step(state, *mine))
        self._known.add(known)

    def _work(self, worker: int) -> None:
        try:
            with self._store.worker(worker):
                for call in self._given(worker):
                    call.end(worker, self._turn(worker, call.parts[worker]))
        except BaseException as error:
            self._error = error
            for each in list(self._calls):
                each.fail(error)

    def _given(self, worker: int) -> Iterator[_Call]:
        mine = self._queues[worker]
        while (call := mine.get()) is not None:
            yield call

    def _turn(self, worker: int, part: tuple[Any, ...]) -> Any:
        """One clock of a replica."""
        before = [
            leaf.value_of(self._store.get(worker, leaf.table, range(leaf.rows)))
            for leaf in self._leaves
        ]
        own = before if self._is_compiled else [value.copy() for value in before]  # to be changed
        result = self._steps[worker](jax.tree.unflatten(self._tree, own), *part)
        after = _next_state(result, self._tree, self._leaves)
        rest = result[1]
        for leaf, old, new in zip(self._leaves, before, after, strict=True):
            change = (new - old) / np.float32(self._count)
            self._store.inc(worker, leaf.table, range(leaf.rows), leaf.rows_of(change))
        self._store.clock(worker)
        return jax.tree.map(np.asarray, rest)

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


def stale_step(step: Callable[..., tuple[S, Any]], state: S, **options: Any) -> StaleStep[S]:
    """Trains with replicas whose state is late, by a bound.

    `step(state, *batch)` is that of one device: it returns the next state, and what else it
    computes. Each of `replicas=N` computes it of its part of the batch, and of the state as it
    sees it: with all replicas' changes but those of their last `staleness` calls, of which it
    has its own and maybe others. What a replica changes is divided by N and added to the state:
    with `staleness=0` the next state is the mean of the replicas' own, which for gradients of
    means over the batch is the step of the whole batch.

        with baechi.stale_step(train, params, replicas=4, staleness=2) as step:
            for x, y in batches:
                losses = step(x, y)  # a future; the replicas' losses
            params = step.state()

    in_axes: the dimension that each argument beside the state is cut along, None for what all
        replicas have, as of `jax.vmap`.
    bandwidth: bytes per second, each way, that a replica sends and receives between its calls'
        ends, rows in the `order` of `ParameterStore`; None: what must be there, at the ends, and
        nothing else with `staleness=0`.
    ahead: how many calls may wait before the next one does.
    patience: seconds that a replica waits for another before an error names that.
    checked: every read of the state is compared with the bound.
    compiled: False calls the step as it is, by a thread for each replica, with arrays of NumPy: of
        any framework.
    Others are those of `baechi.jit`, for the replicas' programs on one host device each.
    """
    return StaleStep(step, state, **options)


class _Leaf:
    """An array of the state as a table of rows."""

    def __init__(self, place: str, value: Any):
        array = np.asarray(value)
        if array.dtype != np.float32 or array.size == 0:
            raise StoreError(
                f"state{place} is of type {array.dtype} and shape {array.shape}: what replicas "
                "share is float32; convert it, or let the step keep it in another argument"
            )
        self.table, self.shape, self._size = f"state{place}", array.shape, array.size
        self._width = min(array.size, _WIDEST)
        self.rows = -(-array.size // self._width)

    def rows_of(self, value: Any) -> np.ndarray:
        flat = np.zeros(self.rows * self._width, np.float32)
        flat[: self._size] = np.asarray(value, np.float32).reshape(-1)
        return flat.reshape(self.rows, self._width)

    def value_of(self, rows: np.ndarray) -> np.ndarray:
        return rows.reshape(-1)[: self._size].reshape(self.shape)


class _Call:
    """Parts of a batch, and what the replicas have made of them."""

    def __init__(self, parts: list[tuple[Any, ...]]):
        self.parts = parts
        self.result: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._made: dict[int, Any] = {}
        self._lock = threading.Lock()

    def end(self, worker: int, made: Any) -> None:
        with self._lock:
            self._made[worker] = made
            if len(self._made) < len(self.parts) or self.result.done():
                return
            in_order = [self._made[each] for each in range(len(self.parts))]
            self.result.set_result(jax.tree.map(lambda *each: np.stack(each), *in_order))

    def fail(self, error: BaseException) -> None:
        with self._lock:
            if not self.result.done():
                self.result.set_exception(error)

    def wait(self) -> None:
        concurrent.futures.wait([self.result])


def _parts_of(leaf: Any, axis: int | None, count: int) -> list[Any]:
    """Of their own: the call returns before they are used, and what is no array of JAX's may be
    changed after it, by the caller or by a replica's step."""
    if axis is not None:
        return [part.copy() for part in np.split(np.asarray(leaf), count, axis)]
    if isinstance(leaf, jax.Array):
        return [leaf] * count
    return [copy.deepcopy(leaf) for _ in range(count)]


def _next_state(result: Any, tree: Any, leaves: list[_Leaf]) -> list[np.ndarray]:
    """The arrays of the next state."""
    if isinstance(result, tuple) and len(result) == 2:
        result = (jax.tree.map(np.asarray, result[0]), result[1])
    return _check_next(result, tree, leaves)


def _check_next(result: Any, tree: Any, leaves: list[_Leaf]) -> Any:
    """The leaves of the next state. Raises TypeError where it is another."""
    mend = "a step of stale_step returns (the next state, what else it computes)"
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"the step returns {type(result).__name__}: {mend}")
    found, made = jax.tree.flatten(result[0])
    if made != tree:
        raise TypeError(f"the next state has the structure {made}, and the state {tree}: {mend}")
    for leaf, next_one in zip(leaves, found, strict=True):
        if next_one.shape != leaf.shape or next_one.dtype != np.float32:
            raise TypeError(
                f"the next {leaf.table} is {next_one.dtype} of shape {next_one.shape}, not "
                f"float32 of {leaf.shape}: {mend}"
            )
    return found
