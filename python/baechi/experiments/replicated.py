# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Full-size models as layers of parameters and work, from their published shapes.

Sources: He et al., "Deep Residual Learning", CVPR 2016 (ResNet-50; strides in the first 1 x 1
convolutions, as the paper has them); Simonyan and Zisserman, "Very Deep Convolutional Networks",
ICLR 2015 (VGG-19); Szegedy et al., "Rethinking the Inception Architecture", CVPR 2016, in the
shapes of torchvision's inception_v3 without the auxiliary head; Hieber et al., "Sockeye", 2017, in
the configuration of P3's authors: IWSLT15 English to Vietnamese, 2 + 2 LSTM layers of 512,
embeddings of 512, MLP attention of 512 (vocabularies of 17,191 and 7,709 words: those of the
Stanford NMT data set; sentences of 30 words, assumed).

Times are ASSUMED, not measured: no throughput of a P4000, P3's card, was found. A layer's forward
takes its share of the step by multiplications, its backward twice that; a model computes at
TERAFLOPS, which is somewhat over half of that card's peak of 5.3. VGG-19 alone is taken to reach
8.4: above the peak, as only convolutions that save multiplications could (Winograd's), and where
its gain at 15 Gbit/s is largest. The table p3-compute shows every model at every rate.
"""

from __future__ import annotations

import dataclasses

from baechi.replicas.exchange import Layer

BATCH = 32
TERAFLOPS = 3.1
VGG_TERAFLOPS = 8.4


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    shapes: Shapes
    teraflops: float  # assumed
    gbits: tuple[int, ...]  # bandwidths of the table
    published: tuple[int, int]  # Gbit/s, gain in %

    @property
    def layers(self) -> list[Layer]:
        return self.shapes.layers(self.teraflops)


class Shapes:
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

    def layers(self, teraflops: float) -> list[Layer]:
        """2 operations a multiplication, backward twice forward."""
        made = []
        for name, parameters, multiplications in self.found:
            forward = round(2 * multiplications * BATCH / teraflops / 1e3)
            made.append(Layer(name, parameters, forward, 2 * forward))
        return made


def vgg19() -> Shapes:
    made, inputs, side = Shapes(), 3, 224
    for width, times in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(times):
            made.conv(inputs, width, (3, 3), side, extra=1)
            inputs = width
        side //= 2
    made.dense(512 * 7 * 7, 4096)
    made.dense(4096, 4096)
    made.dense(4096, 1000)
    return made


def resnet50() -> Shapes:
    made, inputs, side = Shapes(), 64, 56
    made.conv(3, 64, (7, 7), 112)
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            side //= stride if block == 0 else 1
            made.conv(inputs, width, (1, 1), side)
            made.conv(width, width, (3, 3), side)
            made.conv(width, 4 * width, (1, 1), side)
            if block == 0:
                made.conv(inputs, 4 * width, (1, 1), side)
            inputs = 4 * width
    made.dense(2048, 1000)
    return made


def inception_v3() -> Shapes:
    made = Shapes()

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


def sockeye() -> Shapes:
    """Sentences of 30 words; gates of an LSTM are one matrix."""
    made, words, size = Shapes(), 30, 512
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
    return [
        Model("resnet-50", resnet50(), TERAFLOPS, low, (4, 25)),
        Model("vgg-19", vgg19(), VGG_TERAFLOPS, (5, 10, 15, 20, 25, 30), (15, 66)),
        Model("inception-v3", inception_v3(), TERAFLOPS, low, (4, 18)),
        Model("sockeye-like", sockeye(), TERAFLOPS, low, (4, 38)),
    ]
