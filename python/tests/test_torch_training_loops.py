# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ordinary training loops over `torch.compile(model, backend="baechi")` are eager ones."""

import dataclasses

import torch_support as support
from torch_support import F, nn, seeded, torch  # noqa: F401
from training_loops import assert_equal_loops, batches, mlp, plainly, sgd

pytestmark = support.needs_tools


def test_batch_normalization_and_dropout():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(16, 3),
    )

    def loop(wrap, model):
        net = wrap(model)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for i in range(4):
            loss = F.cross_entropy(net(torch.randn(4, 3, 10, 10)), torch.tensor([0, 1, 2, i % 3]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()
        model.eval()
        yield net(torch.ones(2, 3, 10, 10)).detach()

    assert_equal_loops(loop, model)


def test_clipping_accumulation_schedule_and_weight_decay():
    def loop(wrap, model):
        net, optimizer = wrap(model), sgd(model, momentum=0.9, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
        for i, (x, y) in enumerate(batches(6)):
            loss = F.cross_entropy(net(x), y) / 2
            loss.backward()
            yield loss.item()
            if i % 2:
                yield nn.utils.clip_grad_norm_(model.parameters(), 0.2).item()
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()

    assert_equal_loops(loop, mlp())


def test_hooks_frozen_parts_and_data_writes():
    def loop(wrap, model):
        model[0].weight.requires_grad_(False)
        seen = []
        model[3].weight.register_hook(lambda grad: grad * 0.5)
        model[0].bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum()))
        net, optimizer = wrap(model), sgd(model)
        for x, y in batches(4):
            loss = F.cross_entropy(net(x), y) + 0.1 * model[3].weight.square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for parameter in model.parameters():
                parameter.data.clamp_(-0.2, 0.2)  # shows in no version counter
            model[0].weight.detach().numpy()[0] += 0.01
            yield loss.item()
            yield model[0].weight.grad is None
        yield seen

    assert_equal_loops(loop, mlp())


def test_moving_average_and_eager_calls():
    def loop(wrap, model, average):
        net, smooth, optimizer = wrap(model), wrap(average), sgd(model)
        for x, y in batches(3):
            loss = F.cross_entropy(net(x), y) + F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for old, new in zip(average.parameters(), model.parameters(), strict=True):
                old.data.mul_(0.9).add_(new.data, alpha=0.1)
            with torch.no_grad():
                yield smooth(x)

    assert_equal_loops(loop, mlp(), mlp().eval())


def test_adversarial_pair():
    def loop(wrap, made, judge):
        make, score = wrap(made), wrap(judge)
        first, second = sgd(made), torch.optim.RMSprop(judge.parameters(), 1e-3)
        for x, _ in batches(3, width=4):
            fake = make(torch.randn(5, 2))
            critic = score(fake.detach()).mean() - score(x).mean()
            second.zero_grad()
            critic.backward()
            second.step()
            for parameter in judge.parameters():
                parameter.data.clamp_(-0.05, 0.05)
            loss = -score(make(torch.randn(5, 2))).mean()
            first.zero_grad()
            loss.backward()
            first.step()
            yield critic.item(), loss.item()

    made = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 4))
    judge = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    assert_equal_loops(loop, made, judge)


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    parts: dict


class Structured(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, target, scale=1.0, masked=None):
        self.calls += 1
        scores = self.inner(x) * scale
        if masked is not None:
            scores = scores.masked_fill(masked, -1.0)
        loss = F.cross_entropy(scores, target)
        return Output(loss, {"scores": scores, "again": scores, "rows": x.shape[0], "x": x})


def test_structures_shapes_numbers_and_masks():
    def loop(wrap, model):
        net, optimizer = wrap(model), sgd(model)
        for i, rows in enumerate((5, 4, 4, 7)):
            x, y = next(batches(1, rows))
            output = net(x, y, scale=1.0 + i, masked=x[:, :3] > 1 if i % 2 else None)
            assert output.parts["x"] is x and output.parts["rows"] == rows
            optimizer.zero_grad()
            (output.loss + output.parts["again"].mean()).backward()
            optimizer.step()
            yield output.loss.detach(), output.parts["scores"].detach(), model.calls

    assert_equal_loops(loop, Structured())


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens, padding):
        size = tokens.shape[1]
        causal = torch.triu(torch.ones(size, size, dtype=torch.bool), 1)
        hidden = self.encoder(self.embedding(tokens), causal, src_key_padding_mask=padding)
        return self.head(hidden)


def test_transformer_with_masks():
    def loop(wrap, model):
        net, optimizer = wrap(model), sgd(model)
        for _ in range(3):
            tokens = torch.randint(0, 11, (2, 6))
            padding = torch.arange(6) >= torch.tensor([[6], [4]])
            scores = net(tokens, padding)
            loss = F.cross_entropy(scores.flatten(0, 1), tokens.flatten(), ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    assert_equal_loops(loop, Attention())


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(mlp() for _ in range(2))

    def forward(self, x):
        for part in self.parts:
            x = F.pad(torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False), (0, 3))
        return x[:, :3]


def test_checkpoints():
    assert_equal_loops(plainly(3), Checkpointed())


def test_recurrent_network_and_state_across_calls():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(6, 4)
            self.head = nn.Linear(4, 3)

        def forward(self, x, state):
            hidden, kept = self.cell(x, state)
            return self.head(hidden), (hidden, kept)

    def loop(wrap, model):
        net, optimizer = wrap(model), sgd(model)
        state, loss = (torch.zeros(5, 4), torch.zeros(5, 4)), 0.0
        for x, y in batches(4):  # one backward pass through all
            scores, state = net(x, state)
            loss = loss + F.cross_entropy(scores, y)
        loss.backward(retain_graph=True)
        yield loss.item(), model.cell.weight_hh.grad.clone()
        loss.backward()
        optimizer.step()
        yield model.cell.weight_hh.grad

    assert_equal_loops(loop, Cell())


def test_batches_without_elements():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LayerNorm(36),
        nn.Linear(36, 2),
    )

    def loop(wrap, model):
        net, optimizer = wrap(model), sgd(model, weight_decay=0.1)
        for rows in (2, 0):
            out = net(torch.randn(rows, 3, 8, 8))
            optimizer.zero_grad()
            out.sum().backward()
            optimizer.step()
            yield (
                out.detach(),
                out.mean().item() if rows else 0,
                [p.grad for p in model.parameters()],
            )

    assert_equal_loops(loop, model)


def test_normalized_weights():
    from torch.nn.utils import parametrizations

    loop = plainly(3)

    first = parametrizations.weight_norm(nn.Linear(6, 4), dim=1)
    second = parametrizations.spectral_norm(nn.Linear(4, 3))
    assert_equal_loops(loop, nn.Sequential(first, nn.Tanh(), second))


class Cached(nn.Module):
    """Keys and values of earlier calls in buffers of one shape."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 12)
        self.register_buffer("keys", torch.zeros(2, 8, 4))
        self.register_buffer("values", torch.zeros(2, 8, 4))

    def forward(self, x, position):
        query, key, value = self.project(x).split(4, -1)
        self.keys.index_copy_(1, position, key)
        self.values[:, position] = value
        allowed = torch.arange(8) <= position.unsqueeze(-1)
        return F.scaled_dot_product_attention(query, self.keys, self.values, allowed)


def test_static_caches():
    def loop(wrap, model):
        net = wrap(model.eval())
        with torch.no_grad():
            yield net(torch.randn(2, 3, 4), torch.arange(3))
            for i in range(3, 6):
                yield net(torch.randn(2, 1, 4), torch.tensor([i])), model.keys

    assert_equal_loops(loop, Cached())
