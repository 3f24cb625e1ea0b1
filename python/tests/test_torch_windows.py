# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The importer's own gradients of windows, paddings and grids are what ATen's operators compute."""

import pytest

# First: it skips the file where there is no PyTorch.
from torch_support import F, seeded, torch  # noqa: F401

# isort: split
from baechi.importer.torch import decompositions as ours
from baechi.importer.torch import functions, windows

torch.manual_seed(0)  # of the arguments below; `seeded` is of each test
aten = torch.ops.aten


def pooled(dims, size, *settings, kind="avg_pool"):
    """A gradient and its input, for what a pooling's gradient takes."""
    x = torch.randn(2, 3, *size)
    found = getattr(aten, f"{kind}{dims}d")(x, *settings)
    return torch.randn_like(found), x, *settings


def not_finite(gradient):
    gradient.view(-1)[0], gradient.view(-1)[-2] = torch.inf, torch.nan
    return gradient


def shaped_like_largest(dims, size, out):
    x = torch.randn(2, 3, *size)
    values, indices = getattr(aten, f"adaptive_max_pool{dims}d")(x, out)
    return torch.randn_like(values), x, indices


def of_windows(size, *settings):
    x = torch.randn(2, 3, *size)
    values, indices = aten.max_pool3d_with_indices(x, *settings)
    return torch.randn_like(values), x, *settings, indices


WINDOWS = {
    aten._adaptive_avg_pool2d_backward.default: [
        (torch.randn(2, 3, *out), torch.randn(2, 3, 8, 9)) for out in ((3, 4), (11, 13), (4, 3))
    ]
    + [(not_finite(torch.randn(1, 2, 3, 4)), torch.randn(1, 2, 7, 9))],
    aten._adaptive_avg_pool3d_backward.default: [
        (torch.randn(2, 3, 3, 4, 7), torch.randn(2, 3, 8, 9, 5))
    ],
    aten.adaptive_max_pool2d.default: [
        (torch.randn(2, 3, 8, 9), (3, 4)),
        (torch.randn(3, 5, 7), (7, 3)),
        (torch.ones(1, 2, 5, 6), (4, 6)),  # the first of equal ones
    ],
    aten.adaptive_max_pool3d.default: [(torch.randn(2, 3, 5, 6, 7), (3, 2, 4))],
    aten.adaptive_max_pool2d_backward.default: [shaped_like_largest(2, (8, 9), (3, 4))],
    aten.adaptive_max_pool3d_backward.default: [shaped_like_largest(3, (4, 5, 6), (3, 2, 4))],
    aten.avg_pool3d_backward.default: [
        pooled(3, (5, 6, 7), [3, 3, 3], stride, [1, 1, 1], ceil, counted, divisor)
        for stride in ([], [2, 1, 3])
        for ceil in (False, True)
        for counted, divisor in ((True, None), (False, None), (True, 5))
    ]
    + [
        (not_finite(torch.randn(1, 2, 3, 3, 3)), torch.randn(1, 2, 6, 6, 6), [3] * 3, [2] * 3)
        + ([0] * 3, True, True, None)
    ],
    aten.fractional_max_pool2d_backward.default: [],
    aten.fractional_max_pool3d_backward.default: [],
    aten.max_pool3d_with_indices_backward.default: [
        of_windows((5, 6, 7), [3, 3, 3], [2, 1, 3], [1, 1, 1], [1, 1, 1], False)
    ],
    aten.replication_pad1d_backward.default: [
        (torch.randn(2, 3, 9), torch.randn(2, 3, 4), [2, 3]),
        (torch.randn(2, 3, 4), torch.randn(2, 3, 1), [2, 1]),
    ],
    aten.replication_pad2d_backward.default: [
        (torch.randn(2, 3, 8, 9), torch.randn(2, 3, 5, 6), [1, 2, 3, 0])
    ],
    aten.replication_pad3d_backward.default: [
        (torch.randn(2, 3, 7, 8, 9), torch.randn(2, 3, 4, 5, 6), [1, 2, 3, 0, 2, 1])
    ],
}


def test_every_operator_has_arguments():
    assert set(windows.TABLE) == set(WINDOWS)


@pytest.mark.parametrize("operator", WINDOWS, ids=str)
def test_operators(operator):
    for arguments in WINDOWS[operator]:
        expected, found = operator(*arguments), windows.TABLE[operator](*arguments)
        pairs = [(found, expected)] if isinstance(expected, torch.Tensor) else zip(found, expected)
        for actual, right in pairs:
            torch.testing.assert_close(actual, right, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_average_pooling_whose_last_window_reaches_beyond(ceil_mode):
    for counted, divisor in ((True, None), (False, None), (True, 5)):
        given = pooled(2, (6, 7), [3, 2], [2, 3], [1, 1], ceil_mode, counted, divisor)
        found = ours.avg_pool2d_backward(*given)
        torch.testing.assert_close(found, aten.avg_pool2d_backward(*given))


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_gradients_of_grids(mode):
    x, grid = torch.randn(1, 2, 3, 4), torch.rand(1, 5, 2, 2) * 2 - 1

    def gradients(sample):
        given = x.clone().requires_grad_(), grid.clone().requires_grad_()
        sample(*given, mode=mode, align_corners=True).square().sum().backward()
        return [each.grad for each in given]

    torch.testing.assert_close(gradients(functions.grid_sample), gradients(F.grid_sample))
