# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of many forms train by `baechi.torch.compile_step` as by PyTorch, or are refused."""

import importlib

import pytest

import torch_support as support
from baechi.importer.common.errors import ImportFailure
from torch_support import F, Pair, baechi, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools


def test_dropout_within_attention():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.MultiheadAttention(8, 2, dropout=0.4, batch_first=True)

        def forward(self, x):
            return self.mix(x, x, x, need_weights=False)[0].square().mean()

    model, x = Attention(), torch.randn(2, 5, 8)
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.0))
    for seed in range(3):
        torch.manual_seed(seed)
        found = step(x).item()
        torch.manual_seed(seed)
        assert found == pytest.approx(model(x).item(), rel=1e-5)
    model.eval()
    assert step(x).item() == pytest.approx(model(x).item(), rel=1e-5)


class MaskedAttention(nn.Module):
    """As the library `transformers` has it: a mask by `vmap` over positions, from running
    sums, and a look at the tokens where nothing is compiled."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(20, 16), nn.Linear(16, 48)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens):
        if not torch.compiler.is_compiling() and 0 in tokens[:, [-1, 0]]:
            raise ValueError("padding without a mask")
        sequence = (tokens == 1).cumsum(-1)
        places = torch.arange(tokens.shape[1])

        def allowed(batch, row, column):
            return (column <= row) & (sequence[batch, row] == sequence[batch, column])

        for dims in ((None, None, 0), (None, 0, None), (0, None, None)):
            allowed = torch.vmap(allowed, in_dims=dims)
        mask = allowed(torch.arange(tokens.shape[0]), places, places)
        query, key, value = self.mix(self.embed(tokens)).chunk(3, -1)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.head(mixed).transpose(1, 2)


class Causal(nn.Module):
    """A causal mask below a mode of theirs, through which tracers ask PyTorch, too."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 24)

    def forward(self, x):
        def allowed(batch, head, row, column):
            return column <= row

        places = torch.arange(x.shape[1])
        for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None)):
            allowed = torch.vmap(allowed, in_dims=dims)
        allowed = torch.vmap(allowed, in_dims=(0, None, None, None))
        theirs = importlib.import_module("torch._dynamo._trace_wrapped_higher_order_op")
        with theirs.TransformGetItemToIndex():
            mask = allowed(torch.arange(x.shape[0]), torch.arange(1), places, places)
        query, key, value = self.mix(x[:, None]).chunk(3, -1)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)[:, 0]


class Tripled(torch.autograd.Function):
    """A function whose gradient is another's, with the context in `forward`."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * 3 * x.cos()


def test_functions_of_autograd():
    class Model(support.Mlp):
        def forward(self, x):
            return Tripled.apply(super().forward(x))

    pair = Pair(Model(), support.sgd)
    pair.train(3, *support.vectors())
    pair.assert_same_state()


def test_gradient_penalties():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 10))

        def forward(self, x):
            x = x.detach().requires_grad_()
            found = self.net(x)
            (gradient,) = torch.autograd.grad(found.sum(), x, create_graph=True)
            return found, (gradient.norm(dim=1) - 1).square().mean()

    def loss(found, y):
        return F.cross_entropy(found[0], y) + found[1]

    pair = Pair(Model(), support.adam, loss)
    pair.train(3, *support.vectors())
    pair.assert_same_state(rtol=1e-3)


def test_masks_by_vmap_and_models_that_look_at_values():
    tokens = torch.randint(1, 20, (3, 10))
    pair = Pair(MaskedAttention(), lambda p: torch.optim.SGD(p, lr=0.1))
    pair.train(3, tokens, tokens)
    pair.assert_same_state()
    tokens = torch.randint(1, 20, (3, 10))
    with torch.no_grad():
        options = {"costs": "roofline", "budget": "0"}
        found = torch.compile(pair.eager, backend="baechi", options=options)(tokens)
        torch.testing.assert_close(found, pair.eager(tokens))


def test_a_mask_below_a_mode():
    pair = Pair(Causal(), lambda p: torch.optim.SGD(p, lr=0.1), F.mse_loss)
    pair.train(2, torch.randn(3, 6, 8), torch.randn(3, 6, 8))
    pair.assert_same_state()


@pytest.mark.parametrize("causal", (True, False))
def test_masks_of_transformers_without_a_hint(causal):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.both = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
            mask = nn.Transformer.generate_square_subsequent_mask(5)
            self.register_buffer("mask", mask, persistent=False)

        def forward(self, x, mask):
            return self.both(x, x, src_mask=mask, tgt_mask=self.mask)

    mask = nn.Transformer.generate_square_subsequent_mask(5)
    if not causal:
        mask = mask.T.contiguous()
    pair = Pair(Model(), lambda p: torch.optim.SGD(p, lr=0.1), F.mse_loss)
    pair.train(3, torch.randn(3, 5, 8), mask, torch.randn(3, 5, 8))
    pair.assert_same_state(rtol=1e-3)


def test_depthwise_and_grouped_convolutions():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.Conv2d(16, 16, 5, padding=2, groups=16),
        nn.Hardswish(),
        nn.Conv2d(16, 32, 3, stride=2, groups=16),
        nn.Conv2d(32, 12, 1, groups=2),
        nn.Flatten(),
    )
    pair = Pair(model, lambda p: torch.optim.SGD(p, lr=0.1))
    pair.train(3, torch.randn(4, 3, 16, 16), torch.randint(0, 12, (4,)))
    pair.assert_same_state()


class SharedModule(nn.Module):
    """One embedding that is part of two others, and the weight of a third."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(12, 8)
        self.first, self.second = (nn.Sequential(self.shared, nn.Linear(8, 8)) for _ in "ab")
        self.head = nn.Linear(8, 12, bias=False)
        self.head.weight = self.shared.weight

    def forward(self, tokens):
        return self.head(self.first(tokens) * self.second(tokens)).transpose(1, 2)


def test_a_module_that_is_part_of_two_others():
    pair = Pair(SharedModule(), lambda p: torch.optim.Adam(p, lr=0.05))
    tokens = torch.randint(0, 12, (4, 6))
    pair.train(3, tokens, tokens)
    pair.assert_same_state()
    assert isinstance(pair.model.shared.weight, nn.Parameter)
    assert pair.model.head.weight is pair.model.second[0].weight


def test_operators_of_many_forms():
    """Those of `operators`, and indices from the end."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 3)
            self.table = nn.Parameter(torch.randn(5, 6))
            self.head = nn.Linear(36, 10)

        def forward(self, x, places):
            pooled = F.adaptive_avg_pool2d(self.conv(x), (2, 3)).flatten(1)  # of 6 by 7
            rows = self.table[places - 5].roll(2, 1)
            largest, order = rows.topk(3, 1)
            middle = rows.sort(1)[0][:, 2:5].fmod(0.75) + largest.cumprod(1)
            turned = torch.stack([-rows[..., 1::2], rows[..., ::2]], -1).flatten(1)
            turned[:, 1:3] = pooled[:, :2]
            turned = turned.scatter_add(1, order, middle)
            return self.head(torch.cat([pooled, middle, turned, rows[:, -1:]] + [rows[:, :2]], 1))

    model = Model()
    model.head = nn.Linear(18 + 3 + 6 + 1 + 2, 10)
    batch = torch.randn(4, 2, 8, 9), torch.tensor([0, 3, 3, 1]), torch.randint(0, 10, (4,))
    pair = support.Pair(model, support.sgd)
    pair.train(3, *batch)
    pair.assert_same_state()


@pytest.mark.parametrize("place", [4, -5, 10**9])
def test_indices_of_columns_that_are_out_of_range(place):
    def columns(x, places):
        return x[:, places].sum(0)

    options = {"costs": "roofline", "budget": "0"}
    compiled = torch.compile(columns, backend="baechi", options=options)
    with torch.no_grad():
        right = compiled(torch.ones(3, 4), torch.tensor([1, -4]))
        torch.testing.assert_close(right, torch.full((2,), 3.0))
        with pytest.raises(IndexError, match=f"'places' holds {place}: .* elements -4 to 3"):
            compiled(torch.ones(3, 4), torch.tensor([1, place]))


@pytest.mark.parametrize("by_tensor", [False, True])
def test_columns_that_are_filled(by_tensor):
    """Of index_fill alone negative indices count from the end."""

    def filled(x, places, value):
        return x.index_fill(1, places, value if by_tensor else 2.0)

    options = {"costs": "roofline", "budget": "0"}
    compiled = torch.compile(filled, backend="baechi", options=options)
    x, value = torch.randn(3, 4), torch.tensor(2.0)
    places = torch.tensor([0, -1])
    torch.testing.assert_close(compiled(x, places, value), filled(x, places, value))
    with pytest.raises(IndexError, match="'places' holds -5: .* elements -4 to 3"):
        compiled(x, places - 4, value)


def test_operands_of_two_types_are_refused_with_their_line():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    x, y = support.vectors()
    with pytest.raises(baechi.torch.ImportFailure) as refused:
        step(x.double(), y)
    told = str(refused.value)
    assert "addmm.default in 'first/addmm' has operands of float32 and float64" in told
    assert told.count("addmm.default") == 1 and "torch_support.py" in told


def test_a_batch_without_elements_is_refused():
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = support.compile_step(model, torch.nn.functional.mse_loss, optimizer)
    with pytest.raises(ImportFailure, match=r"a tensor of shape \(0, 8\): there is nothing"):
        step(torch.randn(0, 8), torch.randn(0, 4))
    assert step(torch.randn(2, 8), torch.randn(2, 4)).isfinite()


def test_a_tensor_without_elements_beside_a_batch_is_taken():
    class TakesMore(nn.Linear):
        def forward(self, x, unused):
            return super().forward(x)

    model = TakesMore(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = support.compile_step(model, torch.nn.functional.mse_loss, optimizer)
    x, y = torch.randn(2, 8), torch.randn(2, 4)
    expected = torch.nn.functional.mse_loss(model(x, None), y).item()
    assert step(x, torch.zeros(0), y).item() == pytest.approx(expected, rel=1e-5)


def test_packed_sequences_are_refused_by_name():
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 4), torch.ones(2, 4)])
    model = nn.LSTM(4, 4)
    optimizer = torch.optim.SGD(model.parameters())
    step = support.compile_step(model, lambda y, t: y[0].data.sum(), optimizer)
    for given in (packed, [packed]):
        with pytest.raises(TypeError, match="'input' has a PackedSequence.*pad_packed_sequence"):
            step(given, torch.ones(1))


@pytest.mark.parametrize(
    "sizes", [(3, 1, 0, 1, 2), (2, 1, 2, 1, 2), (3, 2, 1, 2, 3), (3, 2, 1, 1, 1)]
)
def test_transposed_convolutions_with_more_output(sizes):
    """An output padding of a stride and more is right as long as the dilation is larger."""
    kernel, stride, padding, output_padding, dilation = sizes

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(1, 2, 1)
            self.up = nn.ConvTranspose2d(
                2, 3, kernel, stride, padding, output_padding, dilation=dilation
            )

        def forward(self, x):
            return self.up(torch.tanh(self.first(x))).flatten(1)

    pair = Pair(Model(), support.sgd)
    pair.train(3, torch.randn(2, 1, 6, 5), torch.randint(0, 10, (2,)))
    pair.assert_same_state()
