# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resize of ONNX where torch-mlir lacks it: a sum of weighted elements, one dimension after
another, by the operator's definition."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import onnx

from baechi.importer.onnx.builder import Builder, attributes, given

_COORDINATES = "coordinate_transformation_mode"
# Where elements lie; the last is opset 11's alone.
_MODES = (
    b"half_pixel", b"align_corners", b"asymmetric", b"pytorch_half_pixel",
    b"half_pixel_symmetric", b"tf_crop_and_resize", b"tf_half_pixel_for_nn",
)  # fmt: skip
# Roundings of before opset 11: the nearest of two elements is the left one, the right one where
# the result is smaller, which it may not be of an Upsample.
FIRST_ROUNDINGS = {"Resize": "first", "Upsample": "first, larger"}
# Each is a few nodes a dimension.
_MOST_ELEMENTS = 256


@dataclasses.dataclass
class _Line:
    """One dimension."""

    size: int
    result: int
    scale: float
    start: float  # of `roi`
    end: float


def _resize(node: onnx.NodeProto, build: Builder) -> None:
    options, x, shape = attributes(node), node.input[0], build.shape(node.input[0])
    mode = options.get("mode", b"nearest").decode()
    roi, factors, sizes = (build.known(given(node, i)) for i in (1, 2, 3))
    if sizes is None and (factors is None or not factors.size) or not shape:
        return build.keep()
    if given(node, 1) and roi is None and _crops(options):
        build.refuse("its roi is no constant: give it as an initializer")
    if (coordinates := options.get(_COORDINATES, b"half_pixel")) not in _MODES:
        build.refuse(f"{_COORDINATES} '{coordinates.decode()}' is not known: take 'half_pixel'")
    lines = _lines(options, shape, factors, sizes, roi)
    if options.get("nearest_mode", b"").decode() in FIRST_ROUNDINGS.values():
        _settle_first(node, options, lines, build)
    for line in lines.values():
        _check(options, line, build)
    if _plain(options, mode, len(shape), lines):
        if not given(node, 1) and "extrapolation_value" not in options:
            return build.keep()
        # torch-mlir takes none of what only crops use.
        build.again([x, "", *node.input[2:]], node.output, extrapolation_value=None)
        return
    if mode != "nearest" and not build.floating:
        build.refuse(f"mode '{mode}' of {build.dtype}: Cast to float before it")
    half = build.dtype == np.float16
    if half and mode != "nearest":
        x = build.add("Cast", x, to=onnx.TensorProto.FLOAT)
        build.dtype = np.dtype(np.float32)
    for axis, line in lines.items():
        places = _places(options, line)
        outside = np.zeros(line.result, bool)
        if _crops(options):
            outside = (places < 0) | (places > line.size - 1)
        first, weights = _weights(options, mode, line, places)
        if weights.shape[1] > _MOST_ELEMENTS:
            build.refuse(f"antialias over {weights.shape[1]} elements: AveragePool before it")
        x = _weighted(build, x, axis, line.size, len(shape), first, weights, mode == "nearest")
        if outside.any():
            mask = build.number(_along(outside, axis, len(shape)), bool)
            x = build.add("Where", mask, build.number(options.get("extrapolation_value", 0)), x)
    if half and mode != "nearest":
        x = build.add("Cast", x, to=onnx.TensorProto.FLOAT16)
    build.add("Identity", x, output=node.output[0])


def _settle_first(
    node: onnx.NodeProto, options: dict[str, Any], lines: dict[int, _Line], build: Builder
) -> None:
    """An older node: its rounding is a newer one wherever it is the same in all dimensions."""
    shrinks = any(line.scale < 1 for line in lines.values())
    if shrinks and options["nearest_mode"].decode() == FIRST_ROUNDINGS["Upsample"]:
        least = min(line.scale for line in lines.values())
        build.refuse(f"an Upsample by {least:.4g}, which is below 1: use Resize of opset 10")
    if not shrinks:
        options["nearest_mode"] = b"floor"
        (kept,) = (each for each in node.attribute if each.name == "nearest_mode")
        kept.s = b"floor"


def _check(options: dict[str, Any], line: _Line, build: Builder) -> None:
    if line.result < 1:
        build.refuse("its result is empty, and a tensor without elements is not supported")
    whole = math.isclose(line.scale * line.size, line.result, rel_tol=1e-6)
    if not whole and (_crops(options) or options.get(_COORDINATES) == b"align_corners"):
        build.refuse(
            f"from {line.size} to {line.scale * line.size:.4g} elements, of which runtimes "
            "have different ideas where corners are aligned: give its sizes"
        )


def _crops(options: dict[str, Any]) -> bool:
    return options.get(_COORDINATES) == b"tf_crop_and_resize"


def _plain(options: dict[str, Any], mode: str, rank: int, changed: Collection[int]) -> bool:
    """What torch-mlir lowers."""
    coordinates = options.get(_COORDINATES, b"half_pixel")
    return not (
        _crops(options)
        or coordinates == b"tf_half_pixel_for_nn"
        or mode == "nearest" and _is_first(options)
        or rank != 4
        or not set(changed) <= {2, 3}
        or mode == "nearest" and coordinates not in (b"half_pixel", b"asymmetric")
        or options.get("axes")
        or options.get("keep_aspect_ratio_policy", b"stretch") != b"stretch"
        or options.get("antialias", 0)
        or mode == "cubic"
        and (options.get("exclude_outside", 0) or options.get("cubic_coeff_a", -0.75) != -0.75)
    )  # fmt: skip


def _lines(options, shape, factors, sizes, roi) -> dict[int, _Line]:
    """The dimensions that change."""
    rank = len(shape)
    axes = [axis % rank for axis in options.get("axes", range(rank))]
    count = len(axes)
    if sizes is not None and sizes.size:
        given_sizes = [int(size) for size in sizes]
        scales = [size / shape[axis] for size, axis in zip(given_sizes, axes)]
        policy = options.get("keep_aspect_ratio_policy", b"stretch")
        if policy != b"stretch":
            scale = min(scales) if policy == b"not_larger" else max(scales)
            scales = [scale] * count
            given_sizes = [int(scale * shape[axis] + 0.5) for axis in axes]
    else:
        scales = [float(scale) for scale in factors]
        given_sizes = [int(scale * shape[axis]) for scale, axis in zip(scales, axes)]
    parts = [float(each) for each in roi] if _crops(options) and roi is not None else []
    parts = parts or [0.0] * count + [1.0] * count
    lines = {}
    for i, axis in enumerate(axes):
        line = _Line(shape[axis], given_sizes[i], scales[i], parts[i], parts[count + i])
        same = math.isclose(line.scale, 1) and line.result == line.size
        if not (same and (line.start, line.end) == (0, 1)):
            lines[axis] = line
    return lines


def _places(options: dict[str, Any], line: _Line) -> np.ndarray:
    """Where among the elements the results' are."""
    mode = options.get(_COORDINATES, b"half_pixel")
    y, whole = np.arange(line.result, dtype=np.float64), line.scale * line.size
    last = line.size - 1
    if mode == b"align_corners":
        return np.zeros_like(y) if whole == 1 else y * last / (whole - 1)
    if mode == b"asymmetric":
        return _single(y, line.scale) if _is_first(options) else y / line.scale
    if mode == b"tf_crop_and_resize":
        part = line.end - line.start
        inner = np.full_like(y, part * last / 2) if whole == 1 else y * part * last / (whole - 1)
        return inner + line.start * last
    if mode == b"pytorch_half_pixel" and whole == 1:
        return np.full_like(y, -0.5)
    if mode == b"tf_half_pixel_for_nn":
        return _single(y + 0.5, line.scale)
    middle = (y + 0.5) / line.scale - 0.5
    if mode == b"half_pixel_symmetric":
        middle += line.size / 2 * (1 - line.result / whole)
    return middle


def _single(y: np.ndarray, scale: float) -> np.ndarray:
    """By runtimes in single precision, in which 3.5 / 0.7 is 5: of what ONNX's reference lacks."""
    return (y.astype(np.float32) / np.float32(scale)).astype(np.float64)


def _is_first(options: dict[str, Any]) -> bool:
    return options.get("nearest_mode", b"").decode() == FIRST_ROUNDINGS["Resize"]


def _weights(
    options: dict[str, Any], mode: str, line: _Line, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first element of each result, which may be before the border, and the weights."""
    below = np.floor(places).astype(np.int64)
    # On an element it is the right one of two.
    ratio = np.where(places == below, 1.0, places - below)
    first = below - (places == below)
    if mode == "nearest":
        rounding = options.get("nearest_mode", b"round_prefer_floor")
        if _is_first(options):
            rounding = b"ceil" if line.scale < 1 else b"floor"
        right = {
            b"round_prefer_floor": ratio > 0.5,
            b"round_prefer_ceil": ratio >= 0.5,
            b"floor": ratio == 1,
            b"ceil": ratio > 0,
        }[rounding]
        return first + right, np.ones((line.result, 1))
    reach = 2 if mode == "cubic" else 1
    scale = min(line.scale, 1.0) if options.get("antialias", 0) else 1.0
    start = math.floor(-reach / scale) + 1
    offsets = np.arange(start, 2 - start if mode == "cubic" else start + 2 - 2 * start)
    distance = np.abs(scale * (offsets - ratio[:, None]))
    if mode == "cubic":
        a = options.get("cubic_coeff_a", -0.75)
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    else:
        weights = np.clip(1 - distance, 0, 1)
    if options.get("exclude_outside", 0):
        elements = first[:, None] + offsets
        weights = np.where((elements < 0) | (elements >= line.size), 0, weights)
    total = weights.sum(1, keepdims=True)
    return first + start, weights / np.where(total == 0, 1, total)


def _weighted(build, x, axis, size, rank, first, weights, nearest) -> str:
    result = ""
    for k in range(weights.shape[1]):
        places = build.number(np.clip(first + k, 0, size - 1), np.int64)
        part = build.add("Gather", x, places, axis=axis)
        if nearest:
            return part
        part = build.add("Mul", part, build.number(_along(weights[:, k], axis, rank)))
        result = build.add("Add", result, part) if result else part
    return result


def _along(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    return values.reshape([-1 if d == axis else 1 for d in range(rank)])


EXPANSIONS: dict[str, Callable[[onnx.NodeProto, Builder], None]] = {"Resize": _resize}
