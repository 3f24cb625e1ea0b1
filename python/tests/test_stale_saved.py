# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of `baechi.stale_step` that are broken off and go on from a file: the numbers of one that
was not, and NumPy's."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.replicas.arguments import StoreError
from test_stale_ranks import by_hand, ended, start

Given = dict[str, Any]
ALIKE: Given = {"staleness": 0, "compiled": False}


def momentum(state: Any, x: Any) -> Any:
    """Towards the batch, with a count that each replica has for itself."""
    (w, v), count = state
    v = np.float32(0.5) * v + (w - x.mean(0)) * np.float32(count + 1)
    return ((w - np.float32(0.1) * v, v), count + 1), w.sum()


def first() -> Any:
    return (np.arange(3, dtype=np.float32), np.zeros(3, np.float32)), np.int32(0)


def batch(number: int) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(4, 3)).astype(np.float32)


def _of_numpy(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Momentum is linear in the mean of the batch, so the replicas' mean is the whole step."""
    w, v = np.arange(3.0), np.zeros(3)
    for n in range(steps):
        v = 0.5 * v + (w - batch(n).mean(0, np.float64)) * (n + 1)
        w = w - 0.1 * v
    return w, v


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_step_goes_on(tmp_path: pathlib.Path, replicas: int) -> None:
    """With as many replicas, or others."""
    file = tmp_path / "saved"
    with baechi.stale_step(momentum, first(), replicas=2, **ALIKE) as step:
        for n in range(3):
            step(batch(n))
        step.save(file)
        step(batch(9))  # is not in it
        step.state()
    zeros = jax.tree.map(np.zeros_like, first())
    with baechi.stale_step(momentum, zeros, replicas=replicas, restored=file, **ALIKE) as step:
        (w, _), count = step.state()
        assert count == 3
        np.testing.assert_allclose(w, _of_numpy(3)[0], rtol=1e-5)
        for n in range(3, 6):
            step(batch(n))
        (w, v), count = step.state()
        assert step.report().clocks == [6] * replicas
    assert count == 6
    np.testing.assert_allclose(w, _of_numpy(6)[0], rtol=1e-5)
    np.testing.assert_allclose(v, _of_numpy(6)[1], rtol=1e-5)


def test_keys_and_late_replicas_go_on(tmp_path: pathlib.Path) -> None:
    """Of a compiled step, which is saved twice at the same place."""

    def noisy(state: Any, x: Any) -> Any:
        w, key = state
        key, mine = jax.random.split(key)
        return (w - 0.1 * (w - x.mean(0)) - jax.random.normal(mine, (3,)), key), mine

    state = jnp.ones(3), jax.random.key(5)
    file = tmp_path / "saved"
    made = []
    options: Given = {"replicas": 2, "staleness": 1, "costs": "roofline", "budget": "0"}
    for turn in range(2):
        more = {"restored": file} if turn else {}
        with baechi.stale_step(noisy, state, checked=True, **options, **more) as step:
            made += [step(batch(n)) for n in range(2 * turn, 2 * turn + 2)]
            step.save(file)
            found = step.state()
    key = jax.random.key(5)
    for each in made:
        key, mine = jax.random.split(key)
        for drawn in each.result():
            assert (jax.random.key_data(drawn) == jax.random.key_data(mine)).all()
    assert (jax.random.key_data(found[1]) == jax.random.key_data(key)).all()


def descend(w: Any, x: Any) -> Any:
    return w - (w - x.mean(0)), w.sum()


def test_what_the_store_keeps_for_its_steps_goes_on(tmp_path: pathlib.Path) -> None:
    """Of AdaGrad, the sums of squares: without them the next step is another one."""
    options: Given = {"replicas": 1, "revised": 0.3, **ALIKE}
    start, file = np.full(3, 4, np.float32), tmp_path / "saved"
    found = []
    with baechi.stale_step(descend, start, **options) as step:
        for n in range(4):
            step(batch(n))
            if n == 1:
                step.save(file)
                between = step.state()
        found.append(step.state())
    for more in ({"restored": file}, {}):
        with baechi.stale_step(descend, between, **options, **more) as step:
            for n in (2, 3):
                step(batch(n))
            found.append(step.state())
    np.testing.assert_array_equal(found[1], found[0])
    assert np.abs(found[2] - found[0]).max() > 0.01


RANKS = """
import sys
import numpy as np
import baechi
from test_stale_saved import ALIKE, batch, first, momentum

file = f"{sys.argv[1]}/saved"
for turn in range(2):
    more = {"restored": file} if turn else {}
    with baechi.stale_step(
        momentum, first(), replicas=2, ranks="launcher", patience=60, **ALIKE, **more
    ) as step:
        for n in range(3 * turn, 3 * turn + 3):
            step(batch(n))
        step.save(file)
        (w, v), count = step.state()
assert count == 6
print(" ".join(map(str, [*w, *v])))
"""


def test_ranks_go_on(tmp_path: pathlib.Path) -> None:
    text = f"import sys\nsys.path.append({str(pathlib.Path(__file__).parent)!r})\n{RANKS}"
    said = ended([start(tmp_path, text, (), by_hand(rank, 2, tmp_path)) for rank in range(2)])
    for code, numbers, error in said:
        assert code == 0, error
        np.testing.assert_allclose(
            list(map(float, numbers.split())), np.concatenate(_of_numpy(6)), rtol=1e-5
        )


def test_what_does_not_fit_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "saved"
    with baechi.stale_step(descend, np.zeros(3, np.float32), replicas=2, **ALIKE) as step:
        step(batch(0))
        step.save(file)
    with pytest.raises(RuntimeError, match="saved after close.*: save it within its `with`"):
        step.save(file)

    def restored(state: Any, where: pathlib.Path = file, **more: Any) -> Any:
        return baechi.stale_step(descend, state, replicas=2, restored=where, **ALIKE, **more)

    zeros = np.zeros(3, np.float32)
    words = r"has state of float32\[3\], and stale_step is given state of float32\[4\]: give the"
    with pytest.raises(StoreError, match=words):
        restored(np.zeros(4, np.float32))
    with pytest.raises(StoreError, match=r"has 1 arrays, and stale_step is given 2 arrays"):
        restored((zeros, zeros))
    with pytest.raises(StoreError, match=r"has {}, and stale_step is given {'state': 0.3}"):
        restored(zeros, revised=0.3)
    with pytest.raises(StoreError, match="none cannot be read: No such file"):
        restored(zeros, tmp_path / "none")
    content = file.read_bytes()
    for at in range(0, len(content), 61):
        other = tmp_path / "other"
        other.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        try:
            with restored(zeros, other) as step:
                assert (step.state() == _after_one()).all()  # what no reader looks at
        except StoreError:
            pass
    other.write_bytes(b"no archive")
    with pytest.raises(StoreError, match="other is no file of StaleStep.save, or was changed"):
        restored(zeros, other)


def _after_one() -> np.ndarray:
    with baechi.stale_step(descend, np.zeros(3, np.float32), replicas=2, **ALIKE) as step:
        step(batch(0))
        return step.state()
