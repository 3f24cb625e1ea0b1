# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a step is placed and compiled: one set of options for all front ends."""

from __future__ import annotations

import dataclasses
import difflib
import os
import pathlib
import re
from collections.abc import Collection, Mapping

from baechi.compiling import caches

_COSTS = ("measured", "roofline")
_TRANSFERS = ("lend", "copy", "network")
_FIT_MEMORY = ("auto", "whole", "never")
_UNROLL = ("auto", "always", "never")
_OBJECTIVES = ("makespan", "period")
_EXCHANGES = ("fifo", "slices", "tictac", "p3")
_SLICED = ("slices", "p3")
_FACTORS = ("none", "smaller")
_REPLAN = ("auto", "never")
_LEAST_SLICE = 1024  # bytes
_CUDA_MATH = ("fp32", "tf32", "bf16", "fp16")
_CUDA_CONVOLUTIONS = ("measured", "generated", "cudnn")
_SPLITS = re.compile(
    r"auto|none|exact|any|(canonical|micro|forced|exact-forced):([2-9]|[1-5][0-9]|6[0-4])"
)


def limited(
    machine: str | os.PathLike[str], memory: str | int | None, spill_to: str | None
) -> str | os.PathLike[str]:
    """The machine whose devices have `memory` each, as `40MiB`, with a memory beside them,
    `pool:4GiB` or `disk:40GiB`."""
    if memory is None and spill_to is None:
        return machine
    if memory is not None and (
        not isinstance(memory, str | int) or not re.fullmatch(r"[^:@+]*[0-9][^:@+]*", f"{memory}")
    ):
        raise ValueError(f"memory is {memory!r}: give what each device has, as '40MiB' or in bytes")
    if spill_to is not None and (
        not isinstance(spill_to, str) or not spill_to.startswith(("pool:", "disk:"))
    ):
        raise ValueError(
            f"spill_to is {spill_to!r}: give 'pool:SIZE', as 'pool:4GiB', or 'disk:SIZE'"
        )
    text = os.fspath(machine) if isinstance(machine, str | os.PathLike) else ""
    if memory is not None:
        if ":" not in text or "@" in text:
            raise ValueError(
                f"memory is {memory!r} and machine {machine!r}: each device of KIND:N has it; "
                "another machine says itself what its devices have"
            )
        devices, *others = text.split("+", 1)
        text = "+".join([f"{devices}@{memory}", *others])
    if spill_to is None:
        return text
    if "+" in text or ":" not in text:
        raise ValueError(
            f"spill_to is {spill_to!r} and machine {machine!r}: a pool is added to KIND:N[@SIZE]; "
            "another machine names its own, a file among its devices, with links that do not lend"
        )
    return f"{text}+{spill_to}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """`baechi.jit` says what each means. Raises TypeError and ValueError for what no
    step could be compiled with."""

    machine: str | os.PathLike[str] = "host:2"
    placer: str = "msct"
    budget: str = "auto"
    expert: Mapping[str, str] | str | os.PathLike[str] | None = None
    pin: Mapping[str, str] | None = None
    placement: str | os.PathLike[str] | None = None
    profile: str | os.PathLike[str] | None = None
    costs: str = "measured"
    measure: str = "auto"
    cuda_math: str = "fp32"
    cuda_convolutions: str = "measured"
    splits: str = "auto"
    split: Mapping[str, tuple[int, int] | str] | None = None
    transfers: str = "lend"
    fit_memory: str = "auto"
    unroll: str = "auto"
    verbose: bool | None = None
    replicas: int = 1
    exchange: str | None = None
    slice_bytes: int | None = None
    factors: str = "none"
    objective: str = "makespan"
    replan: str = "never"
    # Of steps that were compiled with "auto" (baechi/steps/first_steps.py).
    step_times: pathlib.Path | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.machine, str | os.PathLike):
            kind = type(self.machine).__name__
            mend = (
                "write it to a file, json.dump(machine.to_dict(), file), and give the file's name"
                if hasattr(self.machine, "to_dict")
                else "give 'host:2' or the name of a machine file (docs/formats.md)"
            )
            raise TypeError(f"machine is a {kind}: {mend}")
        _check_word("costs", self.costs, _COSTS)
        _check_word("cuda_math", self.cuda_math, _CUDA_MATH)
        _check_word("cuda_convolutions", self.cuda_convolutions, _CUDA_CONVOLUTIONS)
        _check_word("transfers", self.transfers, _TRANSFERS)
        _check_word("fit_memory", self.fit_memory, _FIT_MEMORY)
        _check_word("unroll", self.unroll, _UNROLL)
        _check_word("placer", self.placer, _placers())
        _check_word("objective", self.objective, _OBJECTIVES)
        _check_word("factors", self.factors, _FACTORS)
        _check_word("replan", self.replan, _REPLAN)
        if not isinstance(self.splits, str) or not _SPLITS.fullmatch(self.splits):
            raise ValueError(
                f"splits is {self.splits!r}: give 'auto', 'none', 'any' (where it is faster), "
                "'exact' (where it is faster, with the whole step's bits), 'canonical:N' "
                "(always in N pieces, 2 to 64), 'micro:N' (always in N micro-batches), or, for "
                "tests, 'forced:N' or 'exact-forced:N' (whatever can be cut)"
            )
        if isinstance(self.replicas, bool) or not isinstance(self.replicas, int):
            raise TypeError(f"replicas is {self.replicas!r}: give how many parts the batch has")
        if not 1 <= self.replicas <= 64:
            raise ValueError(f"replicas is {self.replicas}: give 1 to 64 parts of the batch")
        if self.replicas > 1 and self.splits not in ("auto", "none"):
            raise ValueError(
                f"replicas is {self.replicas} and splits {self.splits!r}: replicas cut the batch "
                "and nothing else; leave splits at 'auto'"
            )
        _check_exchange(self.exchange, self.slice_bytes)
        if not re.fullmatch(r"auto|\d+(\.\d*)?s?|\d+e", str(self.budget)):
            raise ValueError(
                f"budget is {self.budget!r}: give 'auto', '0' (the placer's own result), seconds "
                "('30', '0.5s') or evaluations ('5000e')"
            )
        if not re.fullmatch(r"auto|all|\d+(\.\d*)?s?", str(self.measure)):
            raise ValueError(
                f"measure is {self.measure!r}: give 'auto' (about five steps), 'all' (as long as "
                "it takes) or seconds ('30', '0.5s')"
            )
        _check_devices("pin", self.pin)
        if self.placer == "expert" and not self.expert:
            raise ValueError(
                "placer is 'expert', which follows rules: give "
                "expert={'operators by pattern': 'device'}, or an expert file"
            )
        if not isinstance(self.expert, str | os.PathLike):
            _check_devices("expert", self.expert)
        _check_split(self.split)
        if self.verbose not in (True, False, None):
            raise TypeError(
                f"verbose is {self.verbose!r}: give True (a line for each phase), False (nothing) "
                "or None (a bar on a terminal)"
            )

    def written_for(self, replicas: int) -> CompileOptions:
        """The options of a step that is written for so many replicas (1: as one for one
        device). Raises ValueError where others ask for something else."""
        if replicas < 2 or replicas == self.replicas:
            return self.replicated()
        if self.replicas > 1:
            raise ValueError(
                f"replicas is {self.replicas}, and the step is written for {replicas}, by "
                f"jax.shard_map or jax.pmap: give replicas={replicas}, leave it out, or change the "
                "mesh"
            )
        return dataclasses.replace(self, replicas=replicas)

    def replicated(self) -> CompileOptions:
        """These, of a step that is not written for replicas. Raises ValueError where messages
        between replicas are ordered and there is one."""
        if self.exchange is not None and self.replicas < 2:
            raise ValueError(
                f"exchange is {self.exchange!r}: it orders the messages between replicas; give "
                "replicas=N, too"
            )
        if self.factors != "none" and self.replicas < 2:
            raise ValueError(
                f"factors is {self.factors!r}: it is of the gradients of replicas; give "
                "replicas=N, too"
            )
        return self

    def words(self) -> list[str]:
        """All of them as the compiler takes them, NAME=VALUE by `baechi-run`'s names."""
        given = {
            "machine": os.fspath(self.machine),
            "placer": self.placer,
            "budget": str(self.budget),
            "objective": self.objective,
            "costs": self.costs,
            "measure": str(self.measure),
            "cuda-math": self.cuda_math,
            "cuda-convolutions": self.cuda_convolutions,
            "splits": self.splits,
            "replicas": str(self.replicas),
            "transfers": self.transfers,
            "fit-memory": self.fit_memory,
            "unroll": self.unroll,
            "store": str(caches.folder() / "kernels"),
        }
        if self.costs == "measured":
            given["profile"] = str(self.profile_file())
        if self.step_times is not None:
            given["step-times"] = str(self.step_times)
        elif self.replan == "auto" and self.measure == "auto":
            given["measure"] = "later"
        if self.exchange is not None:
            given["exchange"] = self.exchange
        if self.slice_bytes is not None:
            given["slice-bytes"] = str(self.slice_bytes)
        if self.factors != "none":
            given["factors"] = self.factors
        if self.expert is not None:
            given["expert"] = str(self._expert_file())
        if self.placement is not None:
            given["placement"] = os.fspath(self.placement)
        words = [f"{name}={value}" for name, value in given.items()]
        words += [f"split={cut}" for cut in self.cuts()]
        return words + [f"pin={pin}" for pin in self.pins()]

    def _expert_file(self) -> pathlib.Path:
        """The expert file; rules that were given as a dictionary are written to one."""
        if not isinstance(self.expert, Mapping):
            return pathlib.Path(self.expert or "")
        text = "".join(f"{pattern} = {device}\n" for pattern, device in self.expert.items())
        return caches.of_this_process(text, ".expert")

    def cuts(self) -> list[str]:
        """What `split` asks for, PATTERN=DIM:PIECES or PATTERN=whole."""
        return [
            f"{pattern}={cut if isinstance(cut, str) else f'{cut[0]}:{cut[1]}'}"
            for pattern, cut in (self.split or {}).items()
        ]

    def pins(self) -> list[str]:
        return [f"{name}={device}" for name, device in (self.pin or {}).items()]

    def profile_file(self) -> pathlib.Path:
        if self.profile is None:
            return caches.folder() / "profile.json"
        return pathlib.Path(self.profile)


def replan_of(asked: str | None) -> str:
    """What was asked for, else what the environment says, else `auto`."""
    return asked if asked is not None else os.environ.get("BAECHI_REPLAN", "auto")


def _check_word(option: str, given: object, known: Collection[str]) -> None:
    """Raises ValueError for a word that is not known; nothing is known of no words."""
    if not isinstance(given, str):
        raise TypeError(f"{option} is a {type(given).__name__}: give its name, as a str")
    if given in known or not known:
        return
    near = difflib.get_close_matches(given, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"{option} is {given!r}: {hint}known: {', '.join(known)}")


def _check_exchange(exchange: object, slice_bytes: object) -> None:
    if exchange is not None:
        _check_word("exchange", exchange, _EXCHANGES)
    if slice_bytes is None:
        return
    if exchange not in _SLICED:
        raise ValueError(
            f"slice_bytes is {slice_bytes!r}: it is of exchange='p3' and 'slices', whose messages "
            "are cut; ask for one, or leave it out"
        )
    if isinstance(slice_bytes, bool) or not isinstance(slice_bytes, int):
        raise TypeError(f"slice_bytes is {slice_bytes!r}: give the bytes of a slice, as an int")
    if not _LEAST_SLICE <= slice_bytes < 1 << 63:
        raise ValueError(
            f"slice_bytes is {slice_bytes}: give a number from {_LEAST_SLICE} to {(1 << 63) - 1}"
        )


def _placers() -> list[str]:
    """Empty where the extension is not built: then the compiler tells what is wrong."""
    try:
        from baechi.graphs.placing import placers
    except ImportError:
        return []
    return list(placers())


def _check_devices(option: str, given: object) -> None:
    if given is None:
        return
    mend = "give a dictionary of patterns to devices, {'decoder/*': 'host1'}"
    if not isinstance(given, Mapping):
        raise TypeError(f"{option} is a {type(given).__name__}: {mend}")
    for pattern, device in given.items():
        if not isinstance(pattern, str) or not isinstance(device, str):
            raise TypeError(f"{option} has {pattern!r}: {device!r}: {mend}")


def _check_split(split: object) -> None:
    if split is None:
        return
    mend = (
        "give a dictionary of patterns to (dimension, pieces) or 'whole', "
        "{'tokens': (0, 2), 'head/*': 'whole'}"
    )
    if isinstance(split, str):
        raise TypeError(f"split is {split!r}: {mend}; modes are of splits, splits={split!r}")
    if not isinstance(split, Mapping):
        raise TypeError(f"split is a {type(split).__name__}: {mend}")
    for pattern, cut in split.items():
        if not isinstance(pattern, str) or not (cut == "whole" or _is_cut(cut)):
            raise TypeError(f"split has {pattern!r}: {cut!r}: {mend}")


def _is_cut(cut: object) -> bool:
    if not isinstance(cut, tuple) or len(cut) != 2:
        return False
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in cut):
        return False
    return bool(cut[0] >= 0 and cut[1] >= 2)
