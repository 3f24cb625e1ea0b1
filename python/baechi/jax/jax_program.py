# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step on JAX's arrays: one call of its program, from flat arguments to its results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from baechi.common import users
from baechi.common.bytecode import Bytecode
from baechi.compiling.options import CompileOptions
from baechi.importer.jax.host_calls import HostCall
from baechi.importer.jax.signature import Signature, refuse_given_twice
from baechi.jax import random_keys
from baechi.jax.dispatch import Dispatcher
from baechi.pictures.picture import Picture
from baechi.steps import gpu_array, resident_jax
from baechi.steps.library import StepLibrary
from baechi.steps.program import Program, time_text
from baechi.steps.resident import ResidentArray, Residents
from baechi.steps.same_arrays import SameArrays

if TYPE_CHECKING:
    from baechi.jax.quick import Kind

MISSED = object()
"""Instead of results: a quick call is not for these arguments."""

Quick = Callable[[list[Any]], Any]


class JaxProgram(Program):
    """The step for one set of shapes, types and static values.

    returned: the random generators of the flat results; None for what is no key.
    turn: is held while the program is used.
    library, module, options: as for Program.
    host_calls: what JAX computes in every step; such steps are waited for.
    name: of the step, for errors of calls that were dispatched.
    """

    def __init__(
        self,
        signature: Signature,
        returned: list[str | None],
        turn: threading.RLock,
        module: str | Bytecode | None,
        options: CompileOptions | None,
        library: StepLibrary | None = None,
        host_calls: Sequence[HostCall] = (),
        name: str = "step",
    ):
        super().__init__(module, options, library)
        self.signature, self._returned = signature, returned
        if host_calls:
            _tell(host_calls)
            self.library.set_host_calls(host_calls)
        self._argument_names = [argument.name for argument in self.signature.arguments]
        self._updated = {
            i: a.updated_by for i, a in enumerate(signature.arguments) if a.updated_by is not None
        }
        types = {i: signature.result_types[k] for i, k in self._updated.items()}
        kinds = {
            i: (tuple(kind.shape), np.dtype(kind.dtype), bool(kind.weak_type))
            for i, kind in types.items()
        }
        self._residents = Residents(self.library, turn, kinds)
        self._turn, self._name, self._has_host_calls = turn, name, bool(host_calls)
        self._dispatcher: Dispatcher | None = None
        self.returns_early = False  # calls on GPUs do, too
        self._there = SameArrays()
        self._overlaps = False
        self._overlap: str | None = None  # what `report` says of calls that should overlap
        self.calls = 0

    def _again(self, options: CompileOptions) -> JaxProgram:
        made = JaxProgram(
            self.signature, self._returned, self._turn, self.module, options, name=self._name
        )
        made.calls = self.calls
        return made

    def overlap_calls(self, why_not: str = "") -> None:
        """Has calls that are dispatched overlap, where they can. Before the first `quick_for`.
        why_not: they cannot, for this reason."""
        why_not = why_not or self.library.overlap_calls()
        self._overlaps = not why_not
        self._overlap = (
            f"calls run one by one: {why_not}"
            if why_not
            else "a device begins its next call when its own part of this one has ended"
        )

    def quick_for(self, kinds: Sequence[Kind], dispatches: bool = False) -> Quick | None:
        """`run` for arguments of just these kinds, faster; None: the longer way alone knows
        the step's border (random keys), or the extension is not built. dispatches: it returns
        while the step runs, but for steps with host calls."""
        try:
            from baechi.graphs.native import _placement
            from baechi.jax.quick import QuickCall
        except ImportError:
            return None
        signature = self.signature
        if any(generator is not None for generator in self._returned) or any(
            map(_has_no_values, signature.result_types)
        ):
            return None
        call = QuickCall(_placement, self.library, kinds, self._updated, signature.result_types)
        residents, updated = self._residents, list(self._updated.items())
        unflatten = signature.result_tree.unflatten

        def run(leaves: list[Any]) -> Any:
            self.settle()
            done = call(leaves, residents.holders)
            if done is None:
                return MISSED
            self._there.forget()
            ns, results = done
            self.calls += 1
            if ns < 0:
                self.library.fail()
            self._wall_ns.append(ns)
            for i, k in updated:
                results[k] = residents.after_step(i)
            return unflatten(results)

        if not dispatches or self._has_host_calls:
            return run
        if self._dispatcher is None:
            queue = self.library.queue(_placement)
            self._dispatcher = Dispatcher(self._name, self.library, queue, self._turn)
        dispatcher = self._dispatcher

        def dispatch(leaves: list[Any]) -> Any:
            dispatcher.retire()
            dispatcher.raise_untold()
            if not call.is_direct() or dispatcher.is_forked():
                return run(leaves)
            done = call.dispatch(leaves, residents.holders, dispatcher)
            if done is None:
                return MISSED
            self._there.forget()
            flight, results = done
            self.calls += 1
            for i, k in updated:
                results[k] = residents.after_step(i, flight)
            return unflatten(results)

        return dispatch

    def settle(self) -> None:
        """Waits for calls that were dispatched. Their errors stay to be raised."""
        if self._dispatcher is not None:
            self._wall_ns += self._dispatcher.settle()

    def report(self) -> str:
        self.settle()
        text = super().report()
        if self._overlap is None:
            return text
        head, table = text.split("\n\n", 1)
        return f"{head}\noverlap    {self._overlap}\n\n{table}"

    def _predicted(self) -> str:
        predicted = self.library.program["predicted"]
        if not self._overlaps or "period_ns" not in predicted:
            return super()._predicted()
        text = f"{time_text(predicted['period_ns'])} from one call to the next"
        if predicted.get("objective") != "period":
            return text
        return f"{text}, lower bound {time_text(predicted['lower_bound_ns'])}"

    def picture(self) -> Picture:
        self.settle()
        return super().picture()

    def run(self, leaves: list[Any]) -> Any:
        if self._dispatcher is not None:
            self.settle()
            self._dispatcher.raise_untold()
        for leaf in leaves:
            if isinstance(leaf, ResidentArray):
                leaf.check()
        refuse_given_twice(self._argument_names, leaves, self._updated)
        self.calls += 1
        signature, updated = self.signature, self._updated
        on_gpu = any(map(gpu_array.is_on_gpu, leaves))
        if on_gpu:
            self._endings.retire()
        moved = {
            i: self._as_argument(i, leaf)
            for i, leaf in enumerate(leaves)
            if not self._residents.holds(i, leaf) and not self._there.holds(i, leaf)
        }
        self._residents.before_step({i: leaves[i] for i in updated})
        there = self._there.forget()
        made = self._places_on_gpu(updated.values()) if on_gpu else {}
        if on_gpu:
            self._step_on_gpu(moved, made)
        else:
            for i, value in moved.items():
                self.library.set_argument(i, value)
            self.step()
        self._there.keep(there, leaves, moved, updated)
        results: list[Any] = [None] * len(signature.results)
        for i, k in updated.items():
            results[k] = self._residents.after_step(i)
        for k, result in enumerate(results):
            if result is None:
                results[k] = resident_jax.on_gpu(made[k]) if k in made else self._result(k)
        for k, generator in enumerate(self._returned):
            if generator is not None:
                results[k] = random_keys.wrap(np.asarray(results[k]), generator)
        return jax.tree.unflatten(signature.result_tree, results)

    def _step_on_gpu(
        self, moved: Mapping[int, Any], made: Mapping[int, gpu_array.GpuArray]
    ) -> None:
        """A step whose arrays lie on a GPU, which may go on when it returns: but not where somebody
        could change an argument meanwhile, or a result is to be read on the host."""
        fixed = all(
            isinstance(value, np.ndarray) or gpu_array.is_fixed(value) for value in moved.values()
        )
        whole = len(made) + len(self._updated) == len(self.signature.result_types)
        try:
            if self.returns_early and fixed and whole and made and self._first is None:
                gpu = next(iter(made.values())).gpu
                if (ending := self.begin_step(moved, made, gpu)) is not None:
                    for array in made.values():
                        array.comes_with(ending)
                    for value in moved.values():
                        if isinstance(value, gpu_array.GpuArray):
                            value.is_read_until(ending)
            else:
                self.step(moved, made)
        except BaseException:
            # The GPU may still write them.
            for array in made.values():
                array.await_before_reuse()
            raise

    def _places_on_gpu(self, updated: Collection[int]) -> dict[int, gpu_array.GpuArray]:
        """Memory for the results that lie on a GPU, there, but for those that stay in the places of
        arguments: where arguments came in a GPU's memory."""
        made = {}
        for k, kind in enumerate(self.signature.result_types):
            device = gpu_array.device_of(self.library, "results", k)
            if (
                device is not None
                and k not in updated
                and not _has_no_values(kind)
                and not kind.weak_type
                and self._returned[k] is None
            ):
                gpu = gpu_array.gpu_of(self.library.program, device)
                made[k] = gpu_array.GpuArray(tuple(kind.shape), np.dtype(kind.dtype), gpu)
        return made

    def _result(self, index: int) -> Any:
        kind = self.signature.result_types[index]
        if _has_no_values(kind):
            return np.zeros(kind.shape, kind.dtype)
        # The compiler's integers have no sign.
        value = self.library.result(index).view(kind.dtype)
        return resident_jax.as_array(value, kind.weak_type)

    def _as_argument(self, index: int, leaf: Any) -> Any:
        expected = self.signature.arguments[index].init
        if (
            gpu_array.is_on_gpu(leaf)
            and np.dtype(leaf.dtype) == np.dtype(expected.dtype)
            and tuple(leaf.shape) == tuple(expected.shape)
            and gpu_array.device_of(self.library, "arguments", index) is not None
        ):
            return leaf  # by DLPack
        return np.ascontiguousarray(np.asarray(leaf), expected.dtype).reshape(expected.shape)


def _has_no_values(kind: jax.ShapeDtypeStruct) -> bool:
    """Whether a result is the derivative by what is no real number."""
    return kind.dtype == jax.dtypes.float0


def _tell(calls: Sequence[HostCall]) -> None:
    """What JAX computes in every step, once for each line."""
    about = {str(each): call.ns for call in calls for each in call.operations}
    lines = [f"  {operation}, about {ns / 1e3:.0f} us" for operation, ns in about.items()]
    users.warn(
        "JAX computes what has no lowering, on a host device in every step "
        "(docs/host-calls.md):\n" + "\n".join(lines)
    )
