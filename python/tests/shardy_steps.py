# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes plans by `jax.jit` on two devices and tells, as JSON, what came out; a program of
its own because XLA makes its devices once (XLA_FLAGS)."""

import collections
import inspect
import json
import math
import pathlib
import re
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import baechi

DRAWN = np.random.default_rng(0)


def drawn(*shape):
    return DRAWN.standard_normal(shape).astype(np.float32) / math.sqrt(shape[0])


def updated(loss):
    """A training step, whose arguments have the names of the loss's."""

    def step(p, *batch):
        value, g = jax.value_and_grad(loss)(p, *batch)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), value

    vars(step)["__signature__"] = inspect.signature(loss)
    return step


def mlp(p, x, y):
    for w, b in p[:-1]:
        x = jax.nn.relu(x @ w + b)
    return ((x @ p[-1][0] + p[-1][1] - y) ** 2).mean()


def columns(p, x, y):
    return ((jnp.tanh(x @ p["in"]) @ p["out"] - y) ** 2).mean()


def attention(p, x):
    q, k, v = (x @ p[each] for each in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k), -1)
    return (jnp.einsum("bqk,bkd->bqd", scores, v) ** 2).mean()


def heads(p, x):
    q, k, v = (jnp.einsum("btd,dhe->bthe", x, p[each]) for each in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k), -1)
    mixed = jnp.einsum("bhqk,bkhe->bqhe", scores, v)
    return jnp.einsum("bthe,hed->btd", mixed, p["o"])


def normalised(p, x):
    y = x @ p["w"]
    y = (y - y.mean(0)) / jnp.sqrt(y.var(0) + 1e-5)
    return (jnp.tanh(y * p["g"]) ** 2).mean()


def with_keys(p, x, key):
    return x @ p + jax.random.normal(key, (p.shape[1],)), jax.random.split(key)[0]


LAYERS = [(drawn(64, 128), drawn(128)), (drawn(128, 128), drawn(128)), (drawn(128, 32), drawn(32))]
WIDE = [(drawn(256, 512), drawn(512)), (drawn(512, 256), drawn(256))]
ATTENTION = {each: drawn(32, 32) for each in "qkv"}
HEADS = {each: drawn(32, 4, 8) for each in "qkv"} | {"o": drawn(4, 8, 32)}

# The step, its arguments, what is cut, and the batch: positions of what XLA is given cut.
STEPS = {
    "mlp": (updated(mlp), (LAYERS, drawn(48, 64), drawn(48, 32)), {"x": (0, 2)}, (1, 2)),
    "mlp_chosen": (updated(mlp), (WIDE, drawn(512, 256), drawn(512, 256)), None, (1, 2)),
    "columns": (
        updated(columns),
        ({"in": drawn(64, 512), "out": drawn(512, 32)}, drawn(16, 64), drawn(16, 32)),
        {"p/in": (1, 2)},
        (1, 2),
    ),
    "attention": (updated(attention), (ATTENTION, drawn(6, 10, 32)), {"x": (0, 2)}, (1,)),
    "heads": (heads, (HEADS, drawn(6, 10, 32)), {"p/q": (1, 2)}, (1,)),
    "normalised": (
        updated(normalised),
        ({"w": drawn(16, 24), "g": drawn(24)}, drawn(32, 16)),
        {"x": (0, 2)},
        (1,),
    ),
    "keys": (with_keys, (drawn(16, 8), drawn(12, 16), jax.random.key(3)), {"x": (0, 2)}, (1,)),
}

_COLLECTIVE = re.compile(
    r"= (.*?) (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)(?:-start)?\("
)


def collectives_of(compiled):
    """Kinds and elements of each tensor that XLA's program has the devices tell each other."""
    found = collections.Counter()
    for line in compiled.as_text().splitlines():
        if match := _COLLECTIVE.search(line):
            for shape in re.findall(r"\w+\[([\d,]*)\]", match[1]):
                found[match[2], math.prod(map(int, filter(None, shape.split(","))))] += 1
    return sorted([*key, count] for key, count in found.items())


def data_of(leaf):
    return np.asarray(
        jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
    )


def outcome(step, arguments, split, batch):
    lowered = baechi.jit(step, split=split).lower(*arguments)
    plan = baechi.shardings(lowered, "host:2", splits="none" if split else "any")
    compiled = jax.jit(step, in_shardings=plan.arguments, out_shardings=plan.results)
    compiled = compiled.lower(*arguments).compile()
    placed = jax.device_put(arguments, plan.arguments)
    found, wanted = jax.tree.leaves(compiled(*placed)), jax.tree.leaves(jax.jit(step)(*arguments))
    error = max(
        float(np.abs(data_of(a).astype(np.float64) - data_of(b)).max() / np.abs(data_of(b)).max())
        for a, b in zip(found, wanted, strict=True)
    )
    kept = all(
        leaf.sharding.is_equivalent_to(sharding, leaf.ndim)
        for leaf, sharding in zip(found, jax.tree.leaves(plan.results), strict=True)
    )
    cut = NamedSharding(plan.mesh, PartitionSpec("devices"))
    alone = jax.jit(
        step, in_shardings=tuple(cut if i in batch else None for i in range(len(arguments)))
    )
    planned = collections.Counter((each.kind, math.prod(each.shape)) for each in plan.collectives)
    moved = collectives_of(compiled)
    from_batch = collectives_of(alone.lower(*arguments).compile())
    return {
        "error": error,
        "as_planned": kept,
        "cut_arguments": sum(
            not each.is_fully_replicated for each in jax.tree.leaves(plan.arguments)
        ),
        "planned": sorted([*key, count] for key, count in planned.items()),
        "collectives": moved,
        "elements": sum(size * count for _, size, count in moved),
        "elements_from_batch": sum(size * count for _, size, count in from_batch),
    }


def refusal(machine="host:2", split=None, splits="none", function=None, **options):
    try:
        lowered = function or baechi.jit(lambda x: jnp.exp(x), split=split, **options).lower(
            drawn(6, 5)
        )
        baechi.shardings(lowered, machine, splits=splits)
    except (baechi.CompileError, TypeError, ValueError) as error:
        return str(error)
    return ""


def two_kinds(folder):
    file = pathlib.Path(folder) / "machine.json"
    devices = [{"name": f"d{i}", "kind": k, "memory": 1} for i, k in enumerate(("host", "cuda"))]
    link = {"latency_ns": 1, "bytes_per_us": 1}
    file.write_text(
        json.dumps(
            {"format": "baechi-machine", "version": 1, "devices": devices, "links": []}
            | {"link_default": link, "link_model": "parallel"}
        )
    )
    return file


def main():
    rows = {name: outcome(*case) for name, case in STEPS.items()}
    with tempfile.TemporaryDirectory() as folder:
        rows["refused"] = {
            "uneven": refusal(split={"x": (1, 2)}),
            "whole": refusal(),
            "kinds": refusal(two_kinds(folder), {"x": (0, 2)}),
            "pinned": refusal(split={"x": (0, 2)}, pin={"*": "host1"}),
            "many": refusal("host:3", {"x": (0, 3)}),
            "function": refusal(function=jnp.exp),
            "word": refusal(splits="some"),
        }
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
