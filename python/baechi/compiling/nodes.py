# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of steps for machines of nodes."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from baechi.common import temporary
from baechi.compiling import compiler, tools
from baechi.compiling.modules import Lowered, source_of
from baechi.graphs import problem


@dataclasses.dataclass(frozen=True)
class NodesPlan:
    """How a step is done on a machine of nodes; prints as `baechi-place` reports it.

    parts: of the batch; fewer than were asked for where a warning says so.
    replicas: each computes as many parts of the batch, all at once.
    stages: of a replica, one after the other.
    stage_devices: of a stage, inside a node: operators are in pieces on them.
    ways: operators of a replica by the names of the ways that they are done in (`data/8`,
        `tensor/8`); others are whole.
    step_ns: predicted; lower_bound_ns: no plan on this machine is shorter.
    graph, placement: the files that `baechi-place` and the oracle read (docs/formats.md),
        the placement that of the first replica; report: what `--json` writes.
    """

    parts: int
    replicas: int
    stages: int
    stage_devices: int
    ways: dict[str, int]
    step_ns: int
    lower_bound_ns: int
    graph: dict[str, Any] = dataclasses.field(repr=False)
    placement: dict[str, Any] = dataclasses.field(repr=False)
    report: dict[str, Any] = dataclasses.field(repr=False)
    text: str = dataclasses.field(repr=False)

    @property
    def devices(self) -> int:
        """Those that all replicas have together."""
        return self.replicas * int(self.report["nodes"]["devices_per_replica"])

    def __str__(self) -> str:
        return self.text


def plan_nodes(
    step: str | os.PathLike[str] | Lowered,
    machine: problem.Source,
    *,
    parts: int,
    pieces: Sequence[int] = (2, 4, 8),
    pin: Mapping[str, str] | None = None,
    profile: str | os.PathLike[str] | None = None,
    roofline: str | None = None,
    budget: str | float = "auto",
) -> NodesPlan:
    """Plans a step for a machine of nodes: replicas, stages and pieces (docs/nodes.md):

        plan = baechi.plan_nodes(baechi.jit(f).lower(*args), "cluster.json", parts=16)
        print(plan.replicas, plan.stages, plan.step_ns)

    step: `step.lower(...)` of `baechi.jit`, whose `split` is kept, a module's text, or a
        file's path.
    machine: a dictionary or a file's path: one that states `nodes` (docs/formats.md).
    parts: equal parts of the batch, which replicas share and pipelines have under way.
    pieces: operators may be done in so many pieces, inside a node.
    pin: patterns of operators' and arguments' names to devices, `{"head/*": "n1.cuda0"}`; what
        is pinned forbids replicas.
    profile, roofline: costs, as for `graph_of`.
    budget: as for `place`.

    Loops that count from one constant to another are written out (docs/splitting.md#loops),
    unless the step has `unroll="never"`.

    Warns where something needs the whole batch, as its statistics do: there is one part then.
    Raises CompileError for a step without a batch that divides into parts (one part needs
    none), and where nothing fits; ValueError for another machine.
    """
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise ValueError(f"parts is {parts!r}: a batch has one part or more")
    described, _ = problem.text_of(machine, "machine")
    kind = _kind(described)
    text, name = source_of(step)
    options = getattr(step, "options", None)
    passes = ["baechi-inline-step"]
    cuts = options.cuts() if options is not None else []
    pins = [f"{name}={device}" for name, device in (pin or {}).items()]
    if options is None or options.unroll != "never":
        named = [rule.rsplit("=", 1)[0] for rule in (*cuts, *pins)]
        passes.append(compiler.step("baechi-unroll-loops", least_share="5", keep=named))
    if cuts or pins:
        passes.append(compiler.step("baechi-constrain", splits=cuts, pins=pins))
    costs = compiler.step(
        "baechi-annotate-costs",
        profile=None if profile is None else os.path.abspath(profile),
        roofline=roofline,
    )
    with temporary.folder("baechi-nodes-") as folder:
        graph, cluster, placement, report = (
            folder / f"{each}.json" for each in ("graph", "machine", "placement", "report")
        )
        export = compiler.step(
            "baechi-export-nodes",
            file=graph,
            parts=parts,
            pieces=[str(each) for each in pieces],
            kind=kind,
            roofline=roofline,
        )
        compiler.transform(text, [*passes, costs, export], name=name)
        cluster.write_text(described)
        words = [f"--budget={budget}", f"--json={report}", "-o", placement]
        done = tools.run("baechi-place", graph, cluster, *words)
        found, placed = json.loads(report.read_text()), json.loads(placement.read_text())
        choices = collections.Counter(each["alternative"] for each in placed.get("choices", []))
        shape, made = found["nodes"], json.loads(graph.read_text())
        if (has := _parts(made)) != parts:
            warnings.warn(
                f"the step is planned in {has} part{'s' * (has > 1)}, not in {parts}: something in "
                "it needs the whole batch; the remarks not-parted of --baechi-export-nodes say "
                "what, and where (docs/nodes.md)",
                stacklevel=2,
            )
        return NodesPlan(
            has,
            shape["replicas"],
            shape["stages"],
            shape["devices_per_stage"],
            dict(sorted(choices.items())),
            found["makespan_ns"],
            found["lower_bound_ns"],
            made,
            placed,
            found,
            done.stdout,
        )


def _kind(machine: str) -> str:
    """The kind of all devices of a machine of nodes."""
    try:
        described = json.loads(machine)
    except ValueError as error:
        raise ValueError(f"the machine is no JSON: {error}") from error
    if not isinstance(described, dict) or "nodes" not in described:
        raise ValueError(
            "the machine has no nodes: state nodes, devices_per_node, device, inside and between "
            "(docs/formats.md), or place on its devices (baechi.place)"
        )
    device = described.get("device")
    kind = device.get("kind") if isinstance(device, dict) else None
    if not isinstance(kind, str) or not kind:
        raise ValueError(
            f"the machine's device is {device!r}: state its kind and memory, such as "
            '{"kind": "cuda", "memory": 8589934592} (docs/formats.md)'
        )
    return kind


def _parts(graph: dict[str, Any]) -> int:
    """The parts of the batch that a graph has."""
    return 1 + max((op["part"] for op in graph["ops"] if "part" in op), default=0)
