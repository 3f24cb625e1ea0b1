# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph that torch.compile found, beside PyTorch's own run of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import torch

from baechi.checking.compare import Difference, Suspect, first_difference
from baechi.checking.options import CheckError, CheckOptions
from baechi.torch.arrays import to_numpy
from baechi.torch.eager import disturbed
from baechi.torch.short_types import shortened

_DRAWS = 2
_REFERENCE = "PyTorch"


def with_own_memory(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies, which share memory among each other where the tensors do."""
    storages: dict[int, torch.UntypedStorage] = {}
    found = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        own = storages.setdefault(storage._cdata, storage.clone())
        made = torch.empty(0, dtype=tensor.dtype)
        with torch.no_grad():
            made.set_(own, tensor.storage_offset(), tensor.shape, tensor.stride())
        found.append(made)
    return found


@dataclasses.dataclass
class Reference:
    """What PyTorch computes of copies of the arguments, with the random numbers that the
    program draws."""

    run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]
    given: Sequence[torch.Tensor]
    # The generator's state before the program draws.
    random: torch.Tensor = dataclasses.field(default_factory=torch.get_rng_state)

    def restore(self, inputs: Sequence[torch.Tensor]) -> None:
        """Puts back what a program has changed."""
        torch.set_rng_state(self.random)
        with torch.no_grad():
            for tensor, before in zip(inputs, self.given, strict=True):
                if not torch.equal(tensor, before):
                    tensor.detach().copy_(before)

    def values(self) -> list[np.ndarray]:
        return self._of(self.given)

    def disturbed(self) -> list[list[np.ndarray]]:
        """The same with changed last digits of the arguments."""
        draws = [np.random.default_rng(seed) for seed in range(_DRAWS)]
        return [self._of([disturbed(tensor, draw) for tensor in self.given]) for draw in draws]

    def shortened(self) -> list[Sequence[np.ndarray]]:
        return shortened(self.values)

    def _of(self, given: Sequence[torch.Tensor]) -> list[np.ndarray]:
        after = torch.get_rng_state()
        torch.set_rng_state(self.random)
        try:
            with torch.no_grad():
                return [to_numpy(x.detach()).copy() for x in self.run(with_own_memory(given))]
        finally:
            torch.set_rng_state(after)


def compare(
    names: Sequence[str],
    ours: Sequence[torch.Tensor],
    reference: Reference,
    options: CheckOptions,
    blame: Callable[[], Suspect | None],
) -> None:
    """Raises CheckError. blame: finds the first operation that differs; None: there is none."""
    try:
        theirs = reference.values()
    except Exception as error:
        raise CheckError(
            f"PyTorch itself raises {type(error).__name__}: {error}; the compiled graph does not",
            names[0] if names else "",
            float("inf"),
            0.0,
        ) from error
    mine = [to_numpy(tensor.detach()) for tensor in ours]
    others = reference.disturbed, reference.shortened
    found = first_difference(mine, theirs, options, _REFERENCE, *others)
    if found is not None:
        raise _error(names[found.index], found, blame())


def _error(name: str, found: Difference, suspect: Suspect | None) -> CheckError:
    message = f"'{name}' of a compiled graph is not PyTorch's: {found.text}"
    if suspect is None:
        message += (
            "\nno operation is to blame: cut into parts, the graph gives PyTorch's values, or it "
            "was traced otherwise than PyTorch runs it"
        )
        return CheckError(message, name, found.error, found.allowed)
    where = suspect.operator, suspect.source
    return CheckError(f"{message}\n{suspect}", name, found.error, found.allowed, *where)
