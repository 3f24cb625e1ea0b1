# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="baechi")` infers as PyTorch does."""

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


def test_names_reports_and_resident_parameters():
    model, (x, _) = support.Mlp(), support.vectors()
    compiled = compile_model(model, machine="host:2", pin={"second*": "host1"})
    with torch.inference_mode():
        compiled(x)
        graph = baechi.torch.graphs()[-1]
        assert graph.placement["second.weight"] == graph.placement["second/mm"] == "host1"
        assert "predicted" in graph.report() and "func.func @step" in graph.lower()
        moved, library = [], graph._called().library
        set_argument = library.set_argument
        library.set_argument = lambda i, value: (moved.append(i), set_argument(i, value))
        compiled(x)
        assert len(moved) == 1  # the input
        model.second.weight.mul_(2)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        assert len(moved) == 3


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
    model, (x, _) = support.Mlp(), support.vectors()
    with pytest.raises(Exception, match=r"computes no gradients.*torch\.no_grad"):
        compile_model(model)(x)
    with torch.no_grad():
        with pytest.raises(Exception, match="no option 'machines'; known: machine, placer"):
            compile_model(model, machines="host:2")(x)
        norm = compile_model(nn.Sequential(nn.BatchNorm1d(4)))
        norm.train()
        with pytest.raises(
            Exception, match=r"changes '0.(running_mean|num_batches_tracked)' in place.*model\.eval"
        ):
            norm(torch.randn(3, 4))
        with pytest.raises(baechi.torch.ImportFailure, match="aten.mode.default in 'mode'"):
            compile_model(_Unsupported())(torch.randn(3, 4))


class _Unsupported(nn.Module):
    def forward(self, x):
        return torch.mode(x, -1)[0] + 1
