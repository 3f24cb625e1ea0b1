# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of the paper's tables, at their full size, and reduced ones to execute."""

from __future__ import annotations

import dataclasses
from typing import Any

from baechi import models
from baechi.importer.common.errors import ImportFailure


@dataclasses.dataclass(frozen=True)
class Benchmark:
    name: str
    model: str  # of the collection, or GENERATED
    preset: str
    changes: tuple[tuple[str, Any], ...] = ()  # fields of the preset, changed

    def arguments(self) -> list[str]:
        """Of `python -m baechi.importer`."""
        settings = [f"{key}={value}" for key, value in self.changes]
        return [self.model, f"--preset={self.preset}", *(["--set", *settings] if settings else [])]


# Jeon et al., 2020: Inception-V3 with batches of 32 and 64, GNMT with sequences of 40 and 50
# and batches of 128 and 256, the Transformer of 6 layers.
FULL = [
    Benchmark("inception-32", "inception", "paper"),
    Benchmark("inception-64", "inception", "paper", (("batch", 64),)),
    Benchmark("gnmt40-128", "gnmt", "paper"),
    Benchmark("gnmt40-256", "gnmt", "paper", (("batch", 256),)),
    Benchmark("gnmt50-128", "gnmt", "paper50"),
    Benchmark("gnmt50-256", "gnmt", "paper50", (("batch", 256),)),
    Benchmark("transformer-64", "transformer_encdec", "paper"),
]
# Graphs of cells (baechi.learned.nasnet): preset "a" is NASNet-A, "searched" of drawn cells.
GENERATED = "nasnet"
# What placers that learn are tried on: few operators, many, many alike, and Placeto's kind:
# NASNet-A, and networks of cells that a search could draw, by seeds that training does not use.
LEARNED = [
    Benchmark("moe-small", "moe", "small"),
    Benchmark("inception-32", "inception", "paper"),
    Benchmark("transformer-64", "transformer_encdec", "paper"),
    Benchmark("gnmt40-128", "gnmt", "paper"),
    Benchmark("nasnet-a", GENERATED, "a"),
    Benchmark("cells-1", GENERATED, "searched", (("seed", 1), ("repeats", 3))),
    Benchmark("cells-2", GENERATED, "searched", (("seed", 2), ("batch", 128))),
]
# What two host cores run in a fraction of a second a step.
REDUCED = [
    Benchmark("inception-small", "inception", "small"),
    Benchmark("gnmt-small", "gnmt", "small"),
    Benchmark("transformer-small", "transformer_encdec", "small"),
]
# What is trained: every model of the collection, tiny with dropout where it has it, and small.
# Where training amplifies rounding (Adam's quotients near zero; ReLU's corners behind a
# normalization over few values), the rate is such that 50 steps stay comparable.
_CHANGES = {
    "mlp-tiny": {"dropout": 0.1, "learning_rate": 1e-3},
    "transformer-tiny": {"dropout": 0.1},
    "moe-tiny": {"dropout": 0.1},
    "gnmt-tiny": {"dropout": 0.1},
    "inception-tiny": {"dropout": 0.1, "learning_rate": 1e-3},
    "resnet-tiny": {"learning_rate": 1e-3},
    "inception-small": {"learning_rate": 1e-3},
    "resnet-small": {"learning_rate": 2e-5},
    "mlp-small": {"learning_rate": 1e-5},
    "gnmt-small": {"learning_rate": 0.5},
    "convnet-small": {"learning_rate": 5e-3},
}
TRAINED = [
    Benchmark(name, model, preset, tuple(_CHANGES.get(name, {}).items()))
    for preset in ("tiny", "small")
    for model in models.NAMES
    for name in [f"{model}-{preset}"]
]


def chosen(benchmarks: list[Benchmark], names: list[str]) -> list[Benchmark]:
    """Those of these names, or all. Raises ImportFailure."""
    known = {benchmark.name: benchmark for benchmark in benchmarks}
    if unknown := [name for name in names if name not in known]:
        raise ImportFailure(f"unknown model '{unknown[0]}'; known: {', '.join(known)}")
    return [known[name] for name in names] if names else benchmarks
