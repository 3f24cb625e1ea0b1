# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms by products of matrices, in plain JAX.

A length is split into factors (Cooley and Tukey, An Algorithm for the Machine Calculation of
Complex Fourier Series, 1965; Van Loan, Computational Frameworks for the Fast Fourier Transform,
1992, section 2.1): a product with a small matrix of roots of unity for each, and twiddles between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

# Of a matrix of roots; a length with a larger prime is JAX's own to transform.
LARGEST_FACTOR = 64
LARGEST_LENGTH = 1 << 16
# Longer ones JAX transforms faster, the call included (docs/host-calls.md).
FASTER_THAN_CALLS = 512

Parts = tuple[Any, Any]  # real and imaginary; an imaginary part of None is zero


def is_native(lengths: Sequence[int], longest: int = LARGEST_LENGTH) -> bool:
    """Whether such a transform has code of its own."""
    return bool(lengths) and all(0 < n <= longest and _factors(n) for n in lengths)


def transform(kind: str, lengths: Sequence[int], x: Parts) -> Parts:
    """What `lax.fft` makes of the last axes of x. kind: FFT, IFFT, RFFT or IRFFT."""
    others = range(-len(lengths), -1)
    if kind == "RFFT":
        parts = _half(lengths[-1], _dft(x, lengths[-1], -1))
        for axis in others:
            parts = _along(axis, parts, lengths[axis], -1)
        return parts
    if kind == "IRFFT":
        for axis in others:
            x = _scaled(_along(axis, x, lengths[axis], 1), lengths[axis])
        return _inverse_half(lengths[-1], x), None
    sign = -1 if kind == "FFT" else 1
    for axis in (*others, -1):
        x = _along(axis, x, lengths[axis], sign)
    return x if kind == "FFT" else _scaled(x, math.prod(lengths))


def _factors(n: int) -> list[int]:
    """Few factors, none too large; [] where there are none such."""
    found = []
    while n > LARGEST_FACTOR:
        largest = next((f for f in range(LARGEST_FACTOR, 1, -1) if n % f == 0), 0)
        if not largest:
            return []
        found.append(largest)
        n //= largest
    return [*found, n]


def _roots(rows: int, columns: int, n: int, sign: int, dtype: Any) -> Parts:
    """exp(sign * 2 pi i j k / n) at [j, k], from whole numbers: exact where it can be."""
    powers = np.outer(np.arange(rows), np.arange(columns)) % n
    angles = 2 * np.pi * powers / n
    cosines, sines = np.cos(angles), sign * np.sin(angles)
    cosines[4 * powers == n] = cosines[4 * powers == 3 * n] = 0
    sines[2 * powers == n] = 0
    return jnp.asarray(cosines, dtype), jnp.asarray(sines, dtype)


def _along(axis: int, x: Parts, n: int, sign: int) -> Parts:
    if axis == -1:
        return _dft(x, n, sign)
    moved = tuple(None if part is None else jnp.swapaxes(part, axis, -1) for part in x)
    real, imaginary = _dft((moved[0], moved[1]), n, sign)
    return jnp.swapaxes(real, axis, -1), jnp.swapaxes(imaginary, axis, -1)


def _dft(x: Parts, n: int, sign: int) -> Parts:
    """Along the last axis, without a factor."""
    return _by_factors(x, _factors(n), n, sign)


def _by_factors(x: Parts, factors: Sequence[int], n: int, sign: int) -> Parts:
    first = factors[0]
    if len(factors) == 1:
        return _product(x, _roots(n, n, n, sign, x[0].dtype))
    # Element i1 * rest + i2 becomes element k1 + first * k2.
    rest = n // first
    split = [_swapped(part, (first, rest)) for part in x]
    real, imaginary = _product((split[0], split[1]), _roots(first, first, first, sign, x[0].dtype))
    cosines, sines = _roots(rest, first, n, sign, x[0].dtype)
    turned = real * cosines - imaginary * sines, real * sines + imaginary * cosines
    real, imaginary = _by_factors((turned[0].mT, turned[1].mT), factors[1:], rest, sign)
    shape = (*real.shape[:-2], n)
    return real.mT.reshape(shape), imaginary.mT.reshape(shape)


def _swapped(part: Any, shape: tuple[int, int]) -> Any:
    return None if part is None else part.reshape(*part.shape[:-1], *shape).mT


def _product(x: Parts, roots: Parts) -> Parts:
    (real, imaginary), (cosines, sines) = x, roots
    if imaginary is None:
        return _matmul(real, cosines), _matmul(real, sines)
    return (
        _matmul(real, cosines) - _matmul(imaginary, sines),
        _matmul(real, sines) + _matmul(imaginary, cosines),
    )


def _matmul(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _half(n: int, x: Parts) -> Parts:
    """Of a real sequence's transform what is not the mirror of the rest."""
    real, imaginary = (part[..., : n // 2 + 1] for part in x)
    return real, imaginary


def _inverse_half(n: int, x: Parts) -> Any:
    """The real sequence of length n that has such a half."""
    real, imaginary = x
    if imaginary is None:
        imaginary = jnp.zeros_like(real)
    mirrored = slice(1, n - n // 2)
    whole = (
        jnp.concatenate([real, jnp.flip(real[..., mirrored], -1)], -1),
        jnp.concatenate([imaginary, -jnp.flip(imaginary[..., mirrored], -1)], -1),
    )
    return _dft(whole, n, 1)[0] / n


def _scaled(x: Parts, by: int) -> Parts:
    return x[0] / by, None if x[1] is None else x[1] / by
