# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of torch.compile whose tensors lie in a GPU's memory, on the fake driver. PyTorch makes no
gradients of such tensors without a real one, so backward programs are called as it would."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from baechi.checking.options import CheckOptions  # noqa: E402
from baechi.importer.common.errors import ImportFailure  # noqa: E402
from baechi.steps.program import CompileOptions  # noqa: E402
from baechi.torch import gpu  # noqa: E402
from baechi.torch.backend import CompiledGraph, _Differentiable  # noqa: E402
from baechi.torch.captured import OnGpu  # noqa: E402
from test_dlpack import FAKE, RUN  # noqa: E402
from test_torch_gpu import MIXED, on_the_fake  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not RUN.exists(), reason=f"{RUN} is not built"),
    pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built"),
]
GPU = torch.device("cuda:0")


def changes(x, weight, seen):
    """In place; views of inputs; what names its device."""
    seen.add_(1)
    made = x.new_zeros(3, device="cuda:0") + x.cuda()[0, :3]
    return x @ weight, torch.tanh(x).sum() + seen, x.t(), made


def options(folder, **pins):
    (file := folder / "machine.json").write_text(json.dumps(MIXED))
    # The fake computes products alone.
    pin = {"x": "cuda0", "weight": "cuda0", "mm": "cuda0", **pins}
    return CompileOptions(machine=str(file), costs="roofline", budget="0", pin=pin)


def runs(folder):
    """In a process of its own."""
    from gpu_tensors import Factories, GpuTensor, noted_moves, on_gpu, without_a_driver

    without_a_driver()
    host = dict.fromkeys(["seen", "add*", "sum", "permute"], "host0")
    graph = CompiledGraph(torch.fx.symbolic_trace(changes), options(folder, **host))
    torch.manual_seed(0)
    x, weight, seen = torch.randn(5, 8), torch.randn(8, 4), torch.zeros(())
    given = [on_gpu(each) for each in (x, weight, seen)]
    moved = noted_moves()
    for _ in range(3):
        with Factories(), torch.no_grad():
            found = graph.run(*given)
        expected = changes_on_cpu(x, weight, seen)
        assert all(isinstance(each, GpuTensor) for each in found)
        for ours, theirs in zip([*found, given[2]], [*expected, seen], strict=True):
            torch.testing.assert_close(ours.cpu(), theirs)
    # What is given, and the product, is not moved through the host.
    assert {function for function, _ in moved} == {"get_result"}
    product = graph._latest.library.program["results"]
    on_gpu_names = {r["name"] for r in product if r["device"] == 0}
    assert on_gpu_names and not on_gpu_names & {name for _, name in moved}


def changes_on_cpu(x, weight, seen):
    seen.add_(1)
    return x @ weight, torch.tanh(x).sum() + seen, x.t(), x[0, :3]


def backward(folder):
    """In a process of its own."""
    from gpu_tensors import Factories, GpuTensor, on_gpu, without_a_driver

    without_a_driver()
    module = torch.fx.symbolic_trace(lambda x, weight: x @ weight)
    torch.manual_seed(0)
    x, weight = torch.randn(5, 8), torch.randn(8, 4, requires_grad=True)
    pins = {"backward/*": "cuda0", "saved/*": "cuda0"}
    form = module, [x, weight], ["x", "weight"], set()
    graph = _Differentiable(*form, options(folder, **pins), CheckOptions(), GPU)
    graph._trace_on_cpu([x, weight])
    tangent = torch.randn(5, 4)
    with Factories(), torch.no_grad():
        product, *saved = graph.forward.run([on_gpu(x), on_gpu(weight)])
        (gradient,) = [
            each for each in graph.backward.run([*saved, on_gpu(tangent)]) if each is not None
        ]
    assert isinstance(gradient, GpuTensor)
    expected = x @ weight
    torch.testing.assert_close(product.cpu(), expected.detach())
    expected.backward(tangent)
    torch.testing.assert_close(gradient.cpu(), weight.grad)


def refuses(folder):
    """In a process of its own."""
    from gpu_tensors import Factories, on_gpu, without_a_driver

    without_a_driver()
    module = torch.fx.symbolic_trace(lambda x, weight: x @ weight)
    x, weight = torch.randn(5, 8), torch.randn(8, 4)
    given = on_gpu(x), on_gpu(weight)
    graph = CompiledGraph(module, CompileOptions(machine="host:1", costs="roofline", budget="0"))
    with Factories(), torch.no_grad():
        with pytest.raises(ValueError, match="'x' is on cpu and 'weight' on cuda:0: move all to"):
            graph.run(x, given[1])
        for _ in range(2):
            with pytest.raises(ValueError, match=r"cuda:0, and the machine has no GPU \(host0\)"):
                graph.run(*given)
        torch.set_autocast_enabled("cuda", True)
        with pytest.raises(RuntimeError, match="compiled for tensors on cuda:0 was called under"):
            graph.run(*given)
        torch.set_autocast_enabled("cuda", False)
        checked = CompiledGraph(module, options(folder), False, CheckOptions("first"))
        with pytest.raises(ValueError, match="check= compares with eager PyTorch on the CPU"):
            checked.run(*given)


def test_graphs_run_with_tensors_on_a_gpu(tmp_path):
    on_the_fake(f"runs(pathlib.Path({str(tmp_path)!r}))", module="test_torch_gpu_graphs")


def test_gradients_of_tensors_on_a_gpu_are_computed_there(tmp_path):
    on_the_fake(f"backward(pathlib.Path({str(tmp_path)!r}))", module="test_torch_gpu_graphs")


def test_what_does_not_go_with_tensors_on_a_gpu_is_refused(tmp_path):
    on_the_fake(f"refuses(pathlib.Path({str(tmp_path)!r}))", module="test_torch_gpu_graphs")


def test_what_is_changed_in_place_shares_its_memory_with_no_other_input():
    whole = torch.zeros(6)
    parts, names = [whole[:3], whole[3:], torch.zeros(3)], ["first", "last", "other"]
    gpu.refuse_shared(names, parts, {2})
    with pytest.raises(ImportFailure, match="'last' is changed in place and shares its memory"):
        gpu.refuse_shared(names, parts, {1})


def test_graphs_that_a_trace_on_the_cpu_does_not_show_are_refused():
    enters = torch.fx.Graph()
    x = enters.placeholder("x")
    enters.call_function(
        torch.amp.autocast_mode._enter_autocast, ("cuda", torch.bfloat16, True, True)
    )
    enters.output((x,))
    with pytest.raises(ImportFailure, match=r"on cuda:0 and enters torch.autocast"):
        gpu.refuse_graph(GPU, enters)
    gpu.refuse_graph(torch.device("cpu"), enters)
    moves = torch.fx.Graph()
    x = moves.placeholder("x")
    y = moves.call_method("cpu", (x,))
    x.meta["example_value"] = torch.zeros(2, device="meta")
    y.meta["example_value"] = torch.zeros(2)
    moves.output((y,))
    with pytest.raises(ImportFailure, match=r"is on cuda:0 and gives 'cpu' on cpu: move it there"):
        gpu.refuse_graph(GPU, moves)


@pytest.mark.parametrize("moves", [True, False])
def test_what_is_moved_to_the_cpu_is_a_copy(moves):
    """And is changed alone; what was there already is itself."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_method("cpu", (x,))
    graph.call_method("add_", (y, 1))
    graph.output((x, y))
    x.meta["example_value"] = torch.zeros(2, device="meta" if moves else "cpu")
    y.meta["example_value"] = torch.zeros(2)
    x, y = OnGpu(torch.fx.GraphModule({}, graph)).run(torch.zeros(2))
    assert (x.tolist(), y.tolist()) == ([0.0 if moves else 1.0] * 2, [1.0, 1.0])


def test_stand_ins_are_of_no_gpu():
    names = [torch.device("cuda:0"), "cuda", "cuda:1", "cuda0"]
    assert gpu.on_cpu({"device": names, "dtype": torch.float32}) == {
        "device": [torch.device("cpu"), "cpu", "cpu", "cuda0"],
        "dtype": torch.float32,
    }
