# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ONNX nodes whose lowering by torch-mlir loses NaNs, signs or digits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto

from baechi.importer.onnx import powers
from baechi.importer.onnx.builder import Builder, attributes, given

# Its factors where a node has none, of which torch-mlir knows five digits.
_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}


def _clip(node: onnx.NodeProto, build: Builder) -> None:
    """By comparisons, which are false of NaN: it stays; the upper bound is the stronger."""
    x, low, high = node.input[0], given(node, 1), given(node, 2)
    if low:
        x = build.add("Where", build.add("Less", x, low), low, x)
    if high:
        x = build.add("Where", build.add("Less", high, x), high, x)
    build.add("Identity", x, output=node.output[0])


def _sign(node: onnx.NodeProto, build: Builder) -> None:
    if not build.floating:
        return build.keep()
    (x,) = node.input
    sign = build.add("Sign", x)
    build.add("Where", build.add("IsNaN", x), x, sign, output=node.output[0])


def _abs(node: onnx.NodeProto, build: Builder) -> None:
    """torch-mlir takes all integers for signed ones."""
    if not np.issubdtype(build.dtype, np.unsignedinteger):
        return build.keep()
    build.add("Identity", node.input[0], output=node.output[0])


def _dequantize(node: onnx.NodeProto, build: Builder) -> None:
    """With a scale an index of a dimension torch-mlir takes bytes for signed ones."""
    x, scale, zero = node.input[0], node.input[1], given(node, 2)
    shape, scales = build.shape(x), build.shape(scale)
    if not shape or len(scales) != 1 or attributes(node).get("block_size", 0):
        return build.keep()
    form = [1] * len(shape)
    form[attributes(node).get("axis", 1)] = scales[0]
    wide = onnx.helper.np_dtype_to_tensor_dtype(build.type(scale))
    y = build.add("Cast", x, to=wide)
    if zero:
        y = build.add("Sub", y, build.reshape(build.add("Cast", zero, to=wide), form))
    build.add("Mul", y, build.reshape(scale, form), output=node.output[0])


def _extreme(node: onnx.NodeProto, build: Builder) -> None:
    """NaN where any element is NaN."""
    if not build.floating or len(node.input) < 2:
        return build.keep()
    comparison = "Less" if node.op_type == "Min" else "Greater"
    best = node.input[0]
    for x in node.input[1:]:
        first = build.add("Or", build.add(comparison, best, x), build.add("IsNaN", best))
        best = build.add("Where", first, best, x)
    build.add("Identity", best, output=node.output[0])


def _quotient(node: onnx.NodeProto, build: Builder) -> None:
    """torch-mlir divides numbers without a sign as if they had one: bytes as larger ones."""
    if not np.issubdtype(build.dtype, np.unsignedinteger):
        return build.keep()
    if build.dtype != np.uint8:
        build.refuse(f"{build.dtype} is not supported, only uint8 and signed types: Cast to int64")
    wide = [build.add("Cast", name, to=TensorProto.INT32) for name in node.input]
    (result,) = build.again(wide, [""])
    build.add("Cast", result, to=TensorProto.UINT8, output=node.output[0])


def _mod(node: onnx.NodeProto, build: Builder) -> None:
    """Of floating-point numbers by truncated quotients, in double precision."""
    if not build.floating:
        return _quotient(node, build)
    if not attributes(node).get("fmod", 0):
        build.refuse("fmod = 0 is for integers before opset 28: set fmod = 1")
    if build.dtype == np.float64:
        build.refuse(
            "remainders of float64 are not supported: Cast both inputs to float32 before it and "
            "the result back after it, which keeps 7 digits"
        )
    a, b = (build.add("Cast", name, to=TensorProto.DOUBLE) for name in node.input)
    quotient = build.add("Div", a, b)
    zero = build.number(0, np.float64)
    down, up = build.add("Floor", quotient), build.add("Ceil", quotient)
    whole = build.add("Where", build.add("Less", quotient, zero), up, down)
    rest = build.add("Sub", a, build.add("Mul", whole, b))
    # A number is less than what is infinite, and has no quotient.
    endless = build.add("And", build.add("IsInf", b), build.add("Not", build.add("IsInf", a)))
    rest = build.add("Where", endless, a, rest)
    # Nothing left is a zero with the sign of what was divided.
    none = build.add("Equal", rest, zero)
    rest = build.add("Where", none, build.add("Mul", a, zero), rest)
    kind = onnx.helper.np_dtype_to_tensor_dtype(build.dtype)
    build.add("Cast", rest, to=kind, output=node.output[0])


def _bit_shift(node: onnx.NodeProto, build: Builder) -> None:
    """By as many bits as there are or more: zero."""
    bits = build.dtype.itemsize * 8
    (shifted,) = build.again(node.input, [""])
    less = build.add("Less", node.input[1], build.number(bits))
    build.add("Where", less, shifted, build.number(0), output=node.output[0])


def _arg(node: onnx.NodeProto, build: Builder) -> None:
    """A NaN is the greatest and the least element."""
    if not build.floating:
        return build.keep()
    x, axis = node.input[0], attributes(node).get("axis", 0)
    best = build.reduce("ReduceMax" if node.op_type == "ArgMax" else "ReduceMin", x, [axis])
    hit = build.add("Or", build.add("Equal", x, best), build.add("IsNaN", x))
    hit = build.add("Cast", hit, to=TensorProto.INT32)
    build.add("ArgMax", hit, output=node.output[0], **attributes(node))


def _reduction(node: onnx.NodeProto, build: Builder) -> None:
    """Axes that are there and empty are as those that are not."""
    axes = build.known(given(node, 1))
    if axes is None or axes.size:
        return build.keep()
    build.again(node.input[:1], node.output)


def _reduce_l2(node: onnx.NodeProto, build: Builder) -> None:
    """Of doubles as a root, which torch-mlir takes of singles."""
    if build.dtype != np.float64:
        return _reduction(node, build)
    axes = build.known(given(node, 1))
    inputs = node.input if axes is None or axes.size else node.input[:1]
    (total,) = build.adds("ReduceSumSquare", inputs, [""], **attributes(node))
    build.add("Sqrt", total, output=node.output[0])


def _gelu(node: onnx.NodeProto, build: Builder) -> None:
    if attributes(node).get("approximate", b"none") != b"tanh":
        return build.keep()
    (x,) = node.input
    cube = build.add("Mul", build.add("Mul", x, x), x)
    inner = build.add("Add", x, build.add("Mul", cube, build.number(0.044715)))
    bent = build.add("Tanh", build.add("Mul", inner, build.number(math.sqrt(2 / math.pi))))
    half = build.add("Mul", x, build.number(0.5))
    build.add("Mul", half, build.add("Add", bent, build.number(1)), output=node.output[0])


def _exponential_unit(node: onnx.NodeProto, build: Builder) -> None:
    """Elu, Selu and Celu. With the exponential less one by the tangent: near zero it keeps its
    digits, and of zero the sign."""
    options = _SELU if node.op_type == "Selu" else {}
    options = {"alpha": 1.0} | options | attributes(node)
    alpha, gamma = (np.float32(options.get(name, 1)) for name in ("alpha", "gamma"))
    celu = node.op_type == "Celu"
    if celu and not alpha > 0:
        build.refuse("its alpha is not above zero: write it as Exp, Sub, Mul, Max and Min")
    short = build.dtype.itemsize == 2
    kind = np.float32 if short else build.dtype
    x = build.add("Cast", node.input[0], to=TensorProto.FLOAT) if short else node.input[0]

    def times(x: str, factor: np.float32) -> str:
        return x if factor == 1 else build.add("Mul", x, build.number(factor, kind))

    scaled = build.add("Div", x, build.number(alpha, kind)) if celu and alpha != 1 else x
    bent = build.add("Tanh", build.add("Mul", scaled, build.number(0.5, kind)))
    less = build.add("Sub", build.number(1, kind), bent)
    bent = times(build.add("Div", build.add("Add", bent, bent), less), alpha)
    above = build.add("Less", build.number(0, kind), x)
    y = times(build.add("Where", above, x, bent), gamma)
    own = onnx.helper.np_dtype_to_tensor_dtype(build.dtype)
    build.add("Cast", y, to=own, output=node.output[0])


def _erf(node: onnx.NodeProto, build: Builder) -> None:
    """Of zero with its sign."""
    (x,) = node.input
    zero = build.add("Equal", x, build.number(0))
    build.add("Where", zero, x, build.add("Erf", x), output=node.output[0])


def _swish(node: onnx.NodeProto, build: Builder) -> None:
    (x,) = node.input
    scaled = build.add("Mul", x, build.number(attributes(node).get("alpha", 1.0)))
    build.add("Mul", x, build.add("Sigmoid", scaled), output=node.output[0])


def _lp_normalization(node: onnx.NodeProto, build: Builder) -> None:
    """Zeros stay zeros."""
    options = attributes(node)
    axes = [options.get("axis", -1)]
    if options.get("p", 2) == 1:
        size = build.reduce("ReduceL1", node.input[0], axes)
    else:
        size = build.add("Sqrt", build.reduce("ReduceSumSquare", node.input[0], axes))
    none = build.add("Equal", size, build.number(0))
    divisor = build.add("Where", none, build.number(1), size)
    build.add("Div", node.input[0], divisor, output=node.output[0])


def _batch_normalization(node: onnx.NodeProto, build: Builder) -> None:
    """torch-mlir has opset 15's alone; the older ones are written out, for inference."""
    options, shape = attributes(node), build.shape(node.input[0])
    if build.opset >= 15:
        return build.keep()
    if options.get("training_mode", 0) or any(node.output[1:]):
        build.refuse("it would train: export the model for inference")
    if not options.get("spatial", 1) or not shape or not build.floating:
        build.refuse("only a number a channel, of known sizes, is supported: export for opset 15")
    of_channels = [shape[1]] + [1] * (len(shape) - 2)
    scale, bias, mean, variance = (build.reshape(name, of_channels) for name in node.input[1:5])
    spread = build.add("Add", variance, build.number(options.get("epsilon", 1e-5)))
    centred = build.add("Sub", node.input[0], mean)
    y = build.add("Div", centred, build.add("Sqrt", spread))
    build.add("Add", build.add("Mul", y, scale), bias, output=node.output[0])


def _group_normalization(node: onnx.NodeProto, build: Builder) -> None:
    """Before opset 21 a scale and a bias were a group's, then a channel's."""
    options, shape = attributes(node), build.shape(node.input[0])
    groups = options["num_groups"]
    if not shape or build.dtype not in (np.float32, np.float64):
        build.refuse("only float32 and float64 of known sizes are supported: Cast before it")
    x = build.reshape(node.input[0], [shape[0], groups, -1])
    centred = build.add("Sub", x, build.reduce("ReduceMean", x, [2]))
    variance = build.reduce("ReduceMean", build.add("Mul", centred, centred), [2])
    variance = build.add("Add", variance, build.number(options.get("epsilon", 1e-5)))
    y = build.add("Div", centred, build.add("Sqrt", variance))
    parts = groups if build.opset < 21 else shape[1]
    y = build.reshape(y, [shape[0], parts, -1])
    scale, bias = (build.reshape(name, [1, parts, 1]) for name in node.input[1:])
    y = build.add("Add", build.add("Mul", y, scale), bias)
    build.reshape(y, shape, output=node.output[0])


EXPANSIONS: dict[str, Callable[[onnx.NodeProto, Builder], None]] = {
    "Abs": _abs,
    "ArgMax": _arg,
    "ArgMin": _arg,
    "BatchNormalization": _batch_normalization,
    "BitShift": _bit_shift,
    "Clip": _clip,
    "DequantizeLinear": _dequantize,
    "Div": _quotient,
    **dict.fromkeys(("Celu", "Elu", "Selu"), _exponential_unit),
    "Erf": _erf,
    "Gelu": _gelu,
    "GroupNormalization": _group_normalization,
    "LpNormalization": _lp_normalization,
    "Max": _extreme,
    "Min": _extreme,
    "Mod": _mod,
    "Pow": powers.power,
    "ReduceL2": _reduce_l2,
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), _reduction),
    "Sign": _sign,
    "Swish": _swish,
}
