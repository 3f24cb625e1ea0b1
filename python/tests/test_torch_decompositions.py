# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The importer's own decompositions compute what ATen's operators do."""

import itertools

import pytest

# First: it skips the file where there is no PyTorch.
from torch_support import F, seeded, torch  # noqa: F401

# isort: split
from baechi.importer.torch import decompositions as ours
from baechi.importer.torch import division, elements, integers, operators, order, special

torch.manual_seed(0)  # of the arguments below; `seeded` is of each test
aten = torch.ops.aten
SIZES = [
    (kernel, stride, padding, dilation, size)
    for kernel, stride, padding, dilation, size in itertools.product(
        (1, 3, 7), (1, 2, 3), (0, 1, 3), (1, 2), (11, 14)
    )
    if padding <= dilation * (kernel - 1) and size + 2 * padding > dilation * (kernel - 1)
]


@pytest.mark.parametrize("kernel, stride, padding, dilation, size", SIZES)
def test_convolution_gradients(kernel, stride, padding, dilation, size):
    x, weight = torch.randn(2, 3, size, size + 1), torch.randn(4, 3, kernel, kernel)
    grad = torch.randn_like(F.conv2d(x, weight, None, stride, padding, dilation))
    settings = ([4], [stride] * 2, [padding] * 2, [dilation] * 2, False, [0, 0], 1, [True] * 3)
    expected = aten.convolution_backward(grad, x, weight, *settings)
    found = ours.convolution_backward(grad, x, weight, *settings)
    for actual, right in zip(found, expected, strict=True):
        torch.testing.assert_close(actual, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "groups, stride, padding", [(1, 1, 0), (2, 1, 1), (1, 2, 1), (4, 3, 2), (8, 2, 1)]
)
@pytest.mark.parametrize("dims", [1, 2])
def test_convolution_gradients_of_other_forms(transposed, groups, stride, padding, dims):
    x = torch.randn(2, 8, *(9, 10)[:dims])
    weight = torch.randn(8, 24 // groups if transposed else 8 // groups, *(3, 3)[:dims])
    sizes = [stride] * dims, [padding] * dims, [1] * dims
    form = (transposed, [0] * dims, groups)
    result = aten.convolution(x, weight, None, *sizes, *form)
    grad = torch.randn_like(result)
    for mask in ([True] * 3, [False, True, False]):
        settings = (grad, x, weight, [result.shape[1]], *sizes, *form, mask)
        expected = aten.convolution_backward(*settings)
        found = ours.convolution_backward(*settings)
        for actual, right, wanted in zip(found, expected, mask, strict=True):
            if wanted:
                torch.testing.assert_close(actual, right, rtol=1e-4, atol=1e-4)
            else:
                assert actual is None


@pytest.mark.parametrize("length", [0, 1, 5, 8, 100])
@pytest.mark.parametrize("dim", [0, -1])
def test_running_sums_and_products(length, dim):
    shape = (length, 3) if dim == 0 else (3, length)
    for x in (torch.rand(shape) + 0.5, torch.randint(1, 3, shape), torch.rand(shape) > 0.5):
        torch.testing.assert_close(operators.cumsum(x, dim), torch.cumsum(x, dim))
        torch.testing.assert_close(operators.cumprod(x, dim), torch.cumprod(x, dim))
    torch.testing.assert_close(
        operators.cumsum(x, dim, dtype=torch.float32), torch.cumsum(x, dim, dtype=torch.float32)
    )


@pytest.mark.parametrize("pad", [(-1, -2), (2, -1), (-3, 2, 1, -1), (0, 0, -1, 0), (-1, 5, 0, 0)])
def test_paddings_that_cut_off(pad):
    x = torch.randn(2, 5, 6)
    torch.testing.assert_close(ours.constant_pad_nd(x, pad, 2.0), F.pad(x, pad, value=2.0))


def test_strides_over_all_elements():
    for x in (torch.randn(4, 3, 1, 2), torch.randn(2, 4, 1, 3).permute(1, 3, 2, 0)):
        for size, stride in (
            ((4, 6), (6, 1)),
            ((6, 4), (1, 6)),
            ((2, 1, 3, 4), (12, 7, 1, 3)),
            ((24, 1), (1, 24)),
        ):
            found, expected = (f(x, size, stride) for f in (elements.as_strided, torch.as_strided))
            torch.testing.assert_close(found, expected)
            new = torch.randn(size)
            found = elements.as_strided_scatter(x, new, size, stride)
            torch.testing.assert_close(found, torch.as_strided_scatter(x, new, size, stride))
        for size, stride, offset in (((3, 2), (6, 1), 0), ((23,), (1,), 1), ((24, 2), (1, 0), 0)):
            found = elements.as_strided(x, size, stride, offset)
            new = torch.randn(size)
            scattered = elements.as_strided_scatter(x, new, size, stride, offset)
            if not x.is_contiguous():
                assert found is NotImplemented and scattered is NotImplemented
                continue
            torch.testing.assert_close(found, torch.as_strided(x, size, stride, offset))
            if 0 not in stride:
                expected = torch.as_strided_scatter(x, new, size, stride, offset)
                torch.testing.assert_close(scattered, expected)


def test_group_normalization():
    x, weight, bias = torch.randn(3, 8, 4, 5), torch.rand(8), torch.rand(8)
    for given in ((weight, bias), (None, None)):
        settings = (x, *given, 3, 8, 20, 2, 1e-5)
        for actual, right in zip(
            ours.native_group_norm(*settings), aten.native_group_norm(*settings), strict=True
        ):
            torch.testing.assert_close(actual, right)


POOLS = [s for s in SIZES if s[0] > 1 and s[2] <= s[0] // 2]


@pytest.mark.parametrize("kernel, stride, padding, dilation, size", POOLS)
def test_max_pooling(kernel, stride, padding, dilation, size):
    x = torch.randn(2, 3, size, size + 1).round(decimals=1)  # with equal maxima
    x[0, 0, 3, 3] = float("nan")
    for ceil_mode in (False, True):
        settings = ([kernel] * 2, [stride] * 2, [padding] * 2, [dilation] * 2, ceil_mode)
        values, indices = aten.max_pool2d_with_indices(x, *settings)
        mine, places = ours.max_pool2d_with_indices(x, *settings)
        torch.testing.assert_close(mine, values, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(places, indices)
        grad = torch.randn_like(values)
        torch.testing.assert_close(
            ours.max_pool2d_with_indices_backward(grad, x, *settings, indices),
            aten.max_pool2d_with_indices_backward(grad, x, *settings, indices),
        )


@pytest.mark.parametrize("counted, divisor", [(True, None), (False, None), (True, 5)])
@pytest.mark.parametrize("stride, padding", [(1, 1), (2, 0), (3, 1)])
def test_average_pooling(stride, padding, counted, divisor):
    x = torch.randn(2, 3, 11, 12)
    settings = ([3, 3], [stride] * 2, [padding] * 2, False, counted, divisor)
    grad = torch.randn_like(aten.avg_pool2d(x, *settings))
    torch.testing.assert_close(
        ours.avg_pool2d_backward(grad, x, *settings), aten.avg_pool2d_backward(grad, x, *settings)
    )


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses(reduction, weighted):
    x, target = torch.randn(5, 4).log_softmax(-1), torch.tensor([0, 3, -100, 1, 2])
    weight = torch.rand(4) if weighted else None
    expected = aten.nll_loss_forward(x, target, weight, reduction, -100)
    found = ours.nll_loss_forward(x, target, weight, reduction, -100)
    torch.testing.assert_close(found[0], expected[0])
    grad = torch.randn_like(expected[0])
    settings = (grad, x, target, weight, reduction, -100, found[1])
    torch.testing.assert_close(ours.nll_loss_backward(*settings), aten.nll_loss_backward(*settings))


def test_embedding_gradients():
    indices, grad = torch.tensor([[0, 2, 2], [1, 0, 4]]), torch.randn(2, 3, 6)
    for padding_idx in (-1, 0):
        settings = (grad, indices, 5, padding_idx, False)
        torch.testing.assert_close(
            ours.embedding_dense_backward(*settings), aten.embedding_dense_backward(*settings)
        )


@pytest.mark.parametrize("correction", [None, 0, 1])
def test_variance(correction):
    x = torch.randn(3, 4, 5)
    for dim, keep in ((None, False), ([1], True), ([0, 2], False)):
        torch.testing.assert_close(
            ours.var_mean(x, dim, correction=correction, keepdim=keep),
            aten.var_mean.correction(x, dim, correction=correction, keepdim=keep),
        )


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_of_inference(norm_first):
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=norm_first
    ).eval()
    x, masks = torch.randn(2, 5, 8), (None, torch.rand(5, 5) > 0.7)
    attention = layer.self_attn
    for mask in masks:
        with torch.no_grad():
            expected = layer(x, src_mask=mask)
            found = ours.encoder_layer(
                x, 8, 2, attention.in_proj_weight, attention.in_proj_bias,
                attention.out_proj.weight, attention.out_proj.bias, False, norm_first, 1e-5,
                layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias,
                layer.linear1.weight, layer.linear1.bias, layer.linear2.weight,
                layer.linear2.bias, mask, None if mask is None else 0,
            )  # fmt: skip
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter_of_one_element_in_every_line(dim):
    x = torch.randn(3, 4, 5)
    index = x.max(dim, keepdim=True).indices
    src = torch.randn(index.shape)
    found = elements.scatter_src(x, dim, index, src)
    torch.testing.assert_close(found, x.scatter(dim, index, src))


X, Y = torch.randn(4, 6), torch.randn(4, 6)
ODD = torch.tensor([[0.0, -0.0, 1.5, float("nan")], [float("inf"), -1.0, float("-inf"), -1.0]])
# PyTorch does not say which of equal elements topk takes first.
UNEQUAL = torch.tensor([[0.0, 2.0, 1.5, float("nan")], [float("inf"), -1.0, float("-inf"), 3.0]])
PLACES = torch.tensor([[5, 0], [1, 1], [3, 2], [0, 4]])
# Operators with their arguments; those of one operator one after the other.
Z, BYTES = torch.randn(2, 4), torch.tensor([254, 200, 7, 255], dtype=torch.uint8)
WHOLE, SHIFTS = torch.tensor([5, 7, -9, 1, -100]), torch.tensor([1, -1, 3, 70, 31])
NANS = torch.tensor([[0.5, float("nan"), -1.0, 2.0], [3.0, 0.25, 1.0, -2.0]])
REAL = torch.cat([torch.linspace(-4.3, 9.1, 40), torch.tensor([0.0, 1.0, 2.0, 30.0, 100.0])])
OPERATORS = {
    aten._to_copy.default: [(NANS[:, 2:] * 1e3,), (X * 100,)],
    aten.__lshift__.Scalar: [(WHOLE, 70), (WHOLE, -1)],
    aten.__lshift__.Tensor: [(WHOLE, SHIFTS)],
    aten.__rshift__.Scalar: [(WHOLE, 64), (WHOLE, -1)],
    aten.__rshift__.Tensor: [(WHOLE, SHIFTS), (WHOLE.short(), SHIFTS.short())],
    aten.bitwise_left_shift.Tensor: [(WHOLE.int(), SHIFTS.int()), (WHOLE, SHIFTS)],
    aten.bitwise_left_shift.Tensor_Scalar: [(WHOLE, 64), (WHOLE, 2), (BYTES, 3)],
    aten.bitwise_left_shift.Scalar_Tensor: [(100, SHIFTS), (-3, SHIFTS.short()), (5, BYTES % 9)],
    aten.bitwise_right_shift.Tensor: [(WHOLE, SHIFTS), (BYTES, BYTES % 9)],
    aten.bitwise_right_shift.Tensor_Scalar: [(WHOLE, 64), (WHOLE, 2), (BYTES, 3)],
    aten.bitwise_right_shift.Scalar_Tensor: [(100, SHIFTS), (-3, SHIFTS.short()), (5, BYTES % 9)],
    aten.hardtanh.default: [(NANS,), (X, -0.5, 0.25)],
    aten.pow.Tensor_Scalar: [(X.abs(), 0.5), (X.abs(), -0.5), (torch.arange(-4, 5), 3)],
    aten.sum.default: [(BYTES,)],
    aten.sum.dim_IntList: [(BYTES, [0])],
    aten.clamp.default: [(NANS, -0.5, 0.5), (X, None, 0.1), (X, 0.5, -0.5), (NANS, float("nan"))],
    aten.clamp.Tensor: [(NANS, Z, None), (Z, NANS, Z + 1), (Z, None, NANS)],
    aten.clamp_max.default: [(NANS, 0.5)],
    aten.clamp_max.Tensor: [(Z, NANS), (NANS, Z)],
    aten.clamp_min.default: [(NANS, 0.5)],
    aten.clamp_min.Tensor: [(Z, NANS), (NANS, Z)],
    aten.maximum.default: [(NANS, Z), (Z, NANS)],
    aten.mean.default: [(torch.ones(70000, dtype=torch.float16),), (X.bfloat16(),)],
    aten.mean.dim: [(X.half(), [1]), (X.bfloat16(), [0, 1], True)],
    aten.minimum.default: [(NANS, Z), (Z, NANS)],
    aten.neg.default: [(torch.tensor([2**60 + 1, -3]),), (torch.tensor([7], dtype=torch.uint8),)],
    aten._weight_norm_interface_backward.default: [
        (torch.randn(4, 3, 2), torch.randn(4, 3, 2), torch.rand(shape) + 0.5, norms, dim)
        for dim, shape in ((0, (4, 1, 1)), (2, (1, 1, 2)))
        for norms in (torch.rand(shape) + 0.5,)
    ],
    aten.gelu.default: [],
    aten.rrelu_with_noise_backward.default: [
        (X, Y, Y, 0.1, 0.3, training, False) for training in (False, True)
    ],
    aten.rrelu_with_noise_functional.default: [(X, Y)],
    aten.empty_strided.default: [],
    aten.bernoulli.default: [],
    aten.normal.Tensor_Tensor: [],
    aten.normal.Tensor_float: [],
    aten.normal.float_Tensor: [],
    aten.arange.start_step: [(0, 2.4, 0.1), (1.5, -2, -0.25)],
    aten.linspace.default: [(0.1, 0.9, 24), (-1, 1, 7), (3, 3.5, 1)],
    aten.logspace.default: [(0, 0.7, 8), (0, 1, 9, 2.0)],
    aten.eye.default: [(3,)],
    aten.eye.m: [(3, 4), (4, 2)],
    aten.signbit.default: [(ODD,), (torch.arange(-2, 2),)],
    aten.copysign.Tensor: [(Y[:2, :4], ODD), (ODD, Y[:2, :4])],
    aten.hypot.default: [(X, Y), (X * 1e30, Y * 1e30), (X * 0, Y * 0)],
    aten.dist.default: [(X, Y), (X, Y, 1.0)],
    aten.addmv.default: [(X[:, 0], X, Y[0])],
    aten.cumsum.default: [(X, 1), (X > 0, 0)],
    aten.cumprod.default: [(X, 1), (X, 0), (torch.arange(1, 6), 0)],
    aten.logcumsumexp.default: [(X, -1)],
}
ELEMENTS = {
    aten.masked_scatter.default: [(X, X > 0, Y)],
    aten.masked_scatter_backward.default: [(X, X > 0, [24])],
    aten.put.default: [(X, PLACES, Y[:, :2]), (X, -1 - PLACES, Y[:, :2], True)],
    aten.index_put.default: [
        (X, [X > 0], torch.tensor(2.0)),
        (X, [X[:, 0] > 0], torch.tensor([2.0])),
        (X, [X > 0], torch.tensor(2.0), True),
        (X, [None, PLACES[:2]], torch.randn(4, 2, 2), True),
        (X.reshape(2, 2, 6), [PLACES[1], None, PLACES[2]], torch.randn(2, 2), True),
        (X.reshape(2, 2, 6), [None, PLACES[1], PLACES[2]], torch.tensor([1.0])),
    ],
    aten.roll.default: [(X, [2]), (X, [-1, 8], [0, 1])],
    aten.diagonal_scatter.default: [(X, Y[0, :4]), (X, Y[0, :3], -1, 0, 1)],
    aten.as_strided.default: [(X, [2, 3], [6, 2]), (X, [3, 3], [1, 1], 2), (X, [3, 8], [8, 1])],
    aten.as_strided_scatter.default: [(X, Y[:2, :3], [2, 3], [6, 2])],
    aten.scatter.src: [(X, 1, PLACES[:, :1], Y[:, :1]), (X, 0, PLACES % 4 * 0 + 2, Y[:, :2] * 0)],
    aten.scatter.value: [(X, 1, PLACES, 1.5)],
    aten.scatter_add.default: [(X, 1, PLACES, Y), (X, 0, PLACES % 4, Y)],
}

FACTORS = {
    kind: (
        torch.arange(-10, 10).reshape(4, 5).mul(23).to(kind),
        torch.arange(15).reshape(5, 3).mul(17).to(kind),
    )
    for kind in (torch.int8, torch.uint8, torch.int16)
}
WITH_NUMBERS = [
    (torch.tensor([5, -3]), 3),
    (BYTES, 200),
    (torch.tensor([True, False]), True),
    (torch.tensor([True, False]), 6),
]
POWERS = torch.tensor([3, -3, 1, -1, 0, 2, 7, -2]), torch.tensor([5, 70, -9, -7, 0, -1, 64, 63])
INTEGERS = {
    aten.bitwise_or.Scalar: WITH_NUMBERS,
    aten.bitwise_xor.Scalar: WITH_NUMBERS,
    aten.mm.default: list(FACTORS.values()),
    aten.max.default: [(BYTES.to(torch.int8),)],
    aten.min.default: [(BYTES.to(torch.int8),)],
    aten.pow.Scalar: [
        (base, POWERS[1].to(kind))
        for base in (0, 1, -1, 2, 3, -10, 2**16 + 2)
        for kind in (torch.int64, torch.int32, torch.int8, torch.uint8)
        if kind.itemsize > 2 or base < 2**16 and kind.is_signed or 0 <= base < 256
    ],
    aten.pow.Tensor_Tensor: [
        (POWERS[0].to(kind), POWERS[1].to(other).flip(0) if turned else POWERS[1].to(other))
        for kind in (torch.int64, torch.int32, torch.int8, torch.uint8)
        for other in (torch.int64, torch.int8, torch.uint8)
        for turned in (False, True)
    ],
    aten.bmm.default: [(a.unsqueeze(0), b.unsqueeze(0)) for a, b in FACTORS.values()],
}
DIVISION = {
    aten.div.Scalar: [(BYTES, 3), (BYTES, 2.5)],
    aten.div.Scalar_mode: [],
    aten.div.Tensor: [(BYTES, BYTES.flip(0))],
    aten.div.Tensor_mode: [],
    aten.remainder.Scalar: [(BYTES, 100)],
    aten.remainder.Tensor: [(BYTES, BYTES.flip(0))],
    aten.fmod.Scalar: [(X, 0.7), (torch.arange(-4, 5), 3), (torch.arange(-4, 5), 1.5)],
    aten.fmod.Tensor: [(torch.arange(-4, 5), torch.full((9,), 3))],
    aten.floor_divide.Scalar: [(X, 0.7), (torch.arange(-4, 5), 3)],
    aten.floor_divide.default: [(X, Y), (torch.arange(-4, 5), torch.full((9,), -3))],
    aten.remainder.Scalar_Tensor: [(7.5, X), (7, torch.tensor([3, -2, 5]))],
}
ORDER = {
    aten.cummax.default: [(X, 1), (NANS, 1), (ODD, 0), (torch.tensor([1, 3, 3, 2]), 0)],
    aten.cummin.default: [(X, 1), (NANS, 1), (ODD, 0), (torch.tensor([3, 1, 1, 2]), 0)],
    aten.kthvalue.default: [(X, 2), (X, 3, 0, True)],
    aten.median.default: [(X,), (NANS,)],
    aten.median.dim: [(X, 1), (X, 0, True), (NANS, 1)],
    aten.nanmedian.default: [(X,), (NANS,)],
    aten.nanmedian.dim: [(X, 1), (NANS, 1), (NANS, 0)],
    aten.repeat_interleave.Tensor: [],  # `output_size` is a keyword: test_torch_functions.py
    aten.searchsorted.Tensor: [
        (torch.arange(4.0), X),
        (X.sort().values, Y),
    ],
    aten.sort.default: [(X,), (X, 0, True), (ODD,), (ODD, 1, True), (torch.tensor([2, 1, 2]),)],
    aten.sort.stable: [],
    aten.topk.default: [(X, 3), (X, 2, 0, False), (UNEQUAL, 3), (UNEQUAL, 4, -1, False)],
    aten.argmax.default: [(X, 1), (NANS, None), (NANS, 0, True), (ODD, 1)],
    aten.argmin.default: [(X, 1), (NANS, None), (NANS, 0, True), (ODD, 1)],
    aten.max.dim: [(X, 1), (NANS, 0, True), (ODD, 1)],
    aten.min.dim: [(X, 1), (NANS, 0, True), (ODD, 1)],
}
SPECIAL = {
    aten.lgamma.default: [(REAL,), (torch.arange(-2, 4),), (REAL.double(),)],
    aten.digamma.default: [(REAL,), (torch.arange(-2, 4),), (REAL.double(),)],
    aten.polygamma.default: [(0, REAL), (1, REAL[REAL.round() != REAL]), (3, REAL[REAL > 0])],
    aten.i0.default: [(REAL[:-1],)],
    aten.special_i0e.default: [(REAL,)],
    aten.special_i1.default: [(REAL[:-1],)],
    aten.special_i1e.default: [(REAL,), (-REAL,)],
    aten.erfc.default: [(REAL,), (torch.tensor([9.0, 12.0, float("inf"), float("nan")]),)],
    aten.special_erfcx.default: [(REAL,)],
    aten.erfinv.default: [(torch.linspace(-1, 1, 41),), (torch.tensor([1 - 1e-6, -0.99999]),)],
}


TABLES = {
    division: DIVISION,
    elements: ELEMENTS,
    integers: INTEGERS,
    operators: OPERATORS,
    order: ORDER,
    special: SPECIAL,
}


@pytest.mark.parametrize("module", TABLES, ids=lambda module: module.__name__.split(".")[-1])
def test_every_operator_has_arguments(module):
    assert set(module.TABLE) == set(TABLES[module])


@pytest.mark.parametrize(
    "module, operator", [(m, o) for m, known in TABLES.items() for o in known], ids=str
)
def test_operators(module, operator):
    cases, form = TABLES[module][operator], module.TABLE[operator]
    atol = 5e-6 if operator in SPECIAL else 1e-6  # next to zeros
    for arguments in cases:
        expected = operator(*arguments)
        found = form(*arguments)
        pairs = [(found, expected)] if isinstance(expected, torch.Tensor) else zip(found, expected)
        for actual, right in pairs:
            torch.testing.assert_close(actual, right, rtol=1e-5, atol=atol, equal_nan=True)
