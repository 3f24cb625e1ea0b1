# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model collection: the published sizes, routing, and what a configuration may say."""

import dataclasses

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")

from baechi import init, models  # noqa: E402
from baechi.models import moe  # noqa: E402


def made(name, preset, **changes):
    module = models.load(name)
    return module.training_step(dataclasses.replace(module.PRESETS[preset], **changes))


# As torchvision counts them, without Inception's auxiliary classifier.
@pytest.mark.parametrize("name, count", [("resnet", 25_557_032), ("inception", 23_834_568)])
def test_published_networks_have_their_parameters(name, count):
    _, args, _ = made(name, "paper")
    is_leaf = lambda leaf: isinstance(leaf, init.Init)  # noqa: E731
    leaves = jax.tree.leaves(args[0], is_leaf=is_leaf)
    assert sum(leaf.size for leaf in leaves) == count


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("resnet", {"stem": "none"}, "unknown stem 'none'; known: imagenet, cifar"),
        ("resnet", {"blocks": "3,4"}, "'3,4' is not a list of numbers such as 3-4-6-3"),
        ("inception", {"stem": "none"}, "unknown stem 'none'; known: paper, short"),
        ("inception", {"blocks": "3-4"}, "blocks=3-4: expected three numbers such as 3-4-2"),
        ("moe", {"experts": 1}, "experts=1: a token goes to 2"),
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
