# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler within this process, and the one beside it: the same programs, the same words."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.common import progress
from baechi.compiling import compiler
from baechi.compiling.options import CompileOptions
from baechi.compiling.tools import CompileError, Message
from baechi.steps.library import StepLibrary

WAYS = ("in-process", "subprocess")

STEP = """\
func.func @step(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = arith.addf %x, %x : tensor<64x64xf32> loc("left")
  %1 = arith.mulf %x, %x : tensor<64x64xf32> loc("right")
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
"""

PRODUCTS = 300
# Of so many products that the search for their devices would take its whole budget.
LONG = (
    "func.func @step(%x: tensor<64x64xf32>, %e: tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
    + "".join(
        f"  %{i} = linalg.matmul ins({f'%{i - 1}' if i else '%x'}, {f'%{i // 2}' if i else '%x'} "
        ": tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) "
        "-> tensor<64x64xf32>\n"
        for i in range(PRODUCTS)
    )
    + f"  return %{PRODUCTS - 1} : tensor<64x64xf32>\n}}\n"
)


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setenv("BAECHI_COMPILER", request.param)
    assert compiler.is_in_process() == (request.param == "in-process")
    return request.param


FUSE_TWO = compiler.step("baechi-fuse", machine="host:2")
GRAPH = [
    "baechi-form-kernels",
    compiler.step("baechi-annotate-costs", roofline="host:50:10:200"),
    "baechi-colocate",
]


def test_passes_give_the_same_text_and_words(monkeypatch):
    made = []
    for way in WAYS:
        monkeypatch.setenv("BAECHI_COMPILER", way)
        formed = compiler.step("baechi-form-kernels", report="true")
        made.append(
            (
                compiler.transform(STEP, [formed]),
                compiler.transform(STEP, GRAPH, "graph"),
                compiler.transform(STEP, [*GRAPH, FUSE_TWO]),
            )
        )
    assert made[0] == made[1]
    formed, graph, fused = made[0]
    assert "remark: 2 operators that move" in formed.said
    assert [op["name"] for op in json.loads(graph.text)["ops"]] == ["arg0", "left", "right"]
    assert "baechi.machine = " in fused.text


@pytest.mark.parametrize(
    ("module", "passes", "error", "place"),
    [
        ("this is no module\n", GRAPH, "custom op 'this' is unknown", "mine.mlir:1:1"),
        (STEP, ["baechi-fly"], "'baechi-fly' does not refer to a registered pass", ""),
        (STEP, ["baechi-partition"], "no 'baechi.machine'; run --baechi-place", ""),
        (STEP, [compiler.step("baechi-fuse", machine="host:0")], "'0' is not a number", ""),
    ],
)
def test_passes_refuse_in_the_same_words(way, module, passes, error, place):
    with pytest.raises(CompileError) as refused:
        compiler.transform(module, passes, name="mine.mlir")
    assert error in str(refused.value)
    assert [place in each.place for each in refused.value.messages if error in each.text] == [True]


def test_a_form_that_there_is_not():
    with pytest.raises(CompileError, match="unknown form 'pdf' of a module .mlir, graph, machine,"):
        compiler.transform(STEP, [], "pdf")


def test_values_of_options_keep_their_spaces(way, tmp_path):
    folder = tmp_path / "two words"
    folder.mkdir()
    machine = folder / "a machine.json"
    machine.write_text(compiler.transform(STEP, [*GRAPH, FUSE_TWO], "machine").text)
    fused = compiler.transform(STEP, [*GRAPH, compiler.step("baechi-fuse", machine=machine)])
    assert '<"host1", kind = "host"' in fused.text


def test_steps_of_pipelines():
    assert compiler.step("colocate") == "colocate"
    assert compiler.step("place", budget=None, pins=[]) == "place"
    step = compiler.step("constrain", link_model="duplex", pins=["a=b", "c=d"])
    assert step == "constrain{link-model={duplex} pins={a=b,c=d}}"


def options(**given):
    return CompileOptions(**{"machine": "host:2", "costs": "roofline"} | given)


def refusal(text, given):
    with pytest.raises(CompileError) as raised:
        compiler.emit(text, pathlib.Path(os.devnull).parent / "shm" / "step.so", given)
    return raised.value


def test_both_ways_give_the_same_program(tmp_path, monkeypatch):
    found = {}
    for name in WAYS:
        monkeypatch.setenv("BAECHI_COMPILER", name)
        (tmp_path / name).mkdir()
        file = tmp_path / name / "step.so"
        compiler.emit(STEP, file, options(placer="round-robin", budget="0"))
        library = StepLibrary(file)
        x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
        library.set_argument(0, x)
        library.run()
        np.testing.assert_array_equal(library.result(0), x + x)
        np.testing.assert_array_equal(library.result(1), x * x)
        found[name] = library.program
        library.close()
    assert found["in-process"] == found["subprocess"]
    assert {device["name"] for device in found["in-process"]["devices"]} == {"host0", "host1"}


BAD = {
    "no module": ("func.func @step() {\n  oops\n}\n", {}, "custom op 'oops' is unknown"),
    "no step": ("module {}\n", {}, "needs one public function"),
    "no memory": (STEP, {"machine": "host:2@8KiB"}, "no placement can fit the memories"),
    "no machine": (STEP, {"machine": "/no/machine.json"}, "/no/machine.json: cannot read"),
    "no kind": (STEP, {"machine": "hots:2"}, "machine 'hots:2': unknown kind"),
    "no size": (STEP, {"machine": "host:2@40Foo"}, "'40Foo' is not a size"),
    "no pool": (STEP, {"machine": "host:1+pool:big"}, "'pool:big' is no memory beside devices"),
    "no device": (STEP, {"pin": {"left": "gpu7"}}, "gpu7"),
    "no placement": (STEP, {"placement": "/no/placement.json"}, "/no/placement.json: cannot"),
}


NO_MACHINES = ("no machine", "no kind", "no size", "no pool")


def test_a_process_of_several_compiles_alone(monkeypatch):
    monkeypatch.setenv("BAECHI_COMPILER", "subprocess")
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_PORT", "29877")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("BAECHI_RANKS", "2")
    step = baechi.jit(lambda x: x * 2 + 1, machine="host:1", costs="roofline")
    assert float(step(jnp.float32(3))) == 7


@pytest.mark.parametrize("name", BAD)
def test_both_ways_refuse_in_the_same_words(name, monkeypatch):
    text, given, told = BAD[name]
    errors = {}
    for each in WAYS:
        monkeypatch.setenv("BAECHI_COMPILER", each)
        errors[each] = refusal(text, options(**given))
    assert told in str(errors["in-process"])
    assert str(errors["in-process"]) == str(errors["subprocess"])
    for error in errors.values():
        first = [message for message in error.messages if message.severity == "error"][0]
        assert first.text.splitlines()[0] in str(error)
        # What no step could be compiled with is as wrong as an option that Python refuses.
        assert isinstance(error, ValueError) == (name in NO_MACHINES)


def test_a_message_tells_its_place(way):
    text = STEP.replace('loc("left")', 'loc("net.py":7:3)').replace("arith.addf", "test.unknown")
    text = text.replace("test.unknown %x, %x :", '"test.unknown"(%x) :').replace(
        ': tensor<64x64xf32> loc("net', ': (tensor<64x64xf32>) -> tensor<64x64xf32> loc("net'
    )
    error = refusal(text, options())
    assert any(m.severity == "error" for m in error.messages)
    assert "test.unknown" in str(error)


def test_an_error_of_the_parser_has_line_and_column(monkeypatch):
    monkeypatch.setenv("BAECHI_COMPILER", "in-process")
    error = refusal(BAD["no module"][0], options())
    assert error.messages[0] == Message(
        "error", "model.mlir:2:3", "custom op 'oops' is unknown (tried 'func.oops' as well)"
    )


def test_a_way_that_is_not_known(monkeypatch):
    monkeypatch.setenv("BAECHI_COMPILER", "in-proces")
    with pytest.raises(ValueError, match="BAECHI_COMPILER is 'in-proces': give in-process or"):
        compiler.is_in_process()


def test_tools_of_another_build_are_asked(tmp_path, monkeypatch):
    tool = compiler.tools.find("baechi-run")
    (tmp_path / "baechi-run").write_text(f'#!/bin/sh\nexec "{tool}" "$@"\n')
    (tmp_path / "baechi-run").chmod(0o700)
    monkeypatch.setenv("BAECHI_TOOLS", str(tmp_path))
    assert not compiler.is_in_process()


@pytest.fixture
def fresh_extension():
    compiler.extension.cache_clear()
    yield
    compiler.extension.cache_clear()


def test_without_the_extension_the_tool_compiles(tmp_path, monkeypatch, fresh_extension):
    monkeypatch.setitem(sys.modules, "baechi._compiler", None)
    assert not compiler.is_in_process()
    compiler.emit(STEP, tmp_path / "step.so", options())
    assert (tmp_path / "step.so").exists()


def test_an_extension_that_cannot_be_loaded_is_told(tmp_path, monkeypatch, fresh_extension):
    def fail(name):
        raise ImportError("libMLIR.so.22.1: cannot open shared object file")

    monkeypatch.setattr(compiler.importlib, "import_module", fail)
    with pytest.warns(UserWarning, match="cannot be loaded .*libMLIR.*BAECHI_COMPILER=subprocess"):
        assert not compiler.is_in_process()


def fixed_python():
    """One that does not move in memory, as Debian's: the C library's environment is its own."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    file = pathlib.Path("/usr/bin", name)
    moves = not file.exists() or file.read_bytes()[16:18] != b"\2\0"  # ET_EXEC
    return None if moves else file


@pytest.mark.skipif(fixed_python() is None, reason="the system's Python is another one")
def test_the_c_compiler_has_the_environment(tmp_path):
    told = tmp_path / "told"
    told.write_text('#!/bin/sh\necho "told: $BAECHI_TOLD"\nexit 1\n')
    told.chmod(0o755)
    (tmp_path / "step.mlir").write_text(STEP)
    script = (
        "import os, pathlib\n"
        "from baechi.compiling import compiler\n"
        "from baechi.compiling.options import CompileOptions\n"
        "assert compiler.is_in_process()\n"
        "os.environ['BAECHI_TOLD'] = 'since it began'\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "compiler.emit((folder / 'step.mlir').read_text(), folder / 'step.so', "
        "CompileOptions(machine='host:1', costs='roofline'))\n"
    )
    packages = [str(pathlib.Path(each).parent) for each in baechi.__path__]
    packages.append(str(pathlib.Path(np.__file__).parents[1]))
    here = {"CC": str(told), "PYTHONPATH": os.pathsep.join(packages)}
    here["BAECHI_COMPILER"] = "in-process"
    done = subprocess.run(
        [fixed_python(), "-c", script], capture_output=True, text=True, env=os.environ | here
    )
    assert "cannot link the library: told: since it began" in done.stderr


def test_phases_are_told(way, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(progress, "is_shown", lambda: True)
    monkeypatch.setattr(progress, "phase", lambda name, *_: told.append(name))
    compiler.emit(
        STEP, tmp_path / "step.so", options(costs="measured", splits="none", profile=tmp_path / "p")
    )
    kept = [name for i, name in enumerate(told) if i == 0 or told[i - 1] != name]
    assert kept == ["form", "measure", "compile", "measure", "place", "lower", "link"]


@pytest.fixture
def interruptible():
    """Processes that a shell starts in the background ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("phase", ["form", "measure", "place", "link"])
def test_control_c_ends_a_compilation(way, phase, tmp_path, monkeypatch, interruptible):
    def interrupt(name, *_):
        if name == phase:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(progress, "is_shown", lambda: True)
    monkeypatch.setattr(progress, "phase", interrupt)
    asked = options()
    if phase != "link":
        # Nobody waits for the end of that.
        profile = tmp_path / "profile.json"
        asked = options(machine="host:8", costs="measured", budget="600", profile=profile)
    with pytest.raises(KeyboardInterrupt):
        compiler.emit(STEP if phase == "link" else LONG, tmp_path / "step.so", asked)
    monkeypatch.undo()
    # The next one is not in its way.
    compiler.emit(STEP, tmp_path / "step.so", options())


def test_threads_take_turns(tmp_path):
    failures = []

    def work(i):
        try:
            compiler.emit(STEP, tmp_path / f"step{i}.so", options())
            StepLibrary(tmp_path / f"step{i}.so").close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_step_of_jax_both_ways(way):
    def step(w, x):
        return jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)

    w, x = jnp.linspace(-1, 1, 32).reshape(8, 4), jnp.linspace(0, 1, 24).reshape(3, 8)
    found = baechi.jit(step, costs="roofline")(w, x)
    np.testing.assert_allclose(found, jax.jit(step)(w, x), rtol=1e-6, atol=1e-6)


_WITH_OTHERS = """
import sys, pathlib
sys.path[:0] = sys.argv[2:]
from baechi.compiling import compiler
from baechi.compiling.options import CompileOptions
def compile():
    assert compiler.is_in_process()
    text = pathlib.Path(sys.argv[1]).read_text()
    file = pathlib.Path(sys.argv[1]).with_suffix(".so")
    compiler.emit(text, file, CompileOptions(costs="roofline"))
def others():
    import jax, jax.numpy as jnp
    jax.jit(lambda x: x @ x)(jnp.ones((4, 4)))
    if {torch}:
        import torch, torch_mlir
        from torch_mlir import ir
        with ir.Context():
            ir.Module.parse("module {{}}")
for what in ({order}):
    what()
print("lived")
"""


@pytest.mark.parametrize("order", ["compile, others, compile", "others, compile, others"])
def test_other_mlirs_in_the_process(order, tmp_path):
    (tmp_path / "step.mlir").write_text(STEP)
    torch = importlib.util.find_spec("torch_mlir") is not None
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            _WITH_OTHERS.format(order=order, torch=torch),
            str(tmp_path / "step.mlir"),
            str(pathlib.Path(baechi.__file__).parents[1]),
        ],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "lived\n", done.stderr


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, RuntimeError])
def test_what_is_raised_while_operations_are_visited_is_raised(error):
    from jaxlib.mlir import ir

    from baechi.importer.common import module as modules

    def visit(operation):
        if operation.name == "builtin.module":
            raise error("within")

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("module {}")
        with pytest.raises(error, match="within"):
            modules.walk(ir, module, visit)
