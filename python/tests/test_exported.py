# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `jax.export`, whose StableHLO has other forms: compared with JAX's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import baechi
from baechi.importer.common.errors import UnsupportedOperations
from baechi.importer.jax import exported as rewrites

OPTIONS: dict[str, Any] = {"costs": "roofline", "budget": "0", "machine": "host:1"}


def _exported(function: Callable[..., Any], *shapes: jax.ShapeDtypeStruct) -> Any:
    return jax.export.export(jax.jit(function))(*shapes)


def _check(function: Callable[..., Any], *args: Any, exact: bool = False) -> None:
    exported = _exported(function, *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args))
    _compare(baechi.jit(exported.call, **OPTIONS)(*args), jax.jit(function)(*args), exact)


def _compare(found: Any, expected: Any, exact: bool = False) -> None:
    near = {"rtol": 0.0} if exact else {"rtol": 2e-5, "atol": 2e-6}
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, **near)


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def _sorted_by_two(x: Any) -> Any:
    places = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return lax.sort((jnp.maximum(x, jnp.ones((), x.dtype)), x, places), num_keys=2)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 2)])
def test_convolutions_have_their_defaults(
    layout: str, strides: tuple[int, int], dilation: tuple[int, int]
) -> None:
    def convolved(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            kernel,
            strides,
            "SAME",
            rhs_dilation=dilation,
            dimension_numbers=(layout, "HWIO", layout),
        )

    x = _normal(2, 8, 8, 3) if layout == "NHWC" else _normal(2, 3, 8, 8)
    _check(convolved, x, _normal(3, 3, 3, 4))


SORTS = {
    "sort": lambda x: jnp.sort(x, axis=0),
    "descending": lambda x: jnp.sort(x, descending=True),
    "argsort": jnp.argsort,
    "two keys": _sorted_by_two,
    "top_k": lambda x: lax.top_k(x, 3),
}


@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
def test_sorts_are_jaxs(name: str, dtype: str) -> None:
    x = np.asarray(jnp.abs(_normal(4, 10) * 3).astype(dtype))
    _check(SORTS[name], x, exact=True)


def test_zeros_and_nans_are_sorted_as_jax_does() -> None:
    x = np.array([0.0, -0.0, np.nan, 1, -np.inf, np.inf, -np.nan, -0.0, 0.0], np.float32)
    _check(jnp.argsort, x, exact=True)
    _check(lambda x: lax.top_k(x, 9)[1], x, exact=True)


def test_another_order_is_refused_by_name() -> None:
    """Of a comparison that JAX does not write: its module's text with another one."""
    exported = _exported(jnp.sort, jax.ShapeDtypeStruct((8,), np.float32))
    module = jax.jit(exported.call).lower(np.ones(8, np.float32)).compiler_ir("stablehlo")
    ir = rewrites.ir
    text = str(module)
    assert text.count("LT, ") == 1
    with module.context, ir.Location.unknown():
        for order, is_taken in (("LT, ", True), ("GT, ", False)):
            changed = ir.Module.parse(text.replace("LT, ", order))
            rewrites.rewrite(changed)
            assert ("stablehlo.sort" not in str(changed)) == is_taken


@pytest.mark.parametrize(
    "name", ["erf", "asin", "acos", "asinh", "acosh", "atanh", "sinh", "cosh", "tan", "lgamma"]
)
def test_functions_of_chlo_are_taken(name: str) -> None:
    x = np.linspace(-0.9, 0.9, 12, dtype=np.float32)
    _check(getattr(lax, name), x + 2 if name == "acosh" else x)


def test_medians_and_gelus_are_taken() -> None:
    _check(lambda x: (jnp.median(x, axis=1), jax.nn.gelu(x, approximate=False)), _normal(5, 9))


def test_composites_are_what_they_are_made_of() -> None:
    @functools.partial(lax.composite, name="mine.scaled")
    def scaled(x: Any, *, by: Any) -> Any:
        return x * by

    x = _normal(5)
    _check(lambda x: scaled(x, by=np.float32(3)) + scaled(x, by=np.float32(2)), x)
    found = baechi.jit(lambda x: scaled(x, by=np.float32(3)), **OPTIONS)(x)
    np.testing.assert_allclose(found, x * 3, rtol=1e-6)


def test_symbolic_sizes_are_sorted() -> None:
    (batch,) = jax.export.symbolic_shape("batch", constraints=["batch >= 2"])

    def ordered(x: Any) -> Any:
        return lax.top_k(x.T, 2), jnp.sort(x, axis=0), lax.erf(x)

    call = baechi.jit(
        _exported(ordered, jax.ShapeDtypeStruct((batch, 4), np.float32)).call, **OPTIONS
    )
    for rows in (2, 7):
        _compare(call(_normal(rows, 4)), ordered(_normal(rows, 4)))


def test_gradients_through_a_sort_are_taken() -> None:
    def loss(x: Any) -> Any:
        return (jnp.sort(x, axis=0) ** 3).sum()

    exported = _exported(loss, jax.ShapeDtypeStruct((6, 4), np.float32))
    found = baechi.jit(jax.grad(exported.call), **OPTIONS)(_normal(6, 4))
    np.testing.assert_allclose(found, jax.grad(loss)(_normal(6, 4)), rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: jnp.linalg.cholesky(x), "stablehlo.custom_call @lapack_spotrf_ffi"),
        (lambda x: jnp.abs(jnp.fft.fft(x)), "stablehlo.fft"),
    ],
    ids=["cholesky", "fft"],
)
def test_what_jax_itself_would_compute_is_refused_by_name(
    function: Callable[..., Any], words: str
) -> None:
    exported = _exported(function, jax.ShapeDtypeStruct((4, 4), np.float32))
    with pytest.raises(UnsupportedOperations, match=f"test_exported.py.*{words} in"):
        baechi.jit(exported.call, **OPTIONS)(np.eye(4, dtype=np.float32))
