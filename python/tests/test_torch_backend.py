# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="baechi")` infers as PyTorch does."""

import concurrent.futures

import pytest

import torch_support as support
from torch_support import F, baechi, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools
OPTIONS = {"costs": "roofline", "budget": "0"}


def compile_model(model, **options):
    torch._dynamo.reset()
    return torch.compile(model.eval(), backend="baechi", options={**OPTIONS, **options})


MODELS = {
    "mlp": (support.Mlp, support.vectors),
    "words": (support.Words, support.tokens),
    "convolutions": (support.Convolutions, support.images),
    "recurrent": (support.Recurrent, lambda: (torch.randn(4, 5, 6), None)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_inference_equals_eager(name, machine):
    make, batch = MODELS[name]
    model, x = make(), batch()[0]
    compiled = compile_model(model, machine=machine)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model.eval()(x), rtol=1e-4, atol=1e-5)


def moved(graph, call):
    """Which arguments a call moves."""
    found, library = [], graph._called().library
    step = library.call
    library.call = lambda given, *others: (found.extend(given), step(given, *others))
    try:
        call()
    finally:
        library.call = step
    return found


def test_names_reports_and_held_parameters():
    model, (x, _) = support.Mlp(), support.vectors()
    compiled = compile_model(model, machine="host:2", pin={"second*": "host1"}, weights="held")
    with torch.inference_mode():
        compiled(x)
        graph = baechi.torch.graphs()[-1]
        assert graph.placement["second.weight"] == graph.placement["second/mm"] == "host1"
        assert "predicted" in graph.report() and "func.func @step" in graph.lower()
        assert len(moved(graph, lambda: compiled(x))) == 1  # the input
        model.second.weight.mul_(2)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        model.second.weight.mul_(2)
        assert len(moved(graph, lambda: compiled(x))) == 2


def test_newest_parameters_are_read():
    model, (x, _) = support.Mlp(), support.vectors()
    compiled = compile_model(model)
    with torch.no_grad():
        for write in (
            lambda w: w.data.mul_(2),  # these two show in no version counter
            lambda w: w.detach().numpy().__imul__(2),
            lambda w: w.add_(1),
            lambda w: setattr(w, "data", torch.ones_like(w)),
        ):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
            write(model.second.weight)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


def test_other_shapes_and_structures():
    class Model(nn.Module):
        def forward(self, x, scale=2.0):
            return {"sum": x + x.sum(0) * scale, "same": x, "size": x.shape[0], "twice": (x, x)}

    model = Model()
    compiled = compile_model(model)
    for rows in (2, 3, 4):
        x = torch.randn(rows, 4)
        ours, theirs = compiled(x), model(x)
        assert ours["size"] == rows
        torch.testing.assert_close(ours, theirs)


def test_dropout_in_training_mode():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = torch.randn(3, 4)
    compiled = compile_model(model)
    model.train()
    with torch.no_grad():
        for seed in range(3):
            torch.manual_seed(seed)
            ours = compiled(x)
            torch.manual_seed(seed)
            torch.testing.assert_close(ours, model(x), rtol=1e-4, atol=1e-5)


def test_errors():
    x = torch.randn(3, 4)
    for model in (_Unsupported(), _Unsupported(nn.Linear(4, 4))):
        with pytest.raises(baechi.torch.ImportFailure) as caught:
            compile_model(model)(x)
        said = str(caught.value)
        assert (
            "aten.mode.default in 'inner/mode'" in said and "aten.view_as_real.default in" in said
        )
        assert said.count("test_torch_backend.py:") >= 2
    with torch.no_grad():
        model, (x, _) = support.Mlp(), support.vectors()
        with pytest.raises(Exception, match="no option 'machines'; known: machine, placer"):
            compile_model(model, machines="host:2")(x)
        with pytest.raises(Exception, match="weights='new': known are 'newest' and 'held'"):
            compile_model(model, weights="new")(x)
        with pytest.raises(baechi.torch.CompileError, match="^error: no placement can fit"):
            compile_model(model, machine="host:2@1KiB")(x)
        with pytest.raises(baechi.torch.CompileError, match=r"no operator is called 'third\*'"):
            compile_model(model, machine="host:2", pin={"third*": "host1"})(x)


class _Unsupported(nn.Module):
    def __init__(self, first=None):
        super().__init__()
        self.first, self.inner = first or nn.Identity(), _Mode()

    def forward(self, x):
        return torch.fft.fft(self.inner(self.first(x))).real


class _Mode(nn.Module):
    def forward(self, x):
        return torch.mode(x, -1, keepdim=True)[0] + x


def test_sparse_gradients_are_refused_with_what_to_write():
    embedding = nn.Embedding(10, 4, sparse=True)
    compiled = torch.compile(embedding, backend="baechi", options=OPTIONS)
    with pytest.raises(
        baechi.torch.ImportFailure, match="a sparse tensor; all are dense here: take"
    ):
        compiled(torch.tensor([1, 2, 3])).sum().backward()
    assert embedding.weight.grad is None


def test_packed_sequences_are_refused_with_what_to_write():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.GRU(4, 3, batch_first=True)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return self.inner(packed)[1].sum()

    model = Packed()
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(baechi.torch.ImportFailure, match=r"the padded\s+batch.*lengths - 1"):
        step(torch.randn(2, 5, 4), torch.tensor([5, 3]))


def test_threads_that_compile_at_the_same_time():
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
    compiled = compile_model(model)
    batches = [torch.randn(rows, 5) for rows in (2, 3, 2, 4)]

    def call(x):
        with torch.no_grad():
            return compiled(x)

    compiled(batches[0])  # with gradients; the threads compile anew
    with concurrent.futures.ThreadPoolExecutor(len(batches)) as pool:
        for x, found in zip(batches, pool.map(call, batches), strict=True):
            torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)


def test_nan_is_not_finite():
    def finite(x):
        return torch.isfinite(x), torch.isfinite(x).all(), torch.isnan(x), torch.isinf(x)

    x = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    with torch.no_grad():
        found = torch.compile(finite, backend="baechi", options={**OPTIONS, "machine": "host:1"})(x)
    for ours, theirs in zip(found, finite(x)):
        assert torch.equal(ours, theirs)


class OneHot(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, kinds):
        self.calls += 1
        return self.inner(x) * F.one_hot(kinds, 3)


@pytest.mark.parametrize("kinds", [[0, 3], [-1, 0]])
def test_assertions_are_checked_at_every_call(kinds):
    model, x = OneHot(), torch.randn(2, 4)
    right, wrong = torch.tensor([0, 2]), torch.tensor(kinds)
    with pytest.raises(RuntimeError, match="Class values must be"):
        model(x, wrong)
    compiled = compile_model(model)
    torch.testing.assert_close(compiled(x, right), model(x, right), rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="Class values must be"):
        compiled(x, wrong)
    torch.testing.assert_close(compiled(x, right), model(x, right), rtol=1e-4, atol=1e-5)
    assert model.calls == 5  # the refused call of the compiled model has changed nothing


def test_assertions_in_a_step_are_refused_with_their_place():
    model = OneHot()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = support.compile_step(model, lambda y, _: y.square().mean(), optimizer)
    with pytest.raises(baechi.torch.ImportFailure, match=r"backend\.py:\d+: .*torch\.arange"):
        step(torch.randn(2, 4), torch.tensor([0, 2]), torch.tensor(0.0))


def test_gradients_of_a_sum_over_a_mask():
    """The compiled backward pass returns an expanded tensor."""
    found = []
    for backend in ("eager", "baechi"):
        torch.manual_seed(0)
        layer, x = torch.nn.Linear(6, 6), torch.randn(4, 6)
        loss = torch.compile(lambda layer, x: layer(x)[x > 0].sum(), backend=backend)(layer, x)
        loss.backward()
        found.append([loss.detach(), layer.weight.grad])
    torch.testing.assert_close(*reversed(found))
