# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions of ONNX: groups one by one, and paddings as what is cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx

from baechi.importer.onnx.builder import Builder, attributes

# Each is a convolution.
_MOST_GROUPS = 64


def _conv_transpose(node: onnx.NodeProto, build: Builder) -> None:
    options = attributes(node)
    shape, weights = (build.shape(name) for name in node.input[:2])
    groups, rank = options.get("group", 1), len(shape) - 2
    if not shape or not weights or groups == 1 and _is_plain(options):
        return build.keep()
    if groups > _MOST_GROUPS:
        build.refuse(f"{groups} groups, at most {_MOST_GROUPS} are taken: split its channels")
    whole = _whole(options, shape, weights)
    before, after = _cuts(options, shape, whole, build)
    even = before == after
    changed = {
        "auto_pad": None, "output_shape": None, "group": 1, "kernel_shape": weights[2:],
        "pads": before * 2 if even else [0] * (2 * rank),
    }  # fmt: skip
    # Channels of the input, the same of the weights, those of the result.
    channels = shape[1], weights[0], groups * weights[1]
    results = []
    for group in range(groups):
        inputs = []
        for name, dim, size in zip(node.input, (1, 0, 0), channels):
            part = size // groups
            if name and groups > 1:
                name = build.slice(name, dim, group * part, (group + 1) * part)
            inputs.append(name)
        results += build.again(inputs, [""], **changed)
    y = results[0] if groups == 1 else build.add("Concat", *results, axis=1)
    for d in range(rank):
        if not even and (before[d] or after[d]):
            y = build.slice(y, d + 2, before[d], whole[d] - after[d])
    build.forget(node.output[0])
    build.add("Identity", y, output=node.output[0])


def _is_plain(options: dict[str, Any]) -> bool:
    """What torch-mlir lowers."""
    pads = list(options.get("pads", []))
    half = len(pads) // 2
    automatic = options.get("auto_pad", b"NOTSET") != b"NOTSET"
    return pads[:half] == pads[half:] and not automatic and not options.get("output_shape")


def _whole(options: dict[str, Any], shape: list[int], weights: list[int]) -> list[int]:
    """The result's sizes without paddings."""
    rank = len(shape) - 2
    strides, dilations = (options.get(name, [1] * rank) for name in ("strides", "dilations"))
    further = options.get("output_padding", [0] * rank)
    return [
        strides[d] * (shape[d + 2] - 1) + further[d] + (weights[d + 2] - 1) * dilations[d] + 1
        for d in range(rank)
    ]


def _cuts(
    options: dict[str, Any], shape: list[int], whole: list[int], build: Builder
) -> tuple[list[int], list[int]]:
    """What is cut off before and after; of an odd number SAME_UPPER cuts more after."""
    rank, automatic = len(whole), options.get("auto_pad", b"NOTSET")
    wanted = list(options.get("output_shape", []))[-rank:]
    if not wanted and automatic == b"VALID":
        return [0] * rank, [0] * rank
    if not wanted and automatic == b"NOTSET":
        pads = list(options.get("pads", [0] * (2 * rank)))
        return pads[:rank], pads[rank:]
    strides = options.get("strides", [1] * rank)
    wanted = wanted or [shape[d + 2] * strides[d] for d in range(rank)]
    rest = [size - part for size, part in zip(whole, wanted)]
    if min(rest) < 0:
        d = next(d for d in range(rank) if rest[d] < 0)
        build.refuse(
            f"a result of {wanted[d]} elements in dimension {d + 2}, where its windows reach "
            f"{whole[d]}: Pad after it"
        )
    small = [each // 2 for each in rest]
    large = [each - part for each, part in zip(rest, small)]
    return (small, large) if automatic == b"SAME_UPPER" else (large, small)


EXPANSIONS: dict[str, Callable[[onnx.NodeProto, Builder], None]] = {
    "ConvTranspose": _conv_transpose,
}
