# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions as plain PyTorch, in single precision or better.

What is known to single precision alone is left, and reported, for doubles.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch

aten = torch.ops.aten

# Lanczos: A precision approximation of the gamma function, SIAM J. Numer. Anal. 1964; for
# g = 7 (Godfrey's coefficients).
_G = 7
_LANCZOS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
# Bernoulli numbers B2, B4, ... divided by (2j)!.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
# Abramowitz and Stegun: Handbook of mathematical functions, 9.8.1 to 9.8.4.
_I0_NEAR = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_I0_FAR = (
    0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537,
    -0.01647633, 0.00392377,
)  # fmt: skip
_I1_NEAR = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)
_I1_FAR = (
    0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312,
    0.01787654, -0.00420059,
)  # fmt: skip
# Press et al.: Numerical Recipes, 6.2: erfc(x) = t exp(-x² + polynomial(t)), t = 1 / (1 + x / 2).
_ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip
# Giles: Approximating the erfinv function, GPU Computing Gems 2011: in w - 2.5, and in √w - 3.
_ERFINV_NEAR = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.000218580870, -4.39150654e-06,
    -3.5233877e-06, 3.43273939e-07, 2.81022636e-08,
)  # fmt: skip
_ERFINV_FAR = (
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
    0.00134934322, 0.000100950558, -0.000200214257,
)  # fmt: skip


def _polynomial(x, coefficients: Sequence[float]):
    """The constant one first."""
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _floating(form: Callable) -> Callable:
    """Integers as PyTorch's default type."""

    @functools.wraps(form)
    def of_floats(x):
        return form(x if x.is_floating_point() else x.to(torch.get_default_dtype()))

    return of_floats


def _single(form: Callable) -> Callable:
    """Half precision by single; of doubles nothing."""

    @functools.wraps(form)
    def in_single(x):
        if x.dtype == torch.float64:
            return NotImplemented
        return form(x.to(torch.float32)).to(x.dtype)

    return _floating(in_single)


def _lanczos(x):
    """z, log t, and the series with its derivative, for gamma at z + 1."""
    z = torch.where(x < 0.5, -x, x - 1)
    series, slope = torch.full_like(z, 0.99999999999980993227684700473478), torch.zeros_like(z)
    for i, coefficient in enumerate(_LANCZOS):
        part = coefficient / (z + (i + 1))
        series, slope = series + part, slope - part / (z + (i + 1))
    log_t = math.log(_G + 0.5) + torch.log1p(z / (_G + 0.5))
    return z, log_t, series, slope


@_floating
def lgamma(x):
    z, log_t, series, _ = _lanczos(x)
    t = z + (_G + 0.5)
    found = (z + 0.5 - t / log_t) * log_t + 0.5 * math.log(2 * math.pi) + series.log()
    part = x.abs() - x.abs().floor()
    part = torch.where(part > 0.5, 1 - part, part)
    reflected = math.log(math.pi) - torch.sin(math.pi * part).log() - found
    found = torch.where(x < 0.5, reflected, found)
    return torch.where(torch.isinf(x), torch.full_like(x, math.inf), found)


@_floating
def digamma(x):
    z, log_t, series, slope = _lanczos(x)
    found = log_t + slope / series - _G / (z + (_G + 0.5))
    part = x - x.round()
    reflected = found - math.pi / torch.tan(math.pi * part)
    found = torch.where(x < 0.5, reflected, found)
    whole = (x < 0) & (part == 0)
    found = torch.where(whole, torch.full_like(x, math.nan), found)
    return torch.where(x == 0, -1 / x, found)


def polygamma(n, x):
    """Of the positive axis; trigamma of all."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    if n == 0:
        return digamma(x)
    if n == 1:
        part = x - x.round()
        reflected = (math.pi / torch.sin(math.pi * part)) ** 2
        found = _zeta(2, torch.where(x < 0.5, 1 - x, x))
        return torch.where(x < 0.5, reflected - found, found)
    sign = 1 if n % 2 else -1
    found = sign * math.factorial(n) * _zeta(n + 1, x)
    return torch.where(x < 0, torch.full_like(x, math.nan), found)


def _zeta(s: int, q):
    """Hurwitz's, of a whole s > 1, by Euler's and Maclaurin's formula."""
    terms = 9
    total = torch.zeros_like(q)
    for k in range(terms):
        total = total + 1 / (q + k) ** s
    a = q + terms
    power = 1 / a**s
    total = total + a * power / (s - 1) + power / 2
    factor = float(s)
    for j, bernoulli in enumerate(_BERNOULLI):
        power = power / (a if j == 0 else a * a)
        total = total + bernoulli * factor * power
        factor *= (s + 2 * j + 1) * (s + 2 * j + 2)
    return total


def _far_or_near(x, near, far):
    """A Bessel function times exp(-|x|), by x or 1 / x."""
    size = x.abs()
    t = (size / 3.75).clamp(max=1)
    inner = near(t * t) * torch.exp(-size.clamp(max=3.75))
    beyond = size.clamp(min=3.75)
    return torch.where(size < 3.75, inner, far(3.75 / beyond) / beyond.sqrt())


@_single
def i0e(x):
    return _far_or_near(x, lambda t: _polynomial(t, _I0_NEAR), lambda t: _polynomial(t, _I0_FAR))


@_single
def i0(x):
    return i0e(x) * torch.exp(x.abs())


@_single
def i1e(x):
    size = x.abs().clamp(max=3.75)
    found = _far_or_near(
        x, lambda t: size * _polynomial(t, _I1_NEAR), lambda t: _polynomial(t, _I1_FAR)
    )
    return torch.where(x < 0, -found, found)


@_single
def i1(x):
    return i1e(x) * torch.exp(x.abs())


def _scaled_erfc(size):
    """exp(x²) erfc(x), of no negative x."""
    t = 1 / (1 + size / 2)
    return t * torch.exp(_polynomial(t, _ERFC))


@_single
def erfc(x):
    found = _scaled_erfc(x.abs()) * torch.exp(-x * x)
    # Near zero the difference knows more digits.
    return torch.where(x < 0.5, 1 - torch.erf(x), found)


@_single
def erfcx(x):
    found = _scaled_erfc(x.abs())
    return torch.where(x < 0, 2 * torch.exp(x * x) - found, found)


@_single
def erfinv(x):
    w = -torch.log((1 - x) * (1 + x))
    near = _polynomial(w - 2.5, _ERFINV_NEAR)
    far = _polynomial(w.clamp(min=5).sqrt() - 3, _ERFINV_FAR)
    found = torch.where(w < 5, near, far) * x
    ends = torch.where(x < 0, -math.inf, math.inf).to(x.dtype)
    return torch.where(x.abs() == 1, ends, found)


TABLE = {
    aten.lgamma.default: lgamma,
    aten.digamma.default: digamma,
    aten.polygamma.default: polygamma,
    aten.i0.default: i0,
    aten.special_i0e.default: i0e,
    aten.special_i1.default: i1,
    aten.special_i1e.default: i1e,
    aten.erfc.default: erfc,
    aten.special_erfcx.default: erfcx,
    aten.erfinv.default: erfinv,
}
