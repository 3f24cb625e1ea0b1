# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a long first call tells of itself, and to whom."""

import io
import re
import sys
import threading

import numpy as np
import pytest

import needs
from baechi.common import progress
from baechi.compiling.tools import CompileError

pytestmark = needs.tool("baechi-run")
LINE = re.compile(r"baechi: (\w+): (.{8}) +\d+\.\d\d s")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def phases(text, name):
    """Of lines with seconds, that are all of the text."""
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(found) and {line[1] for line in found} <= {name}, text
    return [line[2].strip() for line in found]


def ours(capfd):
    """The lines without those of PyTorch's log."""
    lines = capfd.readouterr().err.splitlines()
    return "\n".join(line for line in lines if line.startswith("baechi: "))


def assert_whole(told):
    """All phases, each once, but for what is measured within others."""
    assert told[-1] == "in all"
    once = list(dict.fromkeys(told[:-1]))
    assert [name for name in progress.PHASES if name in once] == once
    assert {"import", "form", "compile", "place", "lower", "link"} <= set(once)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A step that was kept by an earlier run has no phases but its import."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def step(**options):
    pytest.importorskip("jax")
    from jax_support import jit

    def double(x):
        return x * 2

    return jit(double, **options)


def test_each_phase_is_told_when_asked(capfd):
    twice = step(verbose=True)
    assert (np.asarray(twice(np.ones(3, np.float32))) == 2).all()
    assert_whole(phases(capfd.readouterr().err, "double"))
    twice(np.ones(3, np.float32))
    assert capfd.readouterr().err == ""
    twice.lower(np.ones(4, np.float32)).compile()
    assert phases(capfd.readouterr().err, "double")[0] == "form"


def test_nothing_is_told_to_a_file(capfd):
    for verbose in (None, False):
        step(verbose=verbose)(np.ones(3, np.float32))
    assert capfd.readouterr().err == ""


@pytest.fixture
def terminal(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "_DELAY", 0)
    monkeypatch.setattr(progress, "_EVERY", 0.001)

    def watch(call):
        # Within the test: pytest has its own before.
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            call()
        return terminal.getvalue()

    return watch


def called(**options):
    return lambda: step(**options)(np.ones(3, np.float32))


def test_a_bar_is_drawn_on_a_terminal_and_is_gone_in_the_end(terminal):
    drawn = terminal(called())
    assert "baechi: double: " in drawn and f"/{len(progress.PHASES)} [" in drawn
    assert drawn.endswith("\r") and not drawn.split("\r")[-2].strip()
    assert all(thread.name != "baechi-progress" for thread in threading.enumerate())


def test_a_terminal_is_left_alone_when_asked(terminal):
    assert terminal(called(verbose=False)) == ""


def test_a_quick_call_draws_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 600)
    assert terminal(called()) == ""


def test_a_bar_ends_with_an_error(terminal):
    def fail():
        with pytest.raises(CompileError):
            called(machine="host:1@64")()

    assert "baechi: double" in terminal(fail)
    assert progress._watched.current is None
    assert all(thread.name != "baechi-progress" for thread in threading.enumerate())


def test_a_bar_shows_where_it_is(monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0)
    monkeypatch.setattr(progress, "_EVERY", 0.001)
    shown = threading.Condition()
    seen = []

    class Bar:
        n = 0

        def __init__(self, **options):
            assert options["total"] == len(progress.PHASES)

        def set_description_str(self, text):
            with shown:
                seen.append((self.n, text))
                shown.notify_all()

        def close(self):
            seen.append("closed")

    bar = progress._Bar("it", Bar)
    for name, done, total, reached, text in (
        ("import", 0, 0, "import", "baechi: it: import"),
        ("measure", 3, 9, "measure", "baechi: it: measure 3/9"),
        ("compile", 0, 0, "compile", "baechi: it: compile"),
        ("measure", 1, 2, "compile", "baechi: it: measure 1/2"),  # it never goes back
    ):
        bar.phase(name, done, total)
        place = progress.PHASES.index(reached)
        with shown:
            assert shown.wait_for(lambda: (place, text) in seen, timeout=60)
    bar.close()
    assert seen[-1] == "closed"


def test_what_is_within_another_is_a_part_of_it(capfd):
    with progress.shown(True, "outer"):
        progress.phase("import")
        with progress.shown(False, "inner"):
            progress.phase("place")
        assert progress.is_shown()
    assert phases(capfd.readouterr().err, "outer") == ["import", "place", "in all"]
    progress.phase("import")
    assert capfd.readouterr().err == "" and not progress.is_shown()


def test_odd_wishes_are_refused():
    for odd in ("yes", 2):
        with pytest.raises(TypeError, match=f"verbose is {odd!r}: give True"):
            step(verbose=odd)


def test_steps_of_pytorch_tell_it_alike(capfd):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    import baechi.torch

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.nn.functional.mse_loss
    options = {"costs": "roofline", "budget": "0", "verbose": True}
    baechi.torch.compile_step(model, loss, optimizer, **options)(torch.ones(4, 3), torch.ones(4, 2))
    assert_whole(phases(ours(capfd), "Linear"))
    compiled = torch.compile(model, backend="baechi", options=options)
    with torch.no_grad():
        compiled(torch.ones(4, 3))
    traced, *rest = ours(capfd).splitlines()
    assert phases(traced, "graph") == ["import"]
    assert_whole(phases("\n".join(rest), "graph"))


def test_models_of_onnx_tell_it_alike(capfd):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("torch_mlir")
    import baechi.onnx

    kind = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "relu", [kind("x", 1, [3])], [kind("y", 1, [3])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    baechi.onnx.compile(model, costs="roofline", budget="0", verbose=True)
    assert_whole(phases(ours(capfd), "model"))
