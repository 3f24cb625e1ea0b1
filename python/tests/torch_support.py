# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of the PyTorch front end share; importing it skips without PyTorch."""

from __future__ import annotations

import copy

import pytest

import needs

_REASON = "PyTorch and torch-mlir are not installed; run scripts/torch-env"
torch = pytest.importorskip("torch", reason=_REASON, exc_type=ImportError)
pytest.importorskip("torch_mlir", reason=_REASON)

import baechi.torch  # noqa: E402

nn, F = torch.nn, torch.nn.functional


needs_tools = needs.tool("baechi-run")


def compile_step(model, loss, optimizer, **options):
    defaults = {"costs": "roofline", "budget": "0"}
    return baechi.torch.compile_step(model, loss, optimizer, **{**defaults, **options})


class Pair:
    """A model with its compiled step, and the same model trained eagerly."""

    def __init__(self, model, make_optimizer, loss=F.cross_entropy, **options):
        self.model, self.eager = model, copy.deepcopy(model)
        self.optimizer = make_optimizer(self.model.parameters())
        self.eager_optimizer = make_optimizer(self.eager.parameters())
        self.loss = loss
        self.step = compile_step(self.model, loss, self.optimizer, **options)

    def train(self, steps, *batch, rtol=1e-4):
        """Both for some steps; asserts that the losses are equal."""
        *inputs, target = batch
        for number in range(steps):
            ours = self.step(*batch)
            theirs = self.eager_loss(inputs, target)
            self.eager_optimizer.zero_grad()
            theirs.backward()
            self.eager_optimizer.step()
            assert ours.item() == pytest.approx(theirs.item(), rel=rtol), f"step {number}"

    def eager_loss(self, inputs, target):
        return self.loss(self.eager(*inputs), target)

    def assert_same_state(self, rtol=1e-4):
        ours, theirs = self.step.state_dict(), self.eager.state_dict()
        for name, expected in theirs.items():
            scale = max(expected.abs().max().item(), 1e-3)
            error = (ours["model"][name] - expected).abs().max().item()
            assert error <= rtol * scale, f"{name}: error {error} at scale {scale}"


class Mlp(nn.Module):
    def __init__(self, inputs=16, hidden=32, classes=10):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(F.gelu(self.second(F.relu(self.first(x)))))


class Words(nn.Module):
    """A token classifier around PyTorch's own encoder layer."""

    def __init__(self, vocabulary=20, hidden=16, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden, padding_idx=0)
        layer = nn.TransformerEncoderLayer(hidden, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2)
        self.middle = nn.Conv2d(8, 6, 3, padding=1)
        self.head = nn.Linear(14, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.stem(x))))
        x = torch.cat([self.middle(x), F.avg_pool2d(x, 3, 1, 1)], 1)
        return self.head(x.mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self, features=6, hidden=8):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def token_loss(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def images(batch=2):
    return torch.randn(batch, 3, 16, 16), torch.randint(0, 10, (batch,))


def vectors(batch=8):
    return torch.randn(batch, 16), torch.randint(0, 10, (batch,))


def tokens(batch=2, length=6):
    return torch.randint(0, 20, (batch, length)), torch.randint(0, 20, (batch, length))
