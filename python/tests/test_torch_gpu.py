# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of models whose tensors lie in a GPU's memory, on the fake driver; what a real one
shows is in docs/benchmarks-gpu.md."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import baechi.torch  # noqa: E402
from baechi.torch import gpu  # noqa: E402
from test_dlpack import FAKE, ROOT, RUN  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not RUN.exists(), reason=f"{RUN} is not built"),
    pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built"),
]

MIXED = {
    "format": "baechi-machine",
    "version": 1,
    "devices": [
        {"name": "cuda0", "kind": "cuda", "memory": 1 << 20},
        {"name": "host0", "kind": "host", "memory": 1 << 20},
    ],
    "link_default": {"latency_ns": 1000, "bytes_per_us": 20000},
    "link_model": "duplex",
}
# The fake computes products alone: the rest is the host's, and with it what is updated there.
PINS = {
    "input": "cuda0",
    "mm": "cuda0",
    "backward/mm": "cuda0",
    "weight*": "host0",
    "target": "host0",
    "update/*": "host0",
    "loss/*": "host0",
}


def squares(output, target):
    return ((output - target) ** 2).mean()


def twins(columns_first=False):
    from gpu_tensors import on_gpu

    torch.manual_seed(0)
    ours, theirs = (torch.nn.Linear(8, 4, bias=False) for _ in range(2))
    ours.load_state_dict(theirs.state_dict())
    weight = ours.weight.detach()
    ours.weight = torch.nn.Parameter(on_gpu(weight.T.contiguous().T if columns_first else weight))
    return ours, theirs


def compiled(model, optimizer, machine, **options):
    options = {"costs": "roofline", "budget": "0", **options}
    return baechi.torch.compile_step(model, squares, optimizer, machine=machine, **options)


def trains(folder, columns_first):
    """In a process of its own."""
    from gpu_tensors import Factories, GpuTensor, noted_moves, on_gpu, without_a_driver

    without_a_driver()
    (file := folder / "machine.json").write_text(json.dumps(MIXED))
    ours, theirs = twins(columns_first)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (ours, theirs)]
    step = compiled(ours, optimizers[0], str(file), pin=PINS, outputs=lambda output: output)
    place, moved = ours.weight.data_ptr(), noted_moves()
    for seed in range(3):
        torch.manual_seed(seed)
        x, y = torch.randn(5, 8), torch.randn(5, 4)
        version = ours.weight._version
        with Factories():
            loss, output = step(on_gpu(x), on_gpu(y))
        optimizers[1].zero_grad()
        expected = theirs(x)
        squares(expected, y).backward()
        optimizers[1].step()
        assert isinstance(loss, GpuTensor) and isinstance(output, GpuTensor)
        torch.testing.assert_close(loss.cpu(), squares(expected, y).detach())
        torch.testing.assert_close(output.cpu(), expected.detach())
        torch.testing.assert_close(ours.weight.detach().cpu(), theirs.weight.detach())
        assert ours.weight._version > version
    kept = optimizers[0].state[ours.weight]["momentum_buffer"]
    assert kept.is_cuda and ours.weight.data_ptr() == place
    torch.testing.assert_close(
        kept.cpu(), optimizers[1].state[theirs.weight]["momentum_buffer"].detach()
    )
    # What lies on the GPU is not moved through the host.
    names = {name for _, name in moved}
    assert "weight" in names and not {"input", "output/0"} & names, names


def refuses():
    """In a process of its own."""
    from gpu_tensors import Factories, on_gpu, without_a_driver

    without_a_driver()
    ours, _ = twins()
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    x, y = torch.randn(5, 8), torch.randn(5, 4)
    step = compiled(ours, optimizer, "host:1")
    before = ours.weight.detach().cpu()
    with Factories():
        with pytest.raises(ValueError, match=r"the model is on cuda:0, and the machine has no GPU"):
            step(on_gpu(x), on_gpu(y))
        with pytest.raises(
            TypeError, match=r"'input' is on cpu, and the model on cuda:0: give .to"
        ):
            step(x, on_gpu(y))
        for device in ("cpu", "cuda"):
            torch.set_autocast_enabled(device, True)
            with pytest.raises(RuntimeError, match="was called under torch.autocast, which is"):
                step(on_gpu(x), on_gpu(y))
            torch.set_autocast_enabled(device, False)
        with pytest.raises(ValueError, match="check= compares with eager PyTorch on the CPU"):
            compiled(ours, optimizer, "cuda:1@1MiB", check="first")(on_gpu(x), on_gpu(y))
    assert torch.equal(before, ours.weight.detach().cpu())
    ours.register_buffer("shift", torch.zeros(3))
    with pytest.raises(
        ValueError, match="'weight' is on cuda:0 and 'shift' on cpu: move the model"
    ):
        step(on_gpu(x), on_gpu(y))


def on_the_fake(call, module="test_torch_gpu"):
    fake = {"BAECHI_CUDA_LIBRARY": str(FAKE), "BAECHI_CUBLASLT_LIBRARY": str(FAKE)}
    script = (
        f"import ctypes, gc, pathlib, {module}\n"
        f"{module}.{call}\n"
        "gc.collect()\n"
        "from baechi.steps import gpu_memory\n"
        "gpu_memory.release()\n"
        f"fake = ctypes.CDLL(str({module}.FAKE))\n"
        "fake.fakeCudaMisuse.restype = ctypes.c_char_p\n"
        "print('misuse:', fake.fakeCudaMisuse().decode() or 'none')"
    )
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    said = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT / "python" / "tests",
        env=os.environ | fake | {"PYTHONPATH": paths},
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout == "misuse: none\n"


@pytest.mark.parametrize("columns_first", [False, True])
def test_a_model_on_a_gpu_is_trained_there(tmp_path, columns_first):
    on_the_fake(f"trains(pathlib.Path({str(tmp_path)!r}), {columns_first})")


def test_what_does_not_go_with_a_model_on_a_gpu_is_refused():
    on_the_fake("refuses()")


def test_errors_of_stand_ins_say_what_may_be_on_a_gpu():
    error = RuntimeError("found two different devices cpu, cuda:0")
    assert "device=x.device" in gpu.mend_of(error, torch.device("cuda:0"))
    assert not gpu.mend_of(error, torch.device("cpu"))
    assert not gpu.mend_of(RuntimeError("of shapes"), torch.device("cuda:0"))


def test_random_numbers_of_another_generator_are_told():
    with pytest.warns(UserWarning, match="those of the CPU's generator"):
        gpu.tell_of_draws(torch.device("cuda:0"))


def test_new_values_go_into_the_tensors_that_they_are_of():
    """Where a call has copied them beside other results, and what a result is given to twice is
    two tensors."""
    from types import SimpleNamespace

    from baechi.torch.step_program import StepProgram

    program = StepProgram.__new__(StepProgram)
    arguments = [SimpleNamespace(updated_by=each) for each in (1, None, 0)]
    program.traced = SimpleNamespace(arguments=arguments)
    program._made = {0: torch.arange(6.0).reshape(2, 3), 1: torch.full((4,), 7.0)}
    program._used = set()
    parameter = torch.nn.Parameter(torch.zeros(4))
    constant, columns = torch.zeros(4), torch.zeros(3, 2).T
    versions = [each._version for each in (parameter, constant, columns)]
    program._write({0: parameter, 1: constant, 2: columns})
    torch.testing.assert_close(parameter.detach(), torch.full((4,), 7.0))
    torch.testing.assert_close(columns, torch.arange(6.0).reshape(2, 3))
    changed = [
        each._version > version
        for each, version in zip((parameter, constant, columns), versions, strict=True)
    ]
    assert changed == [True, False, True] and not constant.any()
    first, second = program._result(0), program._result(0)
    first.zero_()
    torch.testing.assert_close(second, torch.arange(6.0).reshape(2, 3))
