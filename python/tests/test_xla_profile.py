# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of what XLA has compiled, with the times of JAX's profiler."""

import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import baechi
from baechi.graphs import hlo_text
from baechi.models import load

ORACLE = pathlib.Path(__file__).resolve().parents[2] / "scripts/oracle/check_placement.py"
MACHINE = baechi.Machine(
    [baechi.Device(f"host{i}", "host", 1 << 30) for i in range(2)], baechi.Link(1000, 10_000)
)


def profiled(function, args, folder, donate=(), runs=3):
    """What is compiled; the folder has the profile of its runs."""
    compiled = jax.jit(function, donate_argnums=donate).lower(*args).compile()

    def fresh():
        return jax.block_until_ready(jax.tree.map(jnp.array, args))

    jax.block_until_ready(compiled(*fresh()))
    with jax.profiler.trace(folder):
        for _ in range(runs):
            jax.block_until_ready(compiled(*fresh()))
    return compiled


def layers(weights, x):
    with jax.named_scope("body"):
        for weight in weights:
            x = jnp.tanh(x @ weight)
    return (x * x).sum()


def test_operators_bytes_and_who_reads_whom(tmp_path):
    weights = [jnp.ones((64, 64)) / 64] * 3
    compiled = profiled(jax.grad(layers), (weights, jnp.ones((32, 64))), tmp_path)
    graph = baechi.graph_of_xla(compiled, tmp_path)
    products = [i for i, op in enumerate(graph.ops) if "dot" in op.name]
    # Forward three, for the weights' gradients three, for the inputs' two.
    assert len(products) == 8
    arguments = [op for op in graph.ops if op.resident]
    assert sorted(op.resident for op in arguments) == [32 * 64 * 4] + [64 * 64 * 4] * 3
    assert all(op.time_ns == 0 for op in arguments)
    assert all(graph.ops[i].time_ns["host"] > 0 for i in products)
    names = [graph.ops[i].name for i in products]
    assert sum(name.startswith("body/") for name in names) == 3
    assert sum(name.startswith("backward/body/") for name in names) == 5
    assert sum(graph.ops[i].backward for i in products) == 5
    results = [op for op in graph.ops if op.result]
    assert [list(op.outputs) for op in results] == [[64 * 64 * 4]] * 3
    # Each product reads two tensors, and nothing is read that comes later.
    assert all(sum(to == i for _, _, to in graph.edges) == 2 for i in products)
    assert all(source < to for source, _, to in graph.edges)
    placement = baechi.place(graph, MACHINE, budget=0)
    assert placement.step_ns <= sum(op.time_ns["host"] for op in graph.ops if op.time_ns)


def test_a_donated_argument_is_updated_in_place(tmp_path):
    def step(weight, x):
        return weight - 0.1 * jax.grad(lambda w: jnp.sum((x @ w) ** 2))(weight)

    args = (jnp.ones((32, 32)), jnp.ones((8, 32)))
    graph = baechi.graph_of_xla(profiled(step, args, tmp_path, donate=(0,)), tmp_path)
    (result,) = [op for op in graph.ops if op.result]
    assert result.outputs == [baechi.Output(32 * 32 * 4, memory=0)]
    (argument,) = [op for op in graph.ops if op.group == result.group and op is not result]
    assert argument.resident == 32 * 32 * 4


def test_a_loop_is_one_operator(tmp_path):
    def run(weight, xs):
        def body(h, x):
            h = jnp.tanh(h @ weight + x)
            return h, h.sum()

        return jax.lax.scan(body, xs[0], xs)

    args = (jnp.ones((32, 32)) / 32, jnp.ones((50, 8, 32)))
    graph = baechi.graph_of_xla(profiled(run, args, tmp_path), tmp_path)
    (loop,) = [op for op in graph.ops if "while" in op.name]
    assert loop.time_ns["host"] > 0
    assert 8 * 32 * 4 in loop.outputs and 50 * 4 in loop.outputs
    assert not [op for op in graph.ops if "dot" in op.name]


@pytest.mark.parametrize("name", ["transformer", "lstm", "resnet"])
def test_models_are_placed_as_the_oracle_says(tmp_path, name):
    model = load(name)
    step, args, donate = model.training_step(model.PRESETS["tiny"])
    args = jax.tree.map(lambda a: jnp.asarray(a.value()), args)
    graph = baechi.graph_of_xla(profiled(step, args, tmp_path, donate), tmp_path)
    parameters = len(jax.tree.leaves([args[i] for i in donate]))
    assert sum(op.resident > 0 for op in graph.ops) >= parameters
    baechi.place(graph, MACHINE, budget=0).save(tmp_path / "placement.json")
    (tmp_path / "graph.json").write_text(json.dumps(graph.to_dict()))
    (tmp_path / "machine.json").write_text(json.dumps(MACHINE.to_dict()))
    files = [tmp_path / f"{each}.json" for each in ("graph", "machine", "placement")]
    subprocess.run([sys.executable, ORACLE, *files], check=True, capture_output=True)


def test_what_does_not_belong_together(tmp_path):
    x = jnp.ones((16, 16))
    compiled = profiled(lambda x: jnp.tanh(x @ x), (x,), tmp_path)
    other = jax.jit(lambda x: jnp.exp(x) @ x).lower(x).compile()
    text = other.as_text().replace("jit__lambda", "jit_other")
    with pytest.raises(baechi.ProfileError, match="'jit_other' did not run in it; it has jit_"):
        baechi.graph_of_xla(text, tmp_path)
    # The same function's name, other operators.
    with pytest.raises(baechi.ProfileError, match="no time of .*exp.*give untimed_ns"):
        baechi.graph_of_xla(other, tmp_path)
    graph = baechi.graph_of_xla(other, tmp_path, untimed_ns=7)
    assert {"host": 7} in [op.time_ns for op in graph.ops]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(baechi.ProfileError, match="no .xplane.pb file"):
        baechi.graph_of_xla(compiled, empty)
    with pytest.raises(baechi.ProfileError, match="there is no such profile"):
        baechi.graph_of_xla(compiled, tmp_path / "nowhere")


def test_two_programs_of_one_name_are_refused(tmp_path):
    programs = [
        jax.jit(lambda x: x @ x).lower(jnp.ones((size, size))).compile() for size in (16, 64)
    ]
    with jax.profiler.trace(tmp_path):
        for program, size in zip(programs, (16, 64), strict=True):
            jax.block_until_ready(program(jnp.ones((size, size))))
    with pytest.raises(baechi.ProfileError, match="2 programs of the name 'jit__lambda'"):
        baechi.graph_of_xla(programs[0], tmp_path)


def test_what_is_not_compiled():
    function = jax.jit(jnp.tanh)
    with pytest.raises(TypeError, match=r"give jax.jit\(f\).lower\(...\).compile\(\)"):
        baechi.graph_of_xla(function, "profile")
    with pytest.raises(baechi.PlacementError, match=r"compile\(\).as_text"):
        baechi.graph_of_xla(function.lower(jnp.ones(3)), "profile")


HEADER = "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: not XLA's text"),
        ("module {}", "line 1: not XLA's text"),
        (HEADER, "no ENTRY computation"),
        (HEADER + "ENTRY %m (p: f32[2]) -> f32[2] {\n  what is this\n}", "line 4: not an instr"),
        (HEADER + "ENTRY %m (p: f32[2]) -> f32[2] {\n  ROOT %a = f32[2 add(%a)\n}", "line 4: "),
        (HEADER + "ENTRY %m (p: f32[2]) -> f32[2] {\n  ROOT %a = f32[2]\n}", "line 4: a has no"),
        (HEADER + "ENTRY %m (p: f32[2]) -> f32[2] {\n  ROOT %a = odd[2] add(%b)\n}", "'odd' is"),
        (HEADER + "ENTRY %m (p: f32[2]) -> f32[2] {\n  ROOT %a = q77[2] add(%b)\n}", "'q77' is"),
        (HEADER + "ENTRY %m (p: f32[2]) -> f32[2] {\n  ROOT %a = f32[-2] add(%b)\n}", "no shape"),
    ],
)
def test_texts_that_are_not_xlas(text, said):
    with pytest.raises(baechi.ProfileError, match=said):
        hlo_text.parse(text)


def test_bytes_of_types():
    text = HEADER + (
        "ENTRY %m (p: f32[2]) -> (bf16[3], s4[5], pred[], c64[2,2], f8e4m3fn[7]) {\n"
        "  %p = f32[2]{0:T(128)} parameter(0)\n"
        "  ROOT %c = (bf16[3]{0}, s4[5]{0}, pred[], /*index=3*/c64[2,2]{1,0}, f8e4m3fn[7]{0})"
        ' custom-call(f32[2]{0} %p), custom_call_target="f", control-predecessors={%p}\n}'
    )
    (parameter, call) = hlo_text.parse(text).computations["m"]
    assert parameter.leaves == [8] and parameter.index("number") == 0
    assert call.leaves == [6, 3, 1, 32, 7]
    assert (call.operands, call.predecessors, call.opcode) == (["p"], ["p"], "custom-call")
    assert call.is_root and call.line == 5
