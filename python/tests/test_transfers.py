# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages that are lent, compared with copied ones and with jax.jit."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi


def _train(w, x, y):
    def loss(w):
        hidden = jnp.tanh(x @ w[0])
        return ((jnp.tanh(hidden @ w[1]) @ w[2] - y) ** 2).mean()

    value, g = jax.value_and_grad(loss)(w)
    return [p - 0.1 * q for p, q in zip(w, g, strict=True)], value


def _arguments():
    key = np.random.default_rng(3)
    w = [key.standard_normal(s).astype(np.float32) * 0.1 for s in ((32, 64), (64, 64), (64, 8))]
    return w, key.standard_normal((16, 32)).astype(np.float32), np.ones((16, 8), np.float32)


# Everything alternates between the devices, so that there is much to lend.
_PINS = {"w/0": "host0", "w/1": "host1", "w/2": "host0", "*dot*": "host1", "*tanh*": "host0"}


def _steps(transfers, machine, pin=None, splits="none"):
    step = baechi.jit(
        _train,
        machine=machine,
        costs="roofline",
        budget="0",
        pin=pin,
        splits=splits,
        transfers=transfers,
        donate_argnums=0,
    )
    w, x, y = _arguments()
    losses = []
    for _ in range(5):
        w, value = step(w, x, y)
        losses.append(float(value))
    return [np.asarray(p) for p in w], losses, step


@pytest.mark.parametrize("machine", ["host:2", "host:3"])
@pytest.mark.parametrize(("pin", "splits"), [(_PINS, "none"), (None, "canonical:2")])
def test_lending_changes_no_bit(machine, pin, splits):
    lent, lent_losses, step = _steps("lend", machine, pin, splits)
    copied, copied_losses, other = _steps("copy", machine, pin, splits)
    assert lent_losses == copied_losses
    for a, b in zip(lent, copied, strict=True):
        np.testing.assert_array_equal(a, b)
    assert _lent(step) > 0
    assert _lent(other) == 0
    w, x, y = _arguments()
    reference = jax.jit(_train)
    for value in lent_losses:
        w, expected = reference(w, x, y)
        assert value == pytest.approx(float(expected), rel=1e-5)


def _lent(step):
    """Bytes that the report says were lent in a step."""
    rows = [line.split() for line in step.report().splitlines() if line.startswith("host")]
    return sum(float(row[-1]) for row in rows)


def test_what_is_no_word_is_an_error():
    with pytest.raises(ValueError, match="transfers"):
        baechi.jit(_train, transfers="share")


def test_what_was_given_up_is_told(tmp_path):
    """Where contention eats what a second device gains, one is taken."""
    host = {"kind": "host", "memory": 1 << 30}
    machine = {
        "format": "baechi-machine",
        "version": 1,
        "devices": [{"name": "host0", **host}, {"name": "host1", **host}],
        "link_default": {"latency_ns": 100, "bytes_per_us": 20000},
        "link_model": "sequential",
        "runtime": {"step_ns": 0, "operator_ns": 0, "wake_ns": 0, "shared_percent": 1000},
    }
    file = tmp_path / "crowded.json"
    file.write_text(json.dumps(machine))
    step = baechi.jit(lambda a, b: (a @ a, b @ b), machine=file, costs="roofline")
    step(np.ones((64, 64), np.float32), np.ones((64, 64), np.float32))
    lines = step.report().splitlines()
    assert lines[0].split() == ["placement", "msct", "asked,", "'single:host0'", "won"]
    assert lines[1].strip().startswith("instead of '")
