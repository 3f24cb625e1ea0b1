# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that compile at the same moment: none sees what a tracer does to PyTorch."""

import contextlib
import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import baechi.torch.backend  # noqa: E402
import needs  # noqa: E402

nn = torch.nn
pytestmark = needs.tool("baechi-run")


class Layers(nn.Module):
    """What is followed reads attributes of modules and calls them."""

    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(count)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def compiled(model, backend):
    options = {"machine": "host:1", "costs": "roofline"} if backend == "baechi" else None
    return torch.compile(model, backend=backend, options=options)


@pytest.mark.parametrize("backend", ["aot_eager", "baechi"])
def test_what_compiles_while_another_thread_traces(monkeypatch, backend):
    """The other one begins right within the tracing of the first, and has time to end there."""
    torch._dynamo.reset()
    tracing = baechi.torch.backend.lowerable_operations
    found, errors, threads = {}, [], []

    def other():
        torch.manual_seed(1)
        model, x = Layers(3), torch.ones(2, 4)
        try:
            # Within a tracer's `is_fx_tracing` PyTorch would run it as it is.
            found["other"] = compiled(model, backend)(x), model(x)
        except Exception as error:
            errors.append(error)

    @contextlib.contextmanager
    def traced():
        with tracing():
            if not threads:
                threads.append(threading.Thread(target=other))
                threads[0].start()
                threads[0].join(2)
            yield

    monkeypatch.setattr(baechi.torch.backend, "lowerable_operations", traced)
    model, x = Layers(2), torch.ones(3, 4)
    found["first"] = compiled(model, "baechi")(x), model(x)
    threads[0].join()
    assert errors == []
    for ours, expected in found.values():
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_a_step_that_calls_what_torch_compiles_waits_for_no_thread_in_a_circle():
    """Two threads: one compiles a step, the other a graph; each takes both locks."""
    torch._dynamo.reset()
    both = threading.Barrier(2)
    errors = []

    def step():
        model = Layers(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        made = baechi.torch.compile_step(
            model, nn.functional.mse_loss, optimizer, machine="host:1", costs="roofline"
        )
        both.wait()
        made(torch.ones(2, 4), torch.zeros(2, 4))

    def graph():
        made = compiled(Layers(2), "baechi")
        both.wait()
        made(torch.ones(2, 4)).sum().backward()

    def kept(work):
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=kept, args=(w,), daemon=True) for w in (step, graph)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
