# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions for what PyTorch's own code asks for beneath a program: function transforms
(`torch.func`, forward-mode derivatives) and optimizers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch._subclasses import fake_impls

aten, prims = torch.ops.aten, torch.ops.prims
_ZERO = aten._efficientzerotensor.default


def zero_tensor(size, dtype=None, **_):
    """The derivative of what does not depend on the input."""
    return torch.zeros(size, dtype=dtype or torch.get_default_dtype())


def zeros_of_tangent(x, like, *, self_num_batch_dims=0):
    """A tangent for `like`, with the mapped dimensions that `x` has in front."""
    return torch.zeros([*x.shape[:self_num_batch_dims], *like.shape], dtype=x.dtype)


def device_put(x, device, non_blocking=False):
    """All is on one device here, until it is placed."""
    return x.clone()


def fma(x, y, z):
    """x * y + z; rounded twice."""
    return x * y + z


@contextlib.contextmanager
def plain_zeros() -> Iterator[None]:
    """While tracing, derivatives that are zero are tensors as others are: of PyTorch's own
    kind a FakeTensorMode loses the device."""

    def made(mode, function, size, dtype=None, **_):
        with mode:
            return zero_tensor(size, dtype)

    implementations, operation = fake_impls.op_implementations_dict, _ZERO
    before = implementations.get(operation)
    implementations[operation] = made
    try:
        yield
    finally:
        if before is None:
            del implementations[operation]
        else:
            implementations[operation] = before


def table() -> dict:
    """`prims.fma` is known to PyTorch once torch.compile has followed an optimizer."""
    found = {
        _ZERO: zero_tensor,
        aten._new_zeros_with_same_feature_meta.default: zeros_of_tangent,
        prims.device_put.default: device_put,
    }
    return found | ({prims.fma.default: fma} if hasattr(prims, "fma") else {})
