# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the PyTorch importer makes of steps: names, loops for look-ups, errors."""

import os
import re
import threading

import pytest

import torch_support as support
from baechi.importer.common.errors import ImportFailure, UnsupportedOperations
from baechi.importer.torch import decompositions, elements, names, passes, trace
from torch_support import F, baechi, nn, seeded, torch  # noqa: F401


def lower(model, loss, *batch):
    return support.compile_step(model, loss, support.sgd(model.parameters())).lower(*batch)


def test_names_of_arguments_and_operators():
    text = lower(support.Words(layers=1), support.token_loss, *support.tokens())
    for name in ("embedding.weight", "encoder.layers.0.linear1.weight/momentum_buffer", "tokens"):
        assert f'baechi.name = "{name}"' in text
    for name in (
        "encoder.layers.0.linear1/mm",
        "backward/encoder.layers.0.linear1/mm",
        "update/encoder.layers.0.linear1.weight/sub",
        "loss/exp",
        "backward/loss/",
    ):
        assert f'loc("{name}' in text


def test_embeddings_are_looked_up_and_added_up_by_row():
    # A one-hot product would have a matrix of 12 tokens by 20 words.
    text = lower(support.Words(layers=1), support.token_loss, *support.tokens(length=7))
    assert "scf.for" in text and "tensor.extract " in text
    body = text[text.index("func.func") :]
    assert "tensor<14x20xf32>, tensor<14x16xf32>" not in body
    # Out of bounds is never read.
    assert "arith.minsi" in body and "cf.assert" not in body


def test_all_unsupported_operations_are_reported_at_once():
    class Inner(nn.Module):
        def forward(self, x):
            values, _ = torch.mode(x, -1)
            return values.sum()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.inner = Inner()

        def forward(self, x):
            h = self.linear(x)
            return self.inner(h) + torch.linalg.svd(h)[1].sum()

    with pytest.raises(UnsupportedOperations) as caught:
        lower(Model(), None, torch.randn(4, 4))
    message = str(caught.value)
    assert "aten.mode.default in 'inner/mode'" in message
    assert "aten._linalg_svd.default in 'linalg_svd'" in message
    assert message.count("test_torch_import.py:") >= 2
    assert "docs/torch.md" in message


def test_what_depends_on_values_hides_no_other_operation(monkeypatch):
    """Nor does what a decomposition cannot take."""

    def unknown(*_):
        raise decompositions.UnknownForm("a form that is not known")

    monkeypatch.setitem(elements.TABLE, torch.ops.aten.roll.default, unknown)

    class Inner(nn.Module):
        def forward(self, x):
            return x[x > 0].sum() * x.max().item()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(4, 4)
            self.inner = Inner()

        def forward(self, tokens):
            h = self.table(tokens).roll(1)
            inverse = torch.linalg.inv(h @ h.T)
            number = inverse.sum().tolist()
            if self.inner(h) > 0:
                raise AssertionError("a condition on values does not hold")
            return self.inner(h) + torch.linalg.svd(h)[1].sum() * number + inverse.sum()

    with pytest.raises(UnsupportedOperations) as caught:
        lower(Model(), None, torch.tensor([0, 1, 2, 3]))
    found = {(each.operation, each.scope) for each in caught.value.operations}
    assert {
        ("aten.index.Tensor", "inner/index"),
        ("aten._local_scalar_dense.default", "inner/local_scalar_dense"),
        ("aten._local_scalar_dense.default", "local_scalar_dense"),
        ("aten.linalg_inv_ex.default", "linalg_inv_ex"),
        ("aten._linalg_svd.default", "linalg_svd"),
        ("aten.roll.default", "roll"),
    } <= found
    lines = str(caught.value).splitlines()
    assert all("test_torch_import.py:" in line for line in lines[1:-2])
    assert "aten.roll.default in 'roll': a form that is not known" in str(caught.value)
    assert "a step must have fixed shapes" in lines[-2]


def test_a_trace_that_ends_where_values_are_needed():
    """What was found before is reported, and where it ended."""

    class Model(Linear):
        def forward(self, x):
            h = self.linear(x)
            found = torch.linalg.svd(h)[1].sum()
            for step in range(1, 3):
                if h[h > step].shape != (step,):
                    raise ValueError("others")
            return found

    with pytest.raises(UnsupportedOperations) as caught:
        lower(Model(), None, torch.randn(4, 4))
    message = str(caught.value)
    assert "aten.index.Tensor in 'index'" in message and "aten._linalg_svd.default" in message
    assert re.search(r"What follows was not looked at \(.*test_torch_import\.py:\d+\)", message)


def test_tensors_as_arrays_are_an_error_with_their_line():
    class Model(Linear):
        def forward(self, x):
            return self.linear(x).sum() * float(x.numpy()[0, 0])

    with pytest.raises(ImportFailure, match=r"test_torch_import\.py:\d+: Tensor\.numpy: .*fixed"):
        lower(Model(), None, torch.randn(4, 4))


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)


def test_control_flow_on_values_is_an_error_with_its_line():
    class Model(Linear):
        def forward(self, x):
            h = self.linear(x)
            return h.sum() if h.sum() > 0 else h.mean()

    with pytest.raises(ImportFailure, match=r"(?s)_import\.py:\d+.*must have fixed shapes"):
        lower(Model(), None, torch.randn(4, 4))


def test_a_loss_that_is_no_number():
    class Model(Linear):
        def forward(self, x):
            return self.linear(x)

    with pytest.raises(ImportFailure, match=r"not of shape \[4, 4\]"):
        lower(Model(), None, torch.randn(4, 4))


def test_a_loss_without_parameters():
    class Model(Linear):
        def forward(self, x):
            return x.sum()

    with pytest.raises(ImportFailure, match="depends on no parameter"):
        lower(Model(), None, torch.randn(4, 4))


def test_optimizers_that_are_not_known():
    model = Linear()
    with pytest.raises(baechi.torch.UnsupportedOptimizer, match="known: SGD, Adam, AdamW"):
        baechi.torch.compile_step(model, None, torch.optim.LBFGS(model.parameters()))
    with pytest.raises(baechi.torch.UnsupportedOptimizer, match="2 parameters that the model"):
        baechi.torch.compile_step(model, None, torch.optim.SGD(Linear().parameters()))
    sparse = nn.Embedding(4, 4, sparse=True)
    with pytest.raises(baechi.torch.UnsupportedOptimizer, match="sparse gradients"):
        baechi.torch.compile_step(sparse, None, torch.optim.SGD(sparse.parameters()))
    held = nn.Linear(4, 4)
    held.register_buffer("adjacent", torch.eye(4).to_sparse())
    with pytest.raises(ValueError, match=r"'adjacent' is sparse.*to_dense"):
        baechi.torch.compile_step(held, None, torch.optim.SGD(held.parameters()))


def test_calls_without_a_target():
    model = support.Mlp()
    step = support.compile_step(model, F.cross_entropy, support.sgd(model.parameters()))
    with pytest.raises(TypeError, match="then the target: missing the last argument, the target"):
        step(torch.randn(8, 16))


def test_tensors_that_a_model_holds_are_arguments():
    class Model(Linear):
        def __init__(self):
            super().__init__()
            self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

        def forward(self, x):
            return (self.linear(x) * self.scale).sum()

    text = lower(Model(), None, torch.randn(4, 4))
    assert 'baechi.name = "constant/0"' in text and "dense_resource" not in text


FUNCTION = "func.func @f(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {"
UNCHANGED = f"{FUNCTION} return %x : !torch.vtensor<[2],f32> }}"


def test_the_process_of_the_passes_may_be_there_before():
    """It is taken once; one that has ended is not."""
    passes.prepare()
    process, _ = passes._waiting
    assert not passes.lower([UNCHANGED])[0].problems
    assert process.returncode == 0 and passes._waiting is None
    passes.prepare()
    ended, _ = passes._waiting
    ended.kill()
    ended.wait()
    assert not passes.lower([UNCHANGED])[0].problems


def test_a_fork_that_lives_on_does_not_keep_the_process_from_its_end():
    """It has the other end of the process's input, too."""
    passes.prepare()
    process, _ = passes._waiting
    reads, writes = os.pipe()
    fork = os.fork()
    if fork == 0:
        os.close(writes)
        os.read(reads, 1)  # until the test has ended
        os._exit(0)
    waits_no_longer = threading.Timer(60, process.kill)
    waits_no_longer.start()
    try:
        assert not passes.lower([UNCHANGED])[0].problems
        assert process.returncode == 0
    finally:
        waits_no_longer.cancel()
        os.close(writes), os.close(reads)
        os.waitpid(fork, 0)


def test_a_graph_that_computes_nothing_leaves_no_process():
    x = torch.randn(3, requires_grad=True)
    kept = torch.compile(lambda x: (x.detach(), x), backend="baechi")(x)
    assert all((each == x).all() for each in kept) and passes._waiting is None


def test_a_trace_that_fails_leaves_no_process(monkeypatch):
    started, prepare = [], passes.prepare

    def noted():
        prepare()
        started.append(passes._waiting[0])

    monkeypatch.setattr(passes, "prepare", noted)

    def function(x):
        raise RuntimeError("not traced")

    recorder = names.Recorder(None)
    with pytest.raises(RuntimeError, match="not traced"):
        trace.trace(function, [torch.randn(2)], ["x"], recorder)
    (process,) = started
    assert process.returncode is not None and passes._waiting is None


def test_passes_that_take_too_much_memory(monkeypatch):
    """An error, as for those that end by themselves; the machine stays usable."""
    assert not passes.lower([UNCHANGED])[0].problems
    limited = passes._PROGRAM.replace(
        "serve(", "passes._MEMORY_SHARE = 1e-5; passes.serve("
    ).replace(
        "from baechi.importer.torch.passes import serve", "from baechi.importer.torch import passes"
    )
    monkeypatch.setattr(passes, "_PROGRAM", limited)
    assert passes.lower([UNCHANGED])[0].problems == ["torch-mlir ended with: MemoryError"]


def test_an_error_in_a_model_without_a_loss_is_its_own():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x, y):
            raise ValueError("call begin() first")

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = baechi.torch.compile_step(model, None, optimizer, machine="host:1")
    with pytest.raises(ImportFailure, match="call begin"):
        step(torch.ones(2, 3), torch.ones(1))
