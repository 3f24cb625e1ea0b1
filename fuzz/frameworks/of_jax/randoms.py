# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers by keys, always drawn in single precision."""

from __future__ import annotations

from frameworks.of_jax.builder import Builder
from frameworks.of_jax.table import operation


def _key(b: Builder) -> str:
    """A key as text, of a number or of an index that the program computes."""
    key = f"jax.random.key({b.choose.randrange(1000)})"
    if b.choose.random() < 0.5:
        key = f"jax.random.fold_in({key}, i32({b.index()}))"
    return f"jax.random.split({key})[1]" if b.choose.random() < 0.3 else key


@operation(1)
def drawn(b: Builder) -> None:
    key, shape = _key(b), b.shape(least=1)
    forms = (
        f"jax.random.uniform({key}, {shape}, single)",
        f"jax.random.uniform({key}, {shape}, single, -1, 2)",
        f"jnp.clip(jax.random.normal({key}, {shape}, single), -3, 3)",
    )
    b.emit(f"{b.choose.choice(forms)}.astype(f32)", bound=3)


@operation(0.5)
def drawn_whole(b: Builder) -> None:
    key, shape = _key(b), b.shape(least=1)
    forms = (
        f"jax.random.randint({key}, {shape}, 0, 7, i32)",
        f"jax.random.bernoulli({key}, single(0.4), {shape})",
        f"jax.random.permutation({key}, {shape[0]}).astype(i32)",
    )
    b.emit(b.choose.choice(forms))


@operation(0.7)
def dropped(b: Builder) -> None:
    value = b.floats(5)
    mask = f"jax.random.bernoulli({_key(b)}, single(0.6), {value.shape})"
    b.emit(f"jnp.where({mask}, {{0}} / 0.6, 0)", [value], bound=9)
