# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the text of JAX programs refers to: modules and element types by short names."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

FLOATS = ("f32", "bf16", "f16")
INTEGERS = ("i32", "i8", "u8", "i16", "u32")
DTYPES = {
    "f32": jnp.float32,
    "bf16": jnp.bfloat16,
    "f16": jnp.float16,
    "i32": jnp.int32,
    "i8": jnp.int8,
    "u8": jnp.uint8,
    "i16": jnp.int16,
    "u32": jnp.uint32,
    "bool": jnp.bool_,
}
_SHORT = {np.dtype(kind).name: name for name, kind in DTYPES.items()}
# How a report begins; what a program's text uses is defined here.
PRELUDE = """import jax, jax.numpy as jnp, numpy as np
from jax import lax
draws = np.random.default_rng
f32, bf16, f16, i32 = jnp.float32, jnp.bfloat16, jnp.float16, jnp.int32
i8, u8, i16, u32, single = jnp.int8, jnp.uint8, jnp.int16, jnp.uint32, jnp.float32
"""


def namespace(double: bool = False) -> dict[str, Any]:
    """For `exec`; with `double` all floats are of double precision, but for what random
    numbers are drawn in (`single`): other precisions draw others."""
    found: dict[str, Any] = {"jax": jax, "jnp": jnp, "np": np, "lax": lax, **DTYPES}
    found["draws"] = np.random.default_rng
    found["single"] = jnp.float32
    del found["bool"]  # Python's
    if double:
        found |= dict.fromkeys(FLOATS, jnp.float64)
    return found


def short(dtype: Any) -> str:
    """The short name of a type; KeyError for one that no operation of the table makes."""
    return _SHORT[np.dtype(dtype).name]


def abstract(shape: tuple[int, ...], dtype: str) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, DTYPES[dtype])


# Values of an argument as text. Floats have few digits, which all types but bf16 hold exactly,
# and are distinct within a tensor where there are enough; integers are small.
_DRAWS = {
    "floats": "((draws({seed}).choice(511, {count}, {count} > 511) - 254.5) / 128)",
    "bool": "draws({seed}).integers(0, 2, {count}).astype(bool)",
    "signed": "draws({seed}).integers(-3, 9, {count})",
    "unsigned": "draws({seed}).integers(0, 9, {count})",
}
# What is tried instead in a small program.
SIMPLE = ("np.zeros({count})", "np.ones({count})", "np.arange({count}) - 1.5", "np.arange({count})")


def drawn(seed: int, shape: tuple[int, ...], dtype: str, form: str = "") -> str:
    """An argument's value, as an expression of `namespace`."""
    kind = "unsigned" if dtype.startswith("u") else "signed"
    kind = "floats" if dtype in FLOATS else "bool" if dtype == "bool" else kind
    text = (form or _DRAWS[kind]).format(seed=seed, count=math.prod(shape))
    return f"{text}.reshape({shape}).astype({dtype})"
