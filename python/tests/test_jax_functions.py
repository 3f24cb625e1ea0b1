# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of JAX that models are made of, forward and backward, as jax.jit computes
them. A group of them is one program."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
import needs  # noqa: E402
from baechi.importer.common.errors import ImportFailure  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

pytestmark = needs.tool("baechi-run")
jnp, lax, nn, special = jax.numpy, jax.lax, jax.nn, jax.scipy.special

random = np.random.default_rng(0)


def uniform(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(np.float32)


X, Y, SQUARE = uniform(4, 6), uniform(4, 6), uniform(5, 5)
SHARE = uniform(4, 6, low=0.1, high=0.9)
CUBE, IMAGE, LINE = uniform(2, 8, 4), uniform(2, 8, 9, 3), uniform(8)
ROWS, ROW = np.int32([0, 3, 3]), np.int32(2)
PLACES = random.integers(0, 6, (4, 2)).astype(np.int32)
# Longer than what windows do (importer/jax/cumulative.py), factors near one.
LONG, LARGE = uniform(3, 200, low=0.9, high=1.1), random.integers(-9, 9, (130, 2)).astype(np.int32)
WHOLE, COUNT = (random.integers(a, 9, (4, 6)).astype(np.int32) for a in (-9, 1))


def each(module, names, *args):
    return [(getattr(module, name), args) for name in names.split()]


def pooled(operator, start, **options):
    return lambda x: lax.reduce_window(
        x, start, operator, (1, 3, 3, 1), (1, 2, 2, 1), "SAME", **options
    )


def convolved(strides=(1, 1), **options):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lambda x, w: lax.conv_general_dilated(
        x, w, strides, "SAME", dimension_numbers=numbers, **options
    )


def rotated(x):
    """Rotary embedding of neighbours."""
    a, b = x[..., ::2], x[..., 1::2]
    return jnp.stack([a * 2 - b, a + b * 3], -1).reshape(x.shape)


GROUPS = {
    "of one": [
        *each(
            jnp,
            "abs negative sign square cbrt ceil floor rint trunc exp exp2 expm1 sin cos tan sinh "
            "cosh tanh arcsinh arctan sinc nan_to_num isfinite signbit deg2rad",
            X,
        ),
        *each(jnp, "sqrt log log2 log10 log1p reciprocal arcsin arccos arctanh", SHARE),
        *each(lax, "erf erfc lgamma digamma rsqrt logistic erf_inv", SHARE),
    ],
    "of two": [
        *each(
            jnp,
            "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp "
            "copysign remainder fmod floor_divide divmod greater equal heaviside",
            X,
            Y,
        ),
        *each(jnp, "power float_power", SHARE, Y),
        *each(lax, "rem atan2 pow", SHARE, SHARE[::-1]),
        *each(jnp, "floor_divide remainder fmod bitwise_and left_shift gcd", WHOLE, COUNT),
    ],
    "activations": each(
        nn,
        "relu relu6 sigmoid softplus soft_sign silu log_sigmoid leaky_relu hard_sigmoid hard_silu "
        "hard_tanh elu celu selu gelu glu squareplus mish softmax log_softmax logsumexp "
        "standardize sparse_plus",
        X,
    ),
    "reductions": [
        *each(
            jnp,
            "sum prod max min mean std var ptp argmax argmin nanmax nanmean any all cumsum cumprod "
            "median count_nonzero average",
            X,
        ),
        *[
            (lambda x, name=name: getattr(jnp, name)(x, axis=1), (X,))
            for name in "sum prod max min mean std var argmax argmin cumsum cumprod median".split()
        ],
        *[
            (lambda x, name=name: getattr(lax, name)(x, 1, reverse=True), (X,))
            for name in ("cumsum", "cummax", "cummin", "cumprod", "cumlogsumexp")
        ],
        *[
            (lambda x, f=getattr(lax, name), d=d: f(x, d, reverse=d == 0) / x.shape[d], (x,))
            for name in ("cumsum", "cummax", "cummin", "cumprod")
            for x, d in ((LONG, 1), (LARGE, 0))
        ],
        (lambda x: lax.cumlogsumexp(x, 1), (LONG,)),
        (jnp.linalg.norm, (X,)),
        *[(lambda x, of=of: nn.softmax(jnp.flip(x, of), axis=1) - x, (X,)) for of in (0, 1)],
        *[(lambda x, of=of: jnp.tanh(jnp.flip(x, of).sum(1)), (X,)) for of in (0, 1)],
        (lambda x: lax.reduce(x, 1.0, lax.mul, (1,)), (X,)),
        (lambda x: lax.associative_scan(jnp.add, x), (LINE,)),
    ],
    "products": [
        *each(jnp, "dot matmul inner outer vdot tensordot kron", SQUARE, SQUARE[::-1]),
        (lambda a: jnp.einsum("bij,bkj->bik", a, a), (CUBE,)),
        (lambda a: jnp.einsum("ii->i", a), (SQUARE,)),
        (convolved(strides=(2, 2)), (IMAGE, uniform(3, 3, 3, 4))),
        (convolved(rhs_dilation=(2, 2)), (IMAGE, uniform(3, 3, 3, 4))),
        (convolved(feature_group_count=3), (IMAGE, uniform(3, 3, 1, 6))),
        (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), (IMAGE, uniform(3, 3, 3, 4))),
        (lambda q: nn.dot_product_attention(*[q[:, :, None]] * 3, is_causal=True), (CUBE,)),
        (pooled(lax.max, -jnp.inf), (IMAGE,)),
        (pooled(lax.min, jnp.inf), (IMAGE,)),
        (pooled(lax.add, 0.0), (IMAGE,)),
    ],
    "shapes": [
        *each(jnp, "diag tril triu flipud rot90 transpose diagonal trace ravel", SQUARE),
        *each(jnp, "hstack vstack dstack concatenate stack", (X, Y)),
        *[
            (lambda x, mode=mode: jnp.pad(x, ((1, 2), (2, 1)), mode=mode), (X,))
            for mode in "constant edge reflect symmetric wrap".split()
        ],
        (lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 3, axis=1), jnp.roll(x, 2, axis=1)), (X,)),
        (lambda x: (jnp.split(x, 3, axis=1), x[None, :, None], x.reshape(3, -1)), (X,)),
        (lambda x: lax.pad(x, 0.5, ((-1, 2, 1), (-2, -1, 2))), (X,)),
        (lambda x: (lax.pad(x[:1], 0.5, ((-1, 3, 1), (0, 0, 0))), x[1:3, :1]), (X,)),
        (lambda x: jax.image.resize(x, (2, 16, 18, 3), "bilinear"), (IMAGE,)),
        (lambda x: jax.image.resize(x, (2, 5, 4, 3), "nearest"), (IMAGE,)),
    ],
    "indices": [
        (lambda x, i: (x[i], x[:, i], x[i, i], x[i[:, None], i], x[-i]), (X, ROWS)),
        (lambda x, i: (x[:, i], x[i % 2, :, i]), (CUBE, ROWS)),
        (lambda x: (x[::2, 1::3], x[::-1], x[3:0:-1], x[-1], x[np.array([0, 2])]), (X,)),
        (rotated, (X,)),
        (lambda x, i: jnp.take_along_axis(x, i, axis=1), (X, PLACES)),
        (lambda x, i: jnp.put_along_axis(x, i, 1.5, axis=1, inplace=False), (X, PLACES)),
        *[
            (lambda x, i, mode=mode: jnp.take(x, i + 2, axis=0, mode=mode), (X, ROWS))
            for mode in ("clip", "wrap", "fill")
        ],
        (lambda x, y, i: lax.dynamic_update_slice(x, y[:2, :3], (i + 1, -1)), (X, Y, ROW)),
        (lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), (X, ROW)),
        (lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 1, 3]), 5), (X,)),
        (lambda x: lax.top_k(x, 3), (X,)),
        (lambda x, y: lax.sort_key_val(x, y), (X, Y)),
        (lambda x: (jnp.argsort(x, axis=0), jnp.quantile(x, 0.3)), (X,)),
        (lambda x: jnp.where(x > 0, x, 0.0).clip(0.1, 1.5), (X,)),
        (lambda x: jnp.interp(x, jnp.arange(5.0) - 2, jnp.arange(5.0) ** 2), (LINE,)),
    ],
    "updates": [
        *[
            (
                lambda x, y, i, name=name: (
                    getattr(x.at[1:3], name)(y[1:3]),
                    getattr(x.at[i], name)(y[:3]) if name != "set" else x.at[i[:2]].set(y[:2]),
                ),
                (SHARE, SHARE[::-1], ROWS),
            )
            for name in "set add multiply min max divide power subtract".split()
        ],
        (lambda x, i: (x.at[:, 0].set(1.0), x.at[..., ::2].add(1.0), x.at[i].set(3.0)), (X, ROW)),
        (lambda x, i: (x.at[i, 1:3].add(3.0), x.at[:, i].add(x[:, :3])[::2]), (X, ROWS)),
        (lambda x, i: x.at[i + 2].add(9.0, mode="clip"), (X, ROWS)),
        (lambda x, i: x.at[i + 2].set(9.0, mode="drop"), (X, ROWS)),
        (lambda x, i: jax.vmap(lambda row, j: row.at[j].set(0.0))(x[:3], i), (X, ROWS)),
        (lambda x: lax.fori_loop(0, 3, lambda i, x: x.at[i].add(1.5), x), (X,)),
    ],
    "special": [
        *each(special, "expit logit entr gammaln ndtr log_ndtr ndtri i0e", SHARE),
        *each(special, "xlogy xlog1py betaln rel_entr", SHARE, SHARE + 1.5),
    ],
}


def total(function):
    """A number that depends on all floats that a function gives."""

    def of(x, *rest):
        found = jax.tree.leaves(function(x, *rest))
        floats = [leaf for leaf in found if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return sum((jnp.sin(leaf).sum() for leaf in floats), 0.0 * jax.tree.leaves(x)[0].sum())

    return of


@pytest.mark.parametrize("group", GROUPS)
def test_functions(group):
    functions = [function for function, _ in GROUPS[group]]
    arguments = [args for _, args in GROUPS[group]]
    derived = {
        i
        for i, args in enumerate(arguments)
        if all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(args[0]))
    }

    def step(arguments):
        return [
            (f(*args), jax.grad(total(f))(*args) if i in derived else None)
            for i, (f, args) in enumerate(zip(functions, arguments, strict=True))
        ]

    ours = baechi.jit(step, machine="host:1", costs="roofline", budget="0")(arguments)
    theirs = jax.jit(step)(arguments)
    for i, (mine, right) in enumerate(zip(ours, theirs, strict=True)):
        for a, e in zip(jax.tree.leaves(mine), jax.tree.leaves(right), strict=True):
            assert a.dtype == e.dtype and a.shape == e.shape
            a, e = np.asarray(a), np.asarray(e)
            largest = np.max(np.abs(e), where=np.isfinite(e), initial=1.0)
            np.testing.assert_allclose(a, e, rtol=2e-5, atol=5e-6 * largest, err_msg=f"{group} {i}")


def test_derivatives_by_integers_are_of_jaxs_type():
    """Of no real number: JAX's float0, which has no values."""

    def step(w, labels):
        def loss(w, labels):
            return (w[labels] ** 2).sum()

        return jax.value_and_grad(loss, (0, 1), allow_int=True)(w, labels)

    given = jnp.arange(4.0), jnp.array([1, 1, 3])
    ours = baechi.jit(step, machine="host:2")
    for _ in range(3):  # the later calls take the shorter way, where there is one
        value, (by_w, by_labels) = ours(*given)
        expected, (expected_by_w, expected_by_labels) = jax.jit(step)(*given)
        assert value == expected and (by_w == expected_by_w).all()
        assert by_labels.dtype == expected_by_labels.dtype == jax.dtypes.float0
        assert by_labels.shape == (3,)
    with pytest.raises(ImportFailure, match="'none' is a float0, which has no values"):
        baechi.jit(lambda none: 1.0, machine="host:1")(by_labels)


def test_a_sharding_on_one_device_is_the_array():
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])

    def step(x):
        return jax.lax.with_sharding_constraint(x * 2, one) + 1

    x = jnp.arange(4.0)
    assert (baechi.jit(step, machine="host:1")(x) == jax.jit(step)(x)).all()


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_no_random_numbers(generator):
    def f(key):
        now, after = jax.random.split(key)
        nothing = jax.random.normal(now, (0, 3)), jax.random.bits(key, (2, 0))
        return *nothing, jax.random.normal(after, (2, 3))

    key = jax.random.key(7, impl=generator)
    assert_close(jit(f)(key), jax.jit(f)(key))


def test_a_generator_whose_state_has_made_nothing():
    def f(state):
        state, nothing = jax.lax.rng_bit_generator(state, (0, 3))
        return nothing, *jax.lax.rng_bit_generator(state, (2, 3))

    state = np.arange(4, dtype=np.uint32)
    assert_close(jit(f)(state), jax.jit(f)(state))


def test_attention_of_bfloat16():
    def f(x):
        return nn.dot_product_attention(x, x, x, is_causal=True).astype(jnp.float32).sum()

    x = jnp.asarray(uniform(1, 6, 2, 4), jnp.bfloat16)
    ours, theirs = (compiled(jax.value_and_grad(f))(x) for compiled in (jit, jax.jit))
    assert ours[1].dtype == theirs[1].dtype
    for mine, right in zip(ours, theirs):
        mine, right = (np.asarray(each, np.float32) for each in (mine, right))
        np.testing.assert_allclose(mine, right, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_of_a_precision(dtype):
    """Of factors that are not rounded, as XLA's."""
    x = jnp.asarray(uniform(5, 7), dtype)

    def product(preset):
        chosen = getattr(lax.DotAlgorithmPreset, preset)
        return lambda x: lax.dot(x, x.T, precision=chosen, preferred_element_type=jnp.float32)

    for preset in ("BF16_BF16_F32", "BF16_BF16_F32_X3", "F32_F32_F32"):
        assert_close(jit(product(preset))(x), jax.jit(product(preset))(x))
    with pytest.raises(ImportFailure, match="its precision asks for sums in f16: leave"):
        jit(product("F16_F16_F16"))(x)
