# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model collection: the published sizes, routing, and what a configuration may say."""

import dataclasses

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")

from baechi import init, models  # noqa: E402
from baechi.importer.jax import step as importer  # noqa: E402
from baechi.models import dropout, moe  # noqa: E402


def made(name, preset, **changes):
    module = models.load(name)
    return module.training_step(dataclasses.replace(module.PRESETS[preset], **changes))


def leaves_of(tree):
    return jax.tree.leaves(tree, is_leaf=lambda leaf: isinstance(leaf, init.Init))


# As torchvision counts them, without Inception's auxiliary classifier; Zaremba et al. say 20
# million for their medium model; the base Transformer has 63 million with shared embeddings.
@pytest.mark.parametrize(
    "name, count",
    [
        ("resnet", 25_557_032),
        ("inception", 23_834_568),
        ("rnnlm", 19_775_200),
        ("transformer_encdec", 44_101_632 + 3 * 30_000 * 512 + 2 * 50 * 512),
    ],
)
def test_published_networks_have_their_parameters(name, count):
    _, args, _ = made(name, "paper")
    assert sum(leaf.size for leaf in leaves_of(args[0])) == count


def test_inception_has_all_its_convolutions():
    _, (params, *_), _ = made("inception", "paper")
    assert sum(len(leaf.shape) == 4 for leaf in leaves_of(params)) == 94


@pytest.mark.parametrize("preset, sequence", [("paper", 40), ("paper50", 50)])
def test_gnmt_has_the_size_that_the_paper_measured(preset, sequence):
    _, (params, _, _, batch), _ = made("gnmt", preset)
    assert batch["source"].shape == (sequence, 128)
    assert params["head"]["w"].shape == (512, 30000)
    assert len(params["decoder"]["cells"]) == 4


WITH_SIZES = sorted(set(models.NAMES) - {"lstm", "convnet", "wgan", "speech"})


@pytest.mark.parametrize("name", WITH_SIZES)
def test_sizes_grow(name):
    presets = models.load(name).PRESETS
    sizes = ["tiny", "small", "paper", "full" if name == "gnmt" else "large"]
    counts = [sum(leaf.size for leaf in leaves_of(made(name, size)[1])) for size in sizes]
    assert set(sizes) <= set(presets) and counts == sorted(counts)


def test_a_step_of_paper_size_traces_without_values():
    step, args, _ = made("inception", "paper")
    is_leaf = lambda leaf: isinstance(leaf, init.Init)  # noqa: E731
    shapes = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), args, is_leaf=is_leaf
    )
    result = jax.eval_shape(step, *shapes)
    assert result.loss.shape == ()
    for argument, updated in zip(shapes, result[1:]):
        assert jax.tree.map(lambda a: a.shape, argument) == jax.tree.map(lambda u: u.shape, updated)


DROPPING = ["mlp", "transformer", "transformer_encdec", "moe", "rnnlm", "gnmt", "inception"]


def test_dropout_is_in_the_published_models():
    for name in DROPPING:
        assert models.load(name).PRESETS["paper"].dropout > 0


@pytest.mark.parametrize("name", DROPPING)
def test_a_model_without_dropout_has_no_key(name):
    with_key = made(name, "tiny", dropout=0.1)
    without = made(name, "tiny", dropout=0.0)
    assert [len(args) for _, args, _ in (with_key, without)] == [4, 3]
    assert [donated for *_, donated in (with_key, without)] == [(0, 1, 2), (0, 1)]


def test_dropout_zeroes_its_share_and_keeps_the_mean():
    x = np.ones((400, 500), np.float32)
    drop = dropout.Dropout(0.2, dropout.initial_key().value())
    first, second = np.asarray(drop(x)), np.asarray(drop(x))
    assert set(np.unique(first)) == {0.0, np.float32(1 / 0.8)}
    assert (first == 0).mean() == pytest.approx(0.2, abs=0.01)
    assert not np.array_equal(first, second), "two draws of one step are the same"
    a, b = (of_step(x) for of_step in drop.steps(2, x.shape))
    assert not np.array_equal(a, b), "two time steps have one mask"
    assert dropout.Dropout()(x) is x


def test_a_mask_is_one_operation_and_no_loop():
    step, args, donated = made("mlp", "tiny", dropout=0.5)
    text = importer.import_step(step, args, donated).text
    assert "scf." not in text
    assert text.count("arith.shrui %") < 200, "threefry in many operations"


def test_every_step_drops_other_elements():
    step, args, _ = made("mlp", "tiny", dropout=0.5, learning_rate=0.0)
    values = [
        jax.tree.map(init.Init.value, arg, is_leaf=lambda leaf: isinstance(leaf, init.Init))
        for arg in args
    ]
    step = jax.jit(step)
    first, again = step(*values), step(*values)
    values[2] = first.key
    assert first.loss == again.loss != step(*values).loss


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("resnet", {"stem": "none"}, "unknown stem 'none'; known: imagenet, cifar"),
        ("resnet", {"blocks": "3,4"}, "'3,4' is not a list of numbers such as 3-4-6-3"),
        ("inception", {"stem": "none"}, "unknown stem 'none'; known: paper, short"),
        ("inception", {"blocks": "3-4"}, "blocks=3-4: expected three numbers such as 3-4-2"),
        ("wgan", {"image": 10}, "image=10 is not a multiple of 4"),
        ("moe", {"experts": 1}, "experts=1: a token goes to 2"),
        ("transformer_encdec", {"heads": 3}, "hidden=16 is not a multiple of heads=3"),
        ("mlp", {"dropout": 1.0}, "dropout=1.0: expected 0 or more and less than 1"),
        ("moe", {"heads": 3}, "hidden=16 is not a multiple of heads=3"),
    ],
)
def test_wrong_configurations(name, changes, message):
    with pytest.raises(ValueError, match=message):
        made(name, "tiny", **changes)


def test_routing_fills_places_in_order_of_choice():
    config = moe.PRESETS["tiny"]
    random = np.random.default_rng(0)
    x = random.normal(size=(2, config.sequence, config.hidden)).astype(np.float32)
    router = random.normal(size=(config.hidden, config.experts)).astype(np.float32)
    capacity = moe.CHOICES * config.sequence // config.experts
    dispatch, combine, _ = map(np.asarray, moe._route(config, router, x))

    expected, weights = np.zeros_like(dispatch), np.zeros_like(combine)
    for b, probabilities in enumerate(np.asarray(jax.nn.softmax(x @ router))):
        best = np.argsort(-probabilities, axis=-1)[:, : moe.CHOICES]
        used = [0] * config.experts
        for choice in range(moe.CHOICES):
            for token, expert in enumerate(best[:, choice]):
                if used[expert] < capacity:
                    share = probabilities[token, expert] / probabilities[token, best[token]].sum()
                    expected[b, token, expert, used[expert]] = 1
                    weights[b, token, expert, used[expert]] = share
                used[expert] += 1
    assert expected.sum() < x.shape[0] * x.shape[1] * moe.CHOICES, "nothing was dropped"
    np.testing.assert_array_equal(dispatch, expected)
    np.testing.assert_allclose(combine, weights, atol=1e-6)
