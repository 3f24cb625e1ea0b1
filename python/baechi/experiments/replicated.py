# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Full-size models as layers of parameters and work, from their published shapes.

Sources: He et al., "Deep Residual Learning", CVPR 2016 (ResNet-50; the stride is the 3 x 3
convolution's, as in MXNet's example program, which P3's authors ran); Simonyan and Zisserman, "Very
Deep Convolutional Networks", ICLR 2015 (VGG-19); Szegedy et al., "Rethinking the Inception
Architecture", CVPR 2016, in the shapes of torchvision's inception_v3 without the auxiliary head;
Hieber et al., "Sockeye", 2017, in the configuration of P3's authors: IWSLT15 English to Vietnamese,
2 + 2 LSTM layers of 512, embeddings of 512, MLP attention of 512 (vocabularies of 17,191 and 7,709
words: those of the Stanford NMT data set).

Times are ASSUMED, not measured: a layer's forward takes its share of the step by multiplications,
its backward twice that. ResNet-50 and Inception-V3 at 3.1 TFLOP/s and VGG-19, whose 3 x 3
convolutions save multiplications (Winograd), at 8.4 are what a P4000 (5.3 TFLOP/s at its peak) is
taken to reach; Sockeye's step is as long as its exchange at 4 Gbit/s, where its gain was largest.
"""

from __future__ import annotations

import dataclasses

from baechi.replicas.exchange import Layer

BATCH = 32


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    layers: list[Layer]
    gbits: tuple[int, ...]  # bandwidths of the table
    published: tuple[int, int] | None  # Gbit/s, gain in %


class _Shapes:
    """Layers as (name, parameters, multiplications of one sample)."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int, int]] = []

    def conv(
        self, inputs: int, outputs: int, kernel: tuple[int, int], side: int, extra: int = 2
    ) -> None:
        """Onto side x side; `extra` parameters an output: scale and shift, or a bias."""
        weights = inputs * outputs * kernel[0] * kernel[1]
        self.found.append(
            (f"conv{len(self.found)}", weights + extra * outputs, weights * side * side)
        )

    def dense(self, inputs: int, outputs: int, times: int = 1) -> None:
        weights = inputs * outputs
        self.found.append((f"dense{len(self.found)}", weights + outputs, weights * times))

    def table(self, rows: int, width: int) -> None:
        self.found.append((f"embedding{len(self.found)}", rows * width, width))

    def layers(self, step_ms: float) -> list[Layer]:
        all_of_them = sum(multiplications for _, _, multiplications in self.found)
        made = []
        for name, parameters, multiplications in self.found:
            forward = round(step_ms * 1e6 / 3 * multiplications / all_of_them)
            made.append(Layer(name, parameters, forward, 2 * forward))
        return made

    def step_ms(self, teraflops: float) -> float:
        """At a rate: 2 operations a multiplication, backward twice forward."""
        multiplications = sum(multiplications for _, _, multiplications in self.found)
        return 3 * 2 * multiplications * BATCH / teraflops / 1e9


def vgg19() -> _Shapes:
    made, inputs, side = _Shapes(), 3, 224
    for width, times in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(times):
            made.conv(inputs, width, (3, 3), side, extra=1)
            inputs = width
        side //= 2
    made.dense(512 * 7 * 7, 4096)
    made.dense(4096, 4096)
    made.dense(4096, 1000)
    return made


def resnet50() -> _Shapes:
    made, inputs, side = _Shapes(), 64, 56
    made.conv(3, 64, (7, 7), 112)
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            made.conv(inputs, width, (1, 1), side)
            side //= stride if block == 0 else 1
            made.conv(width, width, (3, 3), side)
            made.conv(width, 4 * width, (1, 1), side)
            if block == 0:
                made.conv(inputs, 4 * width, (1, 1), side)
            inputs = 4 * width
    made.dense(2048, 1000)
    return made


def inception_v3() -> _Shapes:
    made = _Shapes()

    def branch(inputs: int, side: int, *convs: tuple[int, tuple[int, int]]) -> None:
        for outputs, kernel in convs:
            made.conv(inputs, outputs, kernel, side)
            inputs = outputs

    one, three, five, row, column = (1, 1), (3, 3), (5, 5), (1, 7), (7, 1)
    for inputs, outputs, kernel, side in (
        (3, 32, three, 149), (32, 32, three, 147), (32, 64, three, 147),
        (64, 80, one, 73), (80, 192, three, 71),
    ):  # fmt: skip
        made.conv(inputs, outputs, kernel, side)
    for inputs, pool in ((192, 32), (256, 64), (288, 64)):
        branch(inputs, 35, (64, one))
        branch(inputs, 35, (48, one), (64, five))
        branch(inputs, 35, (64, one), (96, three), (96, three))
        branch(inputs, 35, (pool, one))
    branch(288, 17, (384, three))
    branch(288, 35, (64, one), (96, three))
    branch(96, 17, (96, three))
    for width in (128, 160, 160, 192):
        branch(768, 17, (192, one))
        branch(768, 17, (width, one), (width, row), (192, column))
        branch(768, 17, (width, one), (width, column), (width, row), (width, column), (192, row))
        branch(768, 17, (192, one))
    branch(768, 17, (192, one))
    branch(192, 8, (320, three))
    branch(768, 17, (192, one), (192, row), (192, column))
    branch(192, 8, (192, three))
    for inputs in (1280, 2048):
        branch(inputs, 8, (320, one))
        branch(inputs, 8, (384, one))
        for _ in range(2):
            branch(384, 8, (384, (1, 3)))
        branch(inputs, 8, (448, one), (384, three))
        for _ in range(2):
            branch(384, 8, (384, (1, 3)))
        branch(inputs, 8, (192, one))
    made.dense(2048, 1000)
    return made


def sockeye() -> _Shapes:
    """Sentences of 30 words; gates of an LSTM are one matrix."""
    made, words, size = _Shapes(), 30, 512
    made.table(17_191, size)
    for inputs in (size, size):
        made.dense(inputs + size, 4 * size, words)
    made.table(7_709, size)
    made.dense(3 * size, 4 * size, words)
    made.dense(2 * size, 4 * size, words)
    made.dense(2 * size, size, words)
    made.dense(2 * size, size, words)
    made.dense(size, 7_709, words)
    return made


def models() -> list[Model]:
    """P3's four, with the gain that its paper reports."""
    low = (1, 2, 3, 4, 5, 6, 8, 10)
    resnet, vgg, inception = resnet50(), vgg19(), inception_v3()
    return [
        Model("resnet-50", resnet.layers(resnet.step_ms(3.1)), low, (4, 25)),
        Model("vgg-19", vgg.layers(vgg.step_ms(8.4)), (5, 10, 15, 20, 25, 30), (15, 66)),
        Model("inception-v3", inception.layers(inception.step_ms(3.1)), low, (4, 18)),
        Model("sockeye-like", sockeye().layers(326), low, (4, 38)),
    ]
