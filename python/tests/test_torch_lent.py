# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host devices read PyTorch's tensors where they are: calls give what PyTorch gives."""

import numpy as np
import pytest

import torch_support as support
from baechi import StepError
from baechi.steps.library import own_memory
from torch_support import baechi, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools
OPTIONS = {"costs": "roofline", "budget": "0"}


def compile_model(model, **options):
    torch._dynamo.reset()
    return torch.compile(model, backend="baechi", options={**OPTIONS, **options})


def read_there(program):
    """The arguments that the last call read where they were."""
    found = []
    for i, info in enumerate(program.library.program["arguments"]):
        try:
            program.library.argument(i)
        except StepError as error:
            assert "has no value: a call read it where its caller had it" in str(error)
            found.append(info["name"])
    return found


def graph_program():
    return baechi.torch.graphs()[-1]._called()


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x, y):
        return self.second(torch.tanh(self.first(x))) + y


MACHINES = {
    "one": {"machine": "host:1"},
    "two": {"machine": "host:2", "pin": {"first*": "host0", "second*": "host1"}},
    "copies": {
        "machine": "host:2",
        "pin": {"first*": "host0", "second*": "host1"},
        "transfers": "copy",
    },
}


@pytest.mark.parametrize("machine", MACHINES)
def test_weights_and_inputs_are_read_where_they_are(machine):
    model = Two()
    compiled = compile_model(model, **MACHINES[machine])
    with torch.no_grad():
        for i in range(4):
            x, y = torch.randn(32, 64), torch.randn(32, 64)
            for given in ((x, y), (x, x)):
                result = compiled(*given)
                expected = model(*given)
                torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
                # Neither is the other's memory.
                for tensor in given:
                    tensor.zero_()
                torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
            model.first.weight.mul_(1.5)
            model.second.weight.data = torch.randn(64, 64)
        there = read_there(graph_program())
        assert {"first.weight", "second.weight"} <= set(there)
        assert len(there) == 4 - 1  # one tensor for both is one argument to torch.compile


def test_tensors_that_lie_otherwise_are_copied():
    model = Two()
    compiled = compile_model(model, machine="host:1")
    room = torch.randn(32 * 64 + 1)
    for x in (room[1:].view(32, 64), torch.randn(64, 32).t(), torch.randn(32, 128)[:, ::2]):
        with torch.no_grad():
            y = torch.randn(32, 64)
            for _ in range(2):
                given = compiled(x, y)
                torch.testing.assert_close(given, model(x, y), rtol=1e-4, atol=1e-5)


def test_held_weights_stay():
    model = Two()
    compiled = compile_model(model, machine="host:1", weights="held")
    with torch.no_grad():
        for i in range(4):
            x, y = torch.randn(32, 64), torch.randn(32, 64)
            torch.testing.assert_close(compiled(x, y), model(x, y), rtol=1e-4, atol=1e-5)
            if i == 1:
                model.first.weight.mul_(2)
        assert not any("weight" in name for name in read_there(graph_program()))


def test_what_changes_in_place_or_is_returned():
    class Changing(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(1500)
            self.register_buffer("sums", torch.zeros(8, 1500))

        def forward(self, x, same):
            x = self.norm(x)
            self.sums += x
            x = x * 2
            same.add_(1)
            return x, same, self.sums, x.t()

    ours, theirs = Changing(), Changing()
    compiled = compile_model(ours, machine="host:1")
    a, b = torch.zeros(8, 1500), torch.zeros(8, 1500)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(8, 1500)
            found, expected = compiled(x, a), theirs(x, b)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            assert found[1] is a or found[1].data_ptr() == a.data_ptr()
            for name, value in theirs.state_dict().items():
                torch.testing.assert_close(ours.state_dict()[name], value, rtol=1e-4, atol=1e-4)


def test_training_reads_inputs_and_what_is_frozen():
    def trained(compile):
        torch.manual_seed(3)
        model = Two()
        model.first.weight.requires_grad_(False)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        loss = nn.functional.mse_loss
        step = support.compile_step(model, loss, optimizer, machine="host:1") if compile else None
        losses = []
        for _ in range(4):
            x, y, target = (torch.randn(32, 64) for _ in range(3))
            if step is None:
                optimizer.zero_grad()
                value = loss(model(x, y), target)
                value.backward()
                optimizer.step()
            else:
                value = step(x, y, target)
            losses.append(value.item())
            model.first.weight.mul_(1.1)
        return losses, model.state_dict(), step

    found, state, step = trained(True)
    expected, others, _ = trained(False)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    for name, value in others.items():
        torch.testing.assert_close(state[name], value, rtol=1e-3, atol=1e-4)
    there = read_there(step._latest)
    assert "first.weight" in there and "target" in there
    assert not any("second.weight" in name for name in there)


def test_backward_reads_what_forward_kept():
    model, other = Two(), Two()
    other.load_state_dict(model.state_dict())
    compiled = compile_model(model, machine="host:1")
    for _ in range(3):
        x, y = torch.randn(32, 64), torch.randn(32, 64)
        compiled(x, y).square().sum().backward()
        other(x, y).square().sum().backward()
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-3)


def test_arrays_stay_where_a_device_was_left_behind(monkeypatch):
    """It may still read them."""
    from baechi.steps import library

    model = Two()
    compiled = compile_model(model, machine="host:1")
    with torch.no_grad():
        x, y = torch.randn(32, 64), torch.randn(32, 64)
        compiled(x, y)
        kept = []
        monkeypatch.setattr(library, "_LEFT_BEHIND", kept)
        functions = graph_program().library._functions
        monkeypatch.setitem(functions, "call_lending", lambda *_: 1)
        for usable in (1, 0):
            monkeypatch.setitem(functions, "usable", lambda _, usable=usable: usable)
            with pytest.raises(StepError):
                compiled(x, y)
            assert [len(arrays) >= 4 for arrays in kept] == [True] * (1 - usable)


def test_inputs_of_onnx_models():
    onnx = pytest.importorskip("onnx")
    import baechi.onnx

    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        agraph (float[64, 64] x, float[64, 64] y) => (float[64, 64] z)
        { z = MatMul(x, y) }
    """
    compiled = baechi.onnx.compile(onnx.parser.parse_model(text), machine="host:1", **OPTIONS)
    draw = np.random.default_rng(0)
    aligned = own_memory((64, 64), np.dtype(np.float32))
    apart = own_memory((64 * 64 + 4,), np.dtype(np.float32))[4:].reshape(64, 64)
    for _ in range(3):
        for array in (aligned, apart):
            array[...] = draw.normal(size=(64, 64))
        for x, y, there in (
            (aligned, apart, ["x"]),
            (apart, aligned.T, []),
            (aligned, aligned, ["x", "y"]),
        ):
            np.testing.assert_allclose(compiled(x, y), x @ y, rtol=1e-4, atol=1e-4)
            found = read_there(compiled._program)
            # A copy of ours, of what is not in order, lies as it happens.
            assert set(there) <= set(found) and ("x" in found) == (x is aligned)
