# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The garbage collector rests while a step is traced, and is as before afterwards."""

import gc

import pytest

from baechi.common import collector


@pytest.fixture(autouse=True)
def as_before():
    enabled = gc.isenabled()
    yield
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
def test_is_as_before_after_an_error_too(enabled):
    (gc.enable if enabled else gc.disable)()
    with pytest.raises(ValueError), collector.paused():
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled() == enabled


def test_the_last_of_several_ends_the_pause():
    gc.enable()
    first, second = collector.paused(), collector.paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_a_step_is_traced_without_collections():
    jax = pytest.importorskip("jax")
    from baechi.importer.jax import step

    gc.enable()
    seen = []

    def traced(x):
        seen.append(gc.isenabled())
        return x + 1

    step.import_step(traced, [jax.numpy.zeros(2)])
    assert seen == [False]
    assert gc.isenabled()
