# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Between tensors of PyTorch and the arrays of a step: of NumPy, or a GPU's, lent by DLPack."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import torch

from baechi.importer.torch.indices import Lookup
from baechi.steps.gpu_array import device_of
from baechi.steps.library import StepLibrary

# numpy has no such type of its own; torch.Tensor.numpy refuses it.
_SPECIAL = {torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16))}
# As steps call them; integers have no sign there.
_FLOATS = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The values, contiguous; without a copy where they already are so on the CPU."""
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if tensor.dtype in _SPECIAL:
        bits, kind = _SPECIAL[tensor.dtype]
        return tensor.view(bits).numpy().view(kind)
    return tensor.numpy()


def to_torch(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """A tensor on the array's own memory."""
    if dtype in _SPECIAL:
        return torch.from_numpy(array.view(np.int16)).view(dtype)
    return torch.from_numpy(array).to(dtype)


def as_argument(
    tensor: torch.Tensor, library: StepLibrary, index: int
) -> torch.Tensor | np.ndarray:
    """The tensor as an argument's value. One of a GPU is copied within it where the argument
    lies there."""
    plain = tensor.detach()
    if plain.is_cuda and device_of(library, "arguments", index) is not None:
        return plain.resolve_conj().resolve_neg().contiguous()
    return to_numpy(plain)


def give(tensor: torch.Tensor, library: StepLibrary, index: int) -> None:
    library.set_argument(index, as_argument(tensor, library, index))


def write(tensor: torch.Tensor, library: StepLibrary, index: int) -> None:
    """An argument's value into the tensor's own memory; autograd and whoever counts
    versions see that it has changed."""
    plain = tensor.detach()
    on_gpu = plain.is_cuda and device_of(library, "arguments", index) is not None
    if plain.is_contiguous() and (on_gpu or not plain.is_cuda):
        library.read_argument(index, plain if on_gpu else to_numpy(plain))
    else:
        if on_gpu:
            value = torch.empty(plain.shape, dtype=plain.dtype, device=plain.device)
            library.read_argument(index, value)
        else:
            value = to_torch(library.argument(index), tensor.dtype)
        with torch.no_grad():
            plain.copy_(value)
    mark_changed(tensor)


def mark_changed(tensor: torch.Tensor) -> None:
    """What counts its versions sees that it has another value."""
    if not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)


def room(
    library: StepLibrary, index: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor | None:
    """Memory of a GPU for a result that lies there; None: it does not, or has another type."""
    if device.type != "cuda" or device_of(library, "results", index) is None:
        return None
    info = library.program["results"][index]
    if info["type"] != _word(dtype):
        return None
    return torch.empty(info["shape"], dtype=dtype, device=device)


def result(
    library: StepLibrary, index: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """A result as a tensor on a device, copied within a GPU where it lies there."""
    if (made := room(library, index, dtype, device)) is not None:
        library.read_result(index, made)
        return made
    return to_torch(library.result(index), dtype).to(device)


def _word(dtype: torch.dtype) -> str:
    return _FLOATS.get(dtype) or f"i{1 if dtype == torch.bool else 8 * dtype.itemsize}"


class Stamp:
    """What a tensor was: tells when it is changed or another one. It holds the
    tensor, so that no other can take its place in memory meanwhile."""

    def __init__(self, tensor: torch.Tensor | None):
        self._tensor = tensor
        self._seen = _seen(tensor)

    def fits(self, tensor: torch.Tensor | None) -> bool:
        return tensor is self._tensor and _seen(tensor) == self._seen


def _seen(tensor: torch.Tensor | None) -> tuple[int, int] | None:
    # An inference tensor counts no versions.
    if tensor is None or tensor.is_inference():
        return None
    return tensor._version, tensor.data_ptr()


def check_indices(name: str, indices: torch.Tensor, lookups: Sequence[Lookup]) -> None:
    """Raises IndexError for an index that is out of range, as PyTorch does."""
    for lookup in lookups:
        wrong = lookup.outside(indices)
        if wrong.any():
            raise IndexError(f"'{name}' holds {indices[wrong].flatten()[0].item()}: {lookup}")


def check_flags(flags: Sequence[bool], lookups: Sequence[Lookup]) -> None:
    """The same for indices that the program has computed."""
    for flag, lookup in zip(flags, lookups, strict=True):
        if flag:
            raise IndexError(f"an index is out of range: {lookup}")
