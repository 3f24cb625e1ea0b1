# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operators are cut into where nobody says it (docs/splitting.md)."""

import pytest

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
from test_exact_splits import assert_same_bits  # noqa: E402
from test_splits import LAYERS, layers  # noqa: E402

QUICK = {"costs": "roofline", "budget": "0"}
CHAIN = jax.value_and_grad(layers)


def is_cut(compiled):
    return any(".piece" in name for name in compiled.placement)


def compiled(**options):
    step = baechi.jit(CHAIN, **(QUICK | options))
    return step, step(*LAYERS)


def test_several_devices_have_the_bits_of_one():
    alone, expected = compiled(machine="host:1")
    assert not is_cut(alone)
    for machine in ("host:2", "host:3", "host:4"):
        step, found = compiled(machine=machine)
        assert is_cut(step)
        assert_same_bits(found, expected)
    assert_same_bits(compiled(machine="host:2", splits="exact")[1], expected)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_placement_is_of_the_whole_step_or_of_pieces(devices, tmp_path):
    """As it was when the placement was made."""
    first, expected = compiled(machine=f"host:{devices}")
    assert is_cut(first) == (devices == 2)
    saved = tmp_path / "placement.json"
    saved.write_text(first._called().placement_file())
    again, found = compiled(machine="host:2", placement=saved)
    assert again.placement == first.placement
    assert_same_bits(found, expected)


def test_what_a_person_cuts_is_all_that_is():
    asked = {"machine": "host:2", "split": {"*w*": "whole"}}
    assert_same_bits(compiled(**asked)[1], compiled(**asked, splits="none")[1])
    assert not is_cut(compiled(**asked)[0])


def test_pieces_are_explained():
    step, _ = compiled(machine="host:2")
    names = [name for name in step.placement if ".piece" in name]
    assert f"'{names[-1]}' is on host" in step.explain(names[-1])
