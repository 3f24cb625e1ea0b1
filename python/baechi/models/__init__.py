# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model collection: training steps (forward, backward, update) in JAX.

A model is a module with `Config` (a frozen dataclass), `PRESETS` (name to
`Config`) and `training_step(config)`, which returns `(step, args,
donate_argnums)`; the leaves of `args` are initial values (baechi.init).
"""

import importlib

NAMES = (
    "mlp",
    "transformer",
    "transformer_encdec",
    "moe",
    "lstm",
    "rnnlm",
    "gnmt",
    "convnet",
    "resnet",
    "inception",
    "wgan",
    "speech",
)


def load(name: str):
    """The module of a model of the collection."""
    if name not in NAMES:
        raise KeyError(name)
    return importlib.import_module(f"{__name__}.{name}")
