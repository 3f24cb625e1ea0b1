# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training loops that run twice, compiled and eagerly, for tests."""

import copy

from torch_support import F, baechi, nn, torch

OPTIONS = {"costs": "roofline", "budget": "0", "machine": "host:2"}


def compiled(function, **options):
    return torch.compile(function, backend="baechi", options={**OPTIONS, **options})


def assert_equal_loops(loop, *models, rtol=1e-4, atol=1e-6):
    """`loop(wrap, *models)` yields values; with `wrap` compiling a module or function and
    with it doing nothing they are equal, and so are the models' states afterwards."""
    torch._dynamo.reset()
    found = []
    for wrap in (compiled, lambda function: function):
        own = copy.deepcopy(models)
        torch.manual_seed(7)
        values = [copy.deepcopy(value) for value in loop(wrap, *own)]
        found.append((values, [model.state_dict() for model in own], torch.rand(3)))
    before = len(baechi.torch.graphs())
    torch.testing.assert_close(found[0], found[1], rtol=rtol, atol=atol)
    assert before  # the models were compiled


def sgd(*models, lr=0.1, **options):
    parameters = [p for model in models for p in model.parameters() if p.requires_grad]
    return torch.optim.SGD(parameters, lr=lr, **options)


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))


def batches(count, rows=5, width=6, classes=3):
    made = torch.Generator().manual_seed(3)
    for _ in range(count):
        x = torch.randn(rows, width, generator=made)
        yield x, torch.randint(0, classes, (rows,), generator=made)


def plainly(steps):
    """A loop that trains a classifier."""

    def loop(wrap, model):
        net, optimizer = wrap(model), sgd(model)
        for x, y in batches(steps):
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    return loop
