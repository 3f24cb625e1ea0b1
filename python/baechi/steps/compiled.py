# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiled steps and models of all front ends tell of themselves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from baechi.pictures import svg
from baechi.steps.host_calls import refuse_within_host_calls
from baechi.steps.program import Program

if TYPE_CHECKING:
    from baechi.pictures.picture import Picture
    from baechi.steps.memory import LeastMemory, Memory

P = TypeVar("P", bound=Program)


# Tracing and compiling change what the whole process shares (PyTorch's flags and generators).
# Taken before an object's own turn, never within it, so that no two threads wait for each other.
_COMPILING = threading.RLock()


def as_key(value: Any) -> Any:
    """A Python value that a program has in its code, so that only the same number of
    the same type finds it: 1, 1.0 and True are equal, as are 0.0 and -0.0."""
    if type(value) is tuple:
        return tuple, tuple(map(as_key, value))
    if isinstance(value, float):
        return type(value), value.hex()
    return type(value), value


class Compiled(Generic[P]):
    """Has the program that was called last as `_latest`; None: there is none yet.

    A call sets arguments, runs the step and reads results, in places that all calls
    share: calls from several threads take turns.
    """

    def __init__(self) -> None:
        self._latest: P | None = None
        self._turn = threading.RLock()

    @contextlib.contextmanager
    def _whole_call(self, is_compiled: Callable[[], bool]) -> Iterator[None]:
        """Holds this object's turn, and that of compiling unless `is_compiled`."""
        refuse_within_host_calls("a compiled step is called")
        with self._turn:
            if is_compiled():
                yield
                return
        with self._compiling(), self._turn:
            yield

    @contextlib.contextmanager
    def _compiling(self) -> Iterator[None]:
        """Holds the turn of compiling."""
        with _COMPILING:
            yield

    @property
    def placement(self) -> dict[str, str]:
        """The device of every operator and argument of the program called last."""
        return self._called().placement()

    def report(self) -> str:
        """The program called last: prediction, measured steps, devices."""
        return self._called().report()

    def explain(self, name: str = "*") -> str:
        """Why operators of the program called last, by a pattern of names, are
        where they are: for each device the earliest start, the bytes needed and
        free, and the step's time with the operator there."""
        return self._called().explain(name)

    def memory(self) -> Memory:
        """What the program called last holds on each device, in bytes: its arena, of it what
        stays between steps, and the limit."""
        return self._called().memory()

    def least_memory(self, devices: int | None = None) -> LeastMemory:
        """The least memory on each of so many equal devices (as many as it has) that
        a placement of the program called last is found for: it is compiled some ten times,
        with its own options, but with no operator cut to fit. Nothing promises that there is
        none with less, but for what is proven. Raises CompileError."""
        return self._called().least_memory(devices)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a compiled step holds threads and devices' memory, which pickle cannot take: compile "
            "it in each process (of baechi.jit: save step.lower(...).compile() and load that)"
        )

    def picture(self) -> Picture:
        """What `baechi.plot_timeline` and `baechi.plot_memory` draw: the plan of the
        program called last."""
        return self._called().picture()

    def _repr_html_(self) -> str | None:
        """In notebooks: the same, once the step was called."""
        return None if self._latest is None else svg.to_html(self.picture())

    def _called(self) -> P:
        if self._latest is None:
            raise RuntimeError("there is no program yet: call it first")
        return self._latest
