# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step library (docs/step-library.md) as a Python object."""

from __future__ import annotations

import ctypes
import json
import math
import os
import pathlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from baechi.steps import dlpack
from baechi.steps.host_calls import HostCall, computing
from baechi.steps.library_file import StepError, check, renamed

TYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "i1": np.bool_,
}


def _type_of(dtype: np.dtype) -> str:
    """A step's, whose integers have no signs; "" where it has none."""
    if dtype == ml_dtypes.bfloat16:
        return "bf16"
    prefix = {"f": "f", "i": "i", "u": "i"}.get(dtype.kind, "")
    name = "i1" if dtype == np.bool_ else f"{prefix}{8 * dtype.itemsize}"
    return name if name in TYPES and dtype.isnative else ""


_ALIGNMENT = 64  # bytes
# What devices that were left behind within a kernel may still read.
_LEFT_BEHIND: list[list[Any]] = []


def own_memory(shape: Sequence[int], kind: np.dtype) -> np.ndarray:
    """An array in memory that it alone holds, aligned as XLA's: JAX and whoever takes
    arrays by DLPack take it as it is, without a copy."""
    size = math.prod(shape) * kind.itemsize
    room = np.empty(size + _ALIGNMENT, np.uint8)
    first = -room.ctypes.data % _ALIGNMENT
    return room[first : first + size].view(kind).reshape(shape)


class StepLibrary:
    """An opened step: a thread and an arena for each device.

    `program` is the manifest (docs/program-format.md) as Python data.
    """

    def __init__(self, file: str | pathlib.Path):
        file = pathlib.Path(file)
        self._step: ctypes.c_void_p | None = None
        self._raised: BaseException | None = None  # by a host call, which has ended the step
        self._queue: Any = None  # the extension's, of calls that were dispatched
        self._overlaps = False
        check(file)
        prefix = re.sub("[^0-9A-Za-z]", "_", file.stem.removeprefix("lib"))
        prefix = f"_{prefix}" if prefix[:1].isdigit() else prefix
        try:
            library = ctypes.CDLL(str(file.absolute()))
        except OSError as error:
            raise StepError(f"{file}: cannot be loaded: {error}") from error
        try:
            self._functions = {
                name: getattr(library, f"{prefix}_{name}")
                for name in (
                    "open",
                    "close",
                    "set_argument",
                    "get_argument",
                    "run",
                    "set_host_calls",
                    "get_result",
                    "call",
                    "wall_ns",
                    "error",
                    "program",
                )
            }
        except AttributeError as error:
            raise StepError(renamed(file, prefix)) from error
        # Libraries that were written before calls could overlap, be timed, go on, or read
        # arguments where they are lack these.
        for name in (
            "overlap",
            "why_separate",
            "record_times",
            "operator_ns",
            "begin",
            "overlap_lending",
            "call_lending",
            "usable",
        ):
            if hasattr(library, f"{prefix}_{name}"):
                self._functions[name] = getattr(library, f"{prefix}_{name}")
        for name in ("overlap", "why_separate"):
            if name in self._functions:
                self._functions[name].restype = ctypes.c_char_p
        for name, kind in (
            ("open", ctypes.c_void_p),
            ("close", None),
            ("wall_ns", ctypes.c_int64),
            ("error", ctypes.c_char_p),
            ("program", ctypes.c_char_p),
        ):
            self._functions[name].restype = kind
        self.program: dict[str, Any] = json.loads(self._functions["program"]())
        message = ctypes.create_string_buffer(2000)
        opened = self._functions["open"](message, ctypes.c_size_t(len(message)))
        if not opened:
            raise StepError(message.value.decode(errors="replace"))
        self._step = ctypes.c_void_p(opened)
        # The file may be gone before the step is.
        self._file = open(file, "rb")

    def set_host_calls(self, calls: Sequence[HostCall]) -> None:
        """Lets Python compute what the program only declares (docs/host-calls.md)."""

        def note(error: BaseException) -> None:
            self._raised = error

        self._settle()
        self._computing = computing(calls, note)  # lives as long as the step
        if self._functions["set_host_calls"](self._step, self._computing, None):
            self.fail()

    def close(self) -> None:
        if self._step:
            if self._queue is not None:
                self._queue.end()
            self._functions["close"](self._step)
            self._step = None
            self._file.close()

    __del__ = close

    def content(self) -> bytes:
        """Of the file that was opened."""
        return os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, 0)

    def set_argument(self, index: int, value: Any) -> None:
        """An array of NumPy, or of whoever gives it by DLPack, on the host or on the GPU where
        the argument lies: it is read where it is. It must have ended what it does to it."""
        if isinstance(value, np.ndarray):
            self._check_numpy("arguments", index, value, writes=False)
            self._move("set_argument", index, value)
        else:
            self._lend("set_argument", index, value)

    def argument(self, index: int) -> np.ndarray:
        return self._read("get_argument", index, self.program["arguments"][index])

    def read_argument(self, index: int, value: Any) -> None:
        """An argument's value into an array of the caller's, as `set_argument` takes one."""
        if isinstance(value, np.ndarray):
            self._move("get_argument", index, value)
        else:
            self._lend("get_argument", index, value)

    def result(self, index: int) -> np.ndarray:
        return self._read("get_result", index, self.program["results"][index])

    def read_result(self, index: int, value: Any) -> None:
        """A result into an array of the caller's, as `set_argument` takes one."""
        if isinstance(value, np.ndarray):
            self._check_numpy("results", index, value, writes=True)
            self._move("get_result", index, value)
        else:
            self._lend("get_result", index, value)

    def run(self) -> None:
        """One step on all devices."""
        self._settle()
        if self._functions["run"](self._step):
            self.fail()

    def call(
        self,
        arguments: Mapping[int, Any],
        results: Mapping[int, Any],
        lent: Collection[int] = (),
    ) -> None:
        """Sets arguments, runs a step and reads results into arrays of the caller's, which are as
        `set_argument` and `read_result` take them. What lies on a GPU is copied there as parts of
        the step, after what others have begun to do to it: the step alone is waited for.

        lent: arguments that host devices may read where they are, so that they have no value
        after the call (docs/runtime.md). Nobody writes to them until it has returned."""
        places, kept = self._places(arguments, results)
        infos = self.program["arguments"]
        taken = [i for i in lent if infos[i].get("lendable") and i in arguments]
        if not taken or "call_lending" not in self._functions:
            failed = self._functions["call"](self._step, *places)
        else:
            flags = (ctypes.c_ubyte * len(infos))()
            for index in taken:
                flags[index] = 1
            failed = self._functions["call_lending"](self._step, places[0], flags, places[1])
            if failed and not self._functions["usable"](self._step):
                _LEFT_BEHIND.append(kept)
        if failed:
            self.fail()

    def begin(
        self, arguments: Mapping[int, Any], results: Mapping[int, Any]
    ) -> tuple[int, Any] | None:
        """The same, but where a GPU has all of the step and its results it returns when the GPU has
        been told all of it: a CUevent that is reached when the call has ended, and what must stay
        until then. None: it has ended."""
        if "begin" not in self._functions:
            self.call(arguments, results)
            return None
        places, kept = self._places(arguments, results)
        end = ctypes.c_void_p()
        failed = self._functions["begin"](self._step, *places, ctypes.byref(end))
        if failed:
            self.fail()
        return (end.value, kept) if end.value else None

    def _places(
        self, arguments: Mapping[int, Any], results: Mapping[int, Any]
    ) -> tuple[list[Any], list[Any]]:
        """Where a call's arrays lie, and what keeps them there."""
        self._settle()
        kept, places = [], []
        for border, values in (("arguments", arguments), ("results", results)):
            there = (ctypes.c_void_p * len(self.program[border]))()
            for index, value in values.items():
                there[index], owner = self._place(border, index, value)
                kept.append(owner)
            places.append(there)
        return places, kept

    def _place(self, border: str, index: int, value: Any) -> tuple[int, Any]:
        """Where an array lies, which fits an argument (or result), and what keeps it there."""
        writes = border == "results"
        if isinstance(value, np.ndarray):
            self._check_numpy(border, index, value, writes=writes)
            return value.ctypes.data, value
        array = self._borrow(border, index, value, writes=writes)
        return array.address, array

    @property
    def is_open(self) -> bool:
        return self._step is not None

    def addresses(self) -> tuple[int, int, int, int]:
        """Of the functions `call`, `wall_ns` and `error`, and of the opened step."""
        assert self._step is not None
        call, wall_ns, error = map(self._address, ("call", "wall_ns", "error"))
        return call, wall_ns, error, self._step.value or 0

    def queue(self, native: Any) -> Any:
        """Of calls that run while Python goes on: every other use of the step waits for
        them. native: the extension."""
        if self._queue is None:
            lends = any(argument.get("lendable") for argument in self.program["arguments"])
            self._queue = native.step_queue(
                *self.addresses(),
                lending=self._address("call_lending") if lends else 0,
                usable=self._address("usable") if lends else 0,
                overlap=self._address("overlap") if self._overlaps else 0,
                overlap_lending=self._address("overlap_lending") if lends else 0,
                devices=len(self.program["devices"]),
            )
        return self._queue

    def _address(self, name: str) -> int:
        """Of a function; 0 where the library lacks it."""
        if name not in self._functions:
            return 0
        return ctypes.cast(self._functions[name], ctypes.c_void_p).value or 0

    def overlap_calls(self) -> str:
        """Has the queue's calls overlap: a device begins its next one when its own part of
        this one has ended. Why they cannot; empty: they will. Before there is a `queue`."""
        assert self._queue is None
        if sum(bool(device["operators"]) for device in self.program["devices"]) < 2:
            return "one device has all of the step"
        if "why_separate" not in self._functions:
            return "an earlier version of Baechi wrote the library: write it again"
        if why := self._functions["why_separate"](self._step):
            return f"steps {why.decode(errors='replace')} do not overlap"
        self._overlaps = True
        return ""

    def _settle(self) -> None:
        if self._queue is not None:
            self._queue.settle()

    @property
    def wall_ns(self) -> int:
        """Duration of the last step."""
        self._settle()
        return self._functions["wall_ns"](self._step)

    def record_times(self, wanted: bool) -> None:
        """From the next step on, what `operator_ns` says is recorded, or not any more."""
        self._settle()
        if self._functions["record_times"](self._step, ctypes.c_int(wanted)):
            self.fail()

    def operator_ns(self, device: int) -> list[int]:
        """What each operator of a device took in the last step, in the manifest's order."""
        count = len(self.program["devices"][device]["operators"])
        times = (ctypes.c_int64 * count)()
        if self._functions["operator_ns"](
            self._step, ctypes.c_size_t(device), times, ctypes.c_size_t(count)
        ):
            self.fail()
        return list(times)

    def _read(self, function: str, index: int, info: dict[str, Any]) -> np.ndarray:
        value = own_memory(info["shape"], np.dtype(TYPES[info["type"]]))
        self._move(function, index, value)
        return value

    def _lend(self, function: str, index: int, value: Any) -> None:
        """Lets a function of the library have an array of DLPack's, where it fits."""
        writes = function != "set_argument"
        border = "results" if function == "get_result" else "arguments"
        self._settle()
        array = self._borrow(border, index, value, writes=writes)
        data, size = ctypes.c_void_p(array.address or None), ctypes.c_size_t(array.bytes)
        if self._functions[function](self._step, ctypes.c_size_t(index), data, size):
            self.fail()

    def _borrow(self, border: str, index: int, value: Any, *, writes: bool) -> dlpack.Borrowed:
        if not dlpack.is_array(value):
            raise TypeError(
                f"{type(value).__name__} is no array: give one of NumPy, or one with __dlpack__"
            )
        array = dlpack.borrow(value)
        if 0 <= index < len(self.program[border]):  # else the library says so
            self._check_lent(self.program[border][index], array, writes)
        return array

    def _check_numpy(self, border: str, index: int, value: np.ndarray, writes: bool) -> None:
        if not 0 <= index < len(self.program[border]):
            return  # the library says so
        info = self.program[border][index]
        # np.ascontiguousarray makes one dimension of none.
        shape = () if value.shape == (1,) and not info["shape"] else value.shape
        self._check_fits(
            info,
            _type_of(value.dtype),
            shape,
            contiguous=value.flags.c_contiguous,
            writable=value.flags.writeable or not writes,
        )

    @staticmethod
    def _check_fits(
        info: dict[str, Any], type: str, shape: tuple[int, ...], *, contiguous: bool, writable: bool
    ) -> None:
        what = f"'{info['name']}'"
        if type != info["type"] or shape != tuple(info["shape"]):
            raise TypeError(
                f"{what} is {info['type']} of shape {tuple(info['shape'])}, the array is "
                f"{type or 'of a type that no step has'} of shape {shape}"
            )
        if not contiguous:
            raise BufferError(f"{what}: the array is not in C's order: give a copy that is")
        if not writable:
            raise BufferError(f"{what}: the array may not be written to: give another one")

    def _check_lent(self, info: dict[str, Any], array: dlpack.Borrowed, writes: bool) -> None:
        self._check_fits(
            info,
            array.type,
            array.shape,
            contiguous=array.contiguous,
            writable=array.writable or not writes,
        )
        if array.on_gpu:
            self._check_on_gpu(info, f"'{info['name']}'")

    def _check_on_gpu(self, info: dict[str, Any], what: str) -> None:
        if info.get("pieces"):
            raise BufferError(f"{what} is stored in pieces: give an array on the host")
        places = [info["device"], *(place["device"] for place in info.get("copies", []))]
        for place in places:
            device = self.program["devices"][place]
            if device["kind"] != "cuda":
                raise BufferError(
                    f"{what} lies on {device['name']} of kind '{device['kind']}': give an array "
                    "on the host"
                )

    def _move(self, function: str, index: int, value: np.ndarray) -> None:
        self._settle()
        data = value.ctypes.data_as(ctypes.c_void_p)
        size = ctypes.c_size_t(value.nbytes)
        if self._functions[function](self._step, ctypes.c_size_t(index), data, size):
            self.fail()

    def fail(self) -> NoReturn:
        """Raises the StepError of the function that has failed."""
        raised, self._raised = self._raised, None
        raise StepError(self._functions["error"](self._step).decode(errors="replace")) from raised
