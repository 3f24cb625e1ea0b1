# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that are more than modules of Python, or less: by torch.compile, by torch.jit,
in wrappers."""

import pytest

import torch_support as support
from torch_support import F, nn, torch

pytestmark = support.needs_tools


def test_models_that_are_none_of_python():
    whole = nn.Sequential(torch.jit.script(nn.Linear(4, 4)), nn.ReLU())
    traced = torch.jit.trace(nn.Linear(4, 4), torch.ones(2, 4))
    cases = (
        (lambda x: x, "the model is a function: give a torch.nn.Module"),
        (whole, "the model's '0' is scripted or traced by torch.jit: give the module"),
        (traced, "the model is scripted or traced by torch.jit"),
        (nn.DataParallel(nn.Linear(4, 4)), "the model is a DataParallel, .* give its .module"),
    )
    optimizer = support.sgd(nn.Linear(4, 4).parameters())
    for model, told in cases:
        with pytest.raises(TypeError, match=told):
            support.compile_step(model, F.mse_loss, optimizer)
    for options in ({"loss": "mse"}, {"loss": F.mse_loss, "outputs": "x"}):
        with pytest.raises(TypeError, match="give a function of what the model returns"):
            support.compile_step(nn.Linear(4, 4), options.pop("loss"), optimizer, **options)


def test_what_torch_compile_has_made_is_part_of_the_step():
    """It is traced as the Python that it was made of."""

    @torch.compile
    def gate(x):
        return torch.tanh(x) * torch.sigmoid(x)

    class Gated(support.Mlp):
        def forward(self, x):
            return super().forward(gate(x))

    def whole(model):
        return torch.compile(model)

    def in_place(model):
        model.compile()
        return model

    x, y = support.vectors()
    losses = []
    for made, loss in (
        (whole, F.cross_entropy),
        (in_place, F.cross_entropy),
        (lambda model: model, torch.compile(F.cross_entropy)),
        (lambda model: torch.compile(model, backend="eager"), F.cross_entropy),
    ):
        torch.manual_seed(5)
        model = made(Gated())
        step = support.compile_step(model, loss, support.sgd(model.parameters()))
        losses.append([float(step(x, y)) for _ in range(3)])
    torch.manual_seed(5)
    model = Gated()
    optimizer, expected = support.sgd(model.parameters()), []
    with torch.compiler.set_stance("force_eager"):
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            expected.append(loss.item())
    for found in losses:
        assert found == pytest.approx(expected, rel=1e-5)
