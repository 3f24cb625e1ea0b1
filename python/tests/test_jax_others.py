# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps as people write them with Flax and Optax: three of them have jax.jit's losses.

Needs `pip install --no-deps flax==0.12.3 optax==0.2.8` with what they import; skipped without.
"""

import pytest

import needs

pytest.importorskip("jax")
nn = pytest.importorskip("flax.linen", reason="flax is not installed")
optax = pytest.importorskip("optax", reason="optax is not installed")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from baechi import jit  # noqa: E402

pytestmark = needs.tool("baechi-run")

IMAGES = jax.random.normal(jax.random.key(0), (4, 16, 16, 3))
LABELS = jnp.array([0, 1, 2, 3])
TOKENS = jax.random.randint(jax.random.key(3), (4, 12), 0, 50)
CASES = []


def case(inputs, targets, loss, optimizer):
    """Adds a test of a module that returns what `loss` compares with the targets."""

    def add(forward):
        CASES.append(pytest.param(forward, inputs, targets, loss, optimizer, id=forward.__name__))
        return forward

    return add


def cross_entropy(outputs, labels):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, labels).mean()


def mean_squares(outputs, targets):
    return ((outputs - targets) ** 2).mean()


def ctc(outputs, labels):
    return optax.ctc_loss(
        outputs, jnp.zeros(outputs.shape[:2]), labels, jnp.zeros(labels.shape)
    ).mean()


def embedded(tokens, width):
    return nn.Embed(50, width)(tokens)


@case(IMAGES, IMAGES / 2, mean_squares, optax.adamw(1e-3))
def unet(self, x):
    whole = nn.swish(nn.GroupNorm(4)(nn.Conv(8, (3, 3))(x)))
    half = nn.Conv(16, (3, 3), strides=2)(whole)
    near = jax.image.resize(half, (4, 16, 16, 16), "nearest")
    linear = jax.image.resize(half, (4, 16, 16, 16), "bilinear")
    learned = nn.ConvTranspose(8, (4, 4), strides=(2, 2))(half)
    return nn.Conv(3, (3, 3))(jnp.concatenate([whole, near, linear, learned], -1))


@case(IMAGES, LABELS, cross_entropy, optax.rmsprop(1e-3, momentum=0.9))
def depthwise(self, x):
    x = nn.Conv(12, (5, 5), feature_group_count=12)(nn.Conv(12, (1, 1))(x))
    x = nn.hard_swish(nn.BatchNorm(use_running_average=False)(x))
    return nn.Dense(10)(nn.Dropout(0.2, deterministic=False)(x.mean((1, 2))))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.RMSNorm()(x)))), None


@case(TOKENS, TOKENS, cross_entropy, optax.adafactor(1e-3))
def scanned_and_rematerialized(self, x):
    options = {"variable_axes": {"params": 0}, "split_rngs": {"params": True}, "length": 3}
    return nn.Dense(50)(nn.scan(nn.remat(Block), **options)()(embedded(x, 32), None)[0])


def rotated(x):
    angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(x.shape[-1] // 2) / 4)
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    even, odd = x[..., ::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


@case(
    TOKENS, TOKENS, cross_entropy, optax.chain(optax.clip(0.1), optax.sgd(0.1, 0.9, nesterov=True))
)
def rotary_attention(self, x):
    query, key, value = (nn.DenseGeneral((4, 8))(embedded(x, 32)) for _ in range(3))
    mixed = jax.nn.dot_product_attention(rotated(query), rotated(key), value, is_causal=True)
    return nn.Dense(50)(nn.DenseGeneral(32, axis=(-2, -1))(mixed))


@case(
    TOKENS,
    TOKENS,
    cross_entropy,
    optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.warmup_cosine_decay_schedule(0, 1e-3, 2, 10)),
    ),
)
def attention_with_dropout(self, x):
    y = nn.LayerNorm()(embedded(x, 32))
    mask = nn.make_causal_mask(x)
    y = nn.MultiHeadDotProductAttention(4, dropout_rate=0.1, deterministic=False)(y, y, mask=mask)
    return nn.Dense(50)(y)


@case(IMAGES, LABELS, cross_entropy, optax.MultiSteps(optax.adam(1e-2), 2))
def accumulated_gradients(self, x):
    return nn.Dense(10)(nn.relu(nn.WeightNorm(nn.Dense(16))(x.reshape(4, -1))))


@case(TOKENS, TOKENS, cross_entropy, optax.adam(1e-2))
def bidirectional(self, x):
    both = nn.Bidirectional(nn.RNN(nn.LSTMCell(16)), nn.RNN(nn.GRUCell(16)))
    return nn.Dense(50)(both(embedded(x, 8)))


@case(TOKENS, TOKENS, cross_entropy, optax.adam(1e-2))
def experts(self, x):
    """By the largest two, all computed; and sorted by the largest, each its own rows."""
    h = embedded(x, 16).reshape(-1, 16)
    gates = jax.nn.softmax(nn.Dense(4)(h))
    weight, chosen = jax.lax.top_k(gates, 2)
    matrices = self.param("matrices", nn.initializers.normal(0.1), (4, 16, 16))
    every = nn.relu(jnp.einsum("td,edf->tef", h, matrices))
    h = h + jnp.einsum("tef,tke,tk->tf", every, jax.nn.one_hot(chosen, 4), weight)
    expert = jnp.argmax(gates, -1)
    order = jnp.argsort(expert)
    sizes = jnp.bincount(expert, length=4).astype(jnp.int32)
    own = jax.lax.ragged_dot(h[order], matrices, sizes)[jnp.argsort(order)]
    return nn.Dense(50)(h + own).reshape(*x.shape, 50)


@case(IMAGES, LABELS, cross_entropy, optax.lion(1e-3))
def loops(self, x):
    h = nn.Dense(16)(x.reshape(4, -1))
    h = jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c) * 1.1, h)
    start = 0, jax.lax.stop_gradient(h)
    n = jax.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] / 2), start)[1]
    return nn.Dense(10)(h + n)


@case(TOKENS, TOKENS, cross_entropy, optax.adagrad(1e-2))
def running(self, x):
    h = embedded(x, 8)
    sums = jnp.cumsum(h, 1) + jax.lax.cummax(h, axis=1) + jnp.roll(h, 1, 1) + jnp.flip(h, 1)
    return nn.Dense(50)(sums)


@case(TOKENS, jnp.array([[1, 2, 3]] * 4), ctc, optax.adam(1e-2))
def alignment(self, x):
    return nn.Dense(10)(embedded(x, 8))


@pytest.mark.parametrize("forward, inputs, targets, loss, optimizer", CASES)
def test_losses(forward, inputs, targets, loss, optimizer):
    kind = type("Model", (nn.Module,), {"__call__": nn.compact(forward)})
    model = kind()
    variables = model.init({"params": jax.random.key(1), "dropout": jax.random.key(2)}, inputs)
    params = variables["params"]
    statistics = {name: value for name, value in variables.items() if name != "params"}

    def step(params, statistics, state, key):
        def total(params):
            outputs, changed = model.apply(
                {"params": params, **statistics},
                inputs,
                mutable=list(statistics),
                rngs={"dropout": key},
            )
            return loss(outputs, targets), changed

        (value, changed), gradients = jax.value_and_grad(total, has_aux=True)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), changed, state, value

    compiled = jit(step, costs="roofline", budget="0", donate_argnums=(0, 1, 2))
    ours = theirs = params, statistics, optimizer.init(params)
    for number in range(3):
        key = jax.random.key(number)
        *ours, value = compiled(*ours, key)
        *theirs, expected = jax.jit(step)(*theirs, key)
        assert float(value) == pytest.approx(float(expected), rel=1e-5), f"step {number}"
