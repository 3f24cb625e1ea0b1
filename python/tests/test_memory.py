# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What steps hold on their devices, and the least memory that they can do with."""

import pytest

import needs

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import baechi  # noqa: E402
from baechi.compiling.options import CompileOptions  # noqa: E402
from baechi.compiling.tools import CompileError  # noqa: E402
from baechi.steps import memory  # noqa: E402
from jax_support import jit  # noqa: E402

pytestmark = needs.tool("baechi-run")


def train(weights, x):
    def loss(weights):
        for w in weights:
            nonlocal x
            x = jax.numpy.tanh(x @ w)
        return (x**2).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], value


SHAPES = [jax.ShapeDtypeStruct((64, 64), "float32")] * 6, jax.ShapeDtypeStruct((50, 64), "float32")


def lowered(**options):
    def step(weights, x):
        return train(weights, x)

    return jit(step, donate_argnums=0, **options).lower(*SHAPES)


@pytest.fixture(scope="module")
def compiled():
    return lowered(machine="host:2@1MiB").compile()


def test_memory_is_that_of_the_report_and_holds_all_arguments(compiled):
    found = compiled.memory()
    theirs = jax.jit(train).lower(*SHAPES).compile().memory_analysis()
    resident = sum(device.resident_bytes for device in found)
    # All are multiples of 64 bytes.
    assert resident == theirs.argument_size_in_bytes == 6 * 64 * 64 * 4 + 50 * 64 * 4
    for device, told in zip(found, compiled.report().splitlines()[-2:], strict=True):
        assert device.limit_bytes == 2**20 >= device.arena_bytes
        assert device.scratch_bytes == device.arena_bytes - device.resident_bytes >= 0
        words = told.split()
        assert words[0] == device.device and words[2] == f"{device.arena_bytes / 2**20:.2f}"
        assert found[device.device] is device and device.device in str(found)
    with pytest.raises(KeyError, match="host0, host1"):
        found["host2"]


def test_the_least_memory_suffices_and_less_does_not(compiled):
    devices = 2
    least = compiled.least_memory(devices)
    held = 6 * 64 * 64 * 4 + 50 * 64 * 4
    assert held / devices - 1 <= least.impossible_bytes <= least.not_found_bytes < least.bytes
    assert least.bytes - least.not_found_bytes <= least.bytes / 64 + 64
    enough = lowered(machine=f"host:{devices}@{least.bytes}").compile()
    assert all(d.arena_bytes <= d.limit_bytes == least.bytes for d in enough.memory())
    for size in {least.not_found_bytes, least.impossible_bytes}:
        with pytest.raises(CompileError, match="fit the memories|the plan needs"):
            lowered(machine=f"host:{devices}@{size}", fit_memory="whole").compile()
    assert f"{devices} device" in str(least) and "there is none" in str(least)


def test_it_ends_whatever_suffices():
    held = memory.Memory((memory.DeviceMemory("host0", 5000, 1000, 10**9),))

    def search(suffices):
        tried = []

        def compiled(options):
            words = options.machine.split("@")
            if len(words) == 1:
                return held
            tried.append(int(words[1]))
            if not suffices(tried[-1]):
                raise CompileError("no placement was found that fits the memories")
            return memory.Memory((memory.DeviceMemory("host0", tried[-1], 0, tried[-1]),))

        found = memory.least(held, {"host"}, None, CompileOptions(), compiled)
        assert found.bytes in tried and suffices(found.bytes) and len(tried) < 60
        assert len(set(tried)) == len(tried)
        assert not suffices(found.not_found_bytes) or found.not_found_bytes == 999
        assert found.impossible_bytes == 999
        return found.bytes

    assert 3000 <= search(lambda size: size >= 3000) <= 3064
    assert search(lambda size: size > 100_000) > 100_000
    assert search(lambda size: True) <= 1064
    for odd in range(2, 9):
        search(lambda size, odd=odd: size > 4000 or size // 64 % odd == 1)


def test_what_has_no_least_memory_is_refused(compiled, tmp_path):
    with pytest.raises(ValueError, match="devices is 0"):
        compiled.least_memory(0)
    with pytest.raises(ValueError, match=r"several kinds \(cuda, host\)"):
        memory.least(compiled.memory(), {"host", "cuda"}, 2, CompileOptions(), None)
    loaded = baechi.load_step(compiled.save(tmp_path / "it.step"))
    assert loaded.memory() == compiled.memory()
    with pytest.raises(RuntimeError, match="loaded from a file"):
        loaded.least_memory()
    # What has to do with no size is told.
    with pytest.raises(CompileError, match="host1"):
        lowered(pin={"x": "host1"}).compile().least_memory(1)


def test_steps_of_pytorch_tell_theirs():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    from baechi.torch import compile_step

    model = torch.nn.Linear(32, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = compile_step(model, torch.nn.functional.mse_loss, optimizer, costs="roofline")
    with pytest.raises(RuntimeError, match="no program yet"):
        step.memory()
    step(torch.zeros(4, 32), torch.zeros(4, 16))
    parameters = (32 * 16 + 16) * 4
    assert sum(device.resident_bytes for device in step.memory()) >= 2 * parameters
    assert step.memory()["host0"].arena_bytes >= step.memory()["host0"].resident_bytes


def test_a_sort_that_does_not_fit_is_called_one():
    step = baechi.jit(lambda x: jnp.sort(x @ x, axis=0), machine="host:2@100KiB", budget=0)
    with pytest.raises(CompileError) as raised:
        step(jnp.ones((100, 100)))
    told = str(raised.value)
    assert "'sort/while' by itself needs" in told
    assert "it has a loop, as a sort has, or a branch" in told
    # What it needs is said once, and what of it one device must hold.
    assert "of that must be on one device, the largest has 100.00 KiB" in told
