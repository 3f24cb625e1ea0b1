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


def put_more(x, y):
    """PyTorch selects; a program gets what it has selected."""
    z = x * 1
    z[x > 0] += 1
    return z


def put_selected(x, y):
    z, mask = x * 1, x > 0
    z[mask] = (x * y)[mask]
    return z


def put_nothing(x, y):
    z = x * 1
    z[x > 100] *= 2
    return z + y


def put_one(x, y):
    z = x * 1
    z[:, y[0] > 0] = y.sum()
    z[1, y[1] > 0] = 7
    return z


def put_rows(x, y):
    z = x * 1
    z[torch.tensor([True, False, True]), 1:3] = y[:2, :2]
    z[..., None, torch.tensor([True, False, True, True])] = y[:, None, 1:]
    return z


def put_and_add(x, y):
    z = x.index_put([x > 0], y.mean(), accumulate=True)
    return z.index_put_([torch.tensor([False, True, True])], y[1:])


@pytest.mark.parametrize(
    "function", [put_more, put_selected, put_nothing, put_one, put_rows, put_and_add]
)
@pytest.mark.parametrize("gradients", [False, True])
def test_what_is_put_at_the_places_of_a_mask(function, gradients):
    torch.manual_seed(0)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="baechi", options={**OPTIONS, "machine": "host:1"})
    found = []
    given = torch.randn(3, 4), torch.randn(3, 4)
    for each in (function, compiled):
        x, y = (value.clone().requires_grad_(gradients) for value in given)
        result = each(x, y)
        if gradients:
            (result * torch.linspace(0.5, 1.5, 12).reshape(3, 4)).sum().backward()
        found.append([result.detach(), x.grad, y.grad])
    torch.testing.assert_close(found[1], found[0])


def test_values_for_other_than_the_places_of_a_mask():
    def put(x, mask, values):
        y = x * 1
        y[mask] = values
        return y

    torch._dynamo.reset()
    compiled = torch.compile(put, backend="baechi", options={**OPTIONS, "machine": "host:1"})
    mask, values = torch.tensor([True, False, True]), torch.ones(2)
    assert compiled(torch.zeros(3), mask, values).tolist() == [1, 0, 1]
    with pytest.raises(RuntimeError, match=r"places as there are values for them \(2\): give one"):
        compiled(torch.zeros(3), ~mask, values)


def test_values_for_the_places_of_a_mask_in_a_step_are_refused():
    class Put(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x, mask):
            y = self.layer(x)
            y[mask] = torch.ones(2, 4)
            return y.sum()

    model = Put()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = support.compile_step(model, None, optimizer)
    with pytest.raises(baechi.torch.ImportFailure, match=r"backend\.py:\d+: .*torch\.where"):
        step(torch.randn(3, 4), torch.tensor([True, False, True]))
