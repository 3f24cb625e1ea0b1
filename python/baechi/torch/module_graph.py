# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward pass of a model as a graph to place, by modules that stay whole."""

from __future__ import annotations

import dataclasses
import difflib
import operator
import statistics
import time
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

import baechi
from baechi.importer.torch.graph_rules import check_operands
from baechi.importer.torch.names import Recorder, origin_of
from baechi.importer.torch.refusals import explained_errors
from baechi.importer.torch.trace import compiling

# Repetitions of an operator that is measured.
_RUNS = 3


@dataclasses.dataclass(frozen=True)
class Roofline:
    """Of a kind of device: an operator takes the longer of its floating-point
    operations and its bytes, and a launch."""

    gflops: float
    gb_per_s: float
    launch_ns: float

    def time_ns(self, flops: float, moved: float) -> int:
        return round(max(flops / self.gflops, moved / self.gb_per_s) + self.launch_ns)


# A host as the compiler assumes it, and a modest GPU, launched from Python. What is on
# disk is computed by a host that reads it from there.
ROOFLINES = {
    "host": Roofline(50, 10, 2_000),
    "cuda": Roofline(10_000, 500, 8_000),
    "disk": Roofline(50, 1, 50_000),
}


@dataclasses.dataclass
class ModuleGraph:
    """Operators are calls of units, and tensors; `units[i]` is the unit of operator
    i: a module's or a parameter's path, or None where the model has neither."""

    graph: baechi.Graph
    units: list[str | None]


class ModuleGraphBuilder:
    """Traces `model(*args, **kwargs)` and makes the graph of it.

    A unit is the largest module that must stay whole: one of `no_split`, one
    with parameters of its own, or one that combines what it makes with what it is
    given (a residual block), as tools that follow a map move tensors only where a
    module is entered. What a module around units combines (two embeddings) must be
    together, as must what has one parameter. A unit's call is one operator: others
    see its results when it is over.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        args: tuple,
        kwargs: Mapping[str, Any],
        no_split: Collection[str | type] = (),
    ):
        self.model = model
        self._no_split = _known_classes(model, no_split)
        self._tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        self._trace(args, kwargs)
        self._whole = self._whole_modules()

    def build(self, kinds: Collection[str], measured: bool) -> ModuleGraph:
        """kinds: of the machine's devices. measured: times of this processor, for
        its kind `host`, in place of the roofline's."""
        times = self._measure() if measured else {}
        units, joined = self._units_of_nodes()
        graph, owners = baechi.Graph(), []
        place: dict[torch.fx.Node, tuple[int, int]] = {}  # of tensors: operator and output
        for call in self._calls(units):
            first = call[0]
            if first in self._held:
                size = _bytes(first)
                fields = {"outputs": [baechi.Output(size, 0)], "resident": size}
                number = graph.add(self._held[first], 0, **fields)
                place[first] = number, 0
            else:
                number = self._add_call(graph, call, place, kinds, times)
            owners.append(units[first])
        self._place_inputs(graph, owners)
        self._add_unused(graph, owners)
        for op, unit in zip(graph.ops, owners, strict=True):
            op.group = joined.find(unit)
        for output in self._outputs:
            graph.ops[place[self._base(output)][0]].result = True
        return ModuleGraph(graph, owners)

    def _units_of_nodes(self) -> tuple[dict[torch.fx.Node, str | None], _Joined]:
        """The unit of every node that has memory of its own, and which units must
        be together as the model itself combines their tensors."""
        units: dict[torch.fx.Node, str | None] = {}
        joined = _Joined()
        for node in self._nodes:
            if self._base(node) is not node:
                continue
            if node in self._held:
                units[node] = self._unit_of_tensor(self._held[node])
                continue
            unit = self._largest_whole(origin_of(node).scope)
            if unit is None:  # runs where its tensors are
                known = [u for s in self._sources(node) if (u := units[s]) is not None]
                unit = known[0] if known else None
                for other in known[1:]:
                    joined.join(unit, other)
            units[node] = unit
        for names in self._tied_tensors():
            first, *others = map(self._unit_of_tensor, names)
            for other in others:
                joined.join(first, other)
        return units, joined

    def _tied_tensors(self) -> list[list[str]]:
        """All names of each tensor that has several."""
        names: dict[torch.Tensor, list[str]] = {}
        members = self.model.named_parameters, self.model.named_buffers
        for named in members:
            for name, tensor in named(remove_duplicate=False):
                names.setdefault(tensor, []).append(name)
        return [found for found in names.values() if len(found) > 1]

    def _calls(self, units: Mapping[torch.fx.Node, str | None]) -> list[list[torch.fx.Node]]:
        """Neighbours of one unit: a module's call is over before another begins."""
        calls: list[list[torch.fx.Node]] = []
        for node, unit in units.items():
            last = calls[-1][-1] if calls else None
            inner = node.op == "call_function" and last is not None and last.op == node.op
            if inner and units[last] == unit:
                calls[-1].append(node)
            else:
                calls.append([node])
        return calls

    def _add_call(self, graph, call, place, kinds, times) -> int:
        inside = set(call)
        outer = {node for node in call if self._read_outside(node, inside)}
        inputs = {place[s] for node in call for s in self._sources(node) if s not in inside}
        time_ns = dict.fromkeys(kinds, 0)
        for node in call:
            if node.op == "call_function":
                for kind, spent in self._time(node, kinds, times).items():
                    time_ns[kind] += spent
        given = [node for node in call if node in outer]
        number = graph.add(
            call[-1].name,
            time_ns,
            inputs=sorted(inputs),
            outputs=[_bytes(node) for node in given],
            scratch=self._most_inside(call, outer),
        )
        place.update({node: (number, i) for i, node in enumerate(given)})
        return number

    def _read_outside(self, node: torch.fx.Node, inside: set[torch.fx.Node]) -> bool:
        """Whether a tensor, or a view of it, leaves a call."""
        for user in node.users:
            if user.op == "output":
                return True
            if self._base(user) is not user:
                if self._read_outside(user, inside):
                    return True
            elif user not in inside:
                return True
        return False

    def _most_inside(self, call: list[torch.fx.Node], outer: set[torch.fx.Node]) -> int:
        """The most bytes of tensors that a call makes for itself alone."""
        last = {s: i for i, node in enumerate(call) for s in self._sources(node)}
        own = set(call) - outer
        live = most = 0
        for i, node in enumerate(call):
            if node in own:
                live += _bytes(node)
            most = max(most, live)
            for source in {*self._sources(node), node} & own:
                if last.get(source, i) == i:
                    live -= _bytes(source)
        return most

    def _sources(self, node: torch.fx.Node) -> list[torch.fx.Node]:
        """The nodes whose memory it reads."""
        found = [self._base(s) for s in node.all_input_nodes if _is_tensor(s)]
        return list(dict.fromkeys(found))

    def _trace(self, args: tuple, kwargs: Mapping[str, Any]) -> None:
        leaves, structure = pytree.tree_flatten((args, dict(kwargs)))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self._given = [leaves[i] for i in places]
        names = list(self._tensors)
        recorder = Recorder(self.model)

        def function(*values):
            tensors = dict(zip(names, values))
            filled = list(leaves)
            for i, value in zip(places, values[len(names) :], strict=True):
                filled[i] = value
            args, kwargs = pytree.tree_unflatten(filled, structure)
            output = functional_call(self.model, tensors, args, kwargs)
            return [x for x in pytree.tree_leaves(output) if isinstance(x, torch.Tensor)]

        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            # Also of models whose tensors have no values yet (device "meta").
            values = [*self._tensors.values(), *self._given]
            fakes = [torch.empty(v.shape, dtype=v.dtype, device="cpu") for v in values]
        with mode, torch.no_grad(), recorder.recording(), explained_errors(), compiling():
            self._module = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(
                *fakes
            )
        check_operands(self._module.graph)
        self._module.graph.eliminate_dead_code()
        graph = self._module.graph
        self._nodes = [n for n in graph.nodes if n.op != "output" and _is_tensor(n)]
        self._outputs = [n for n in graph.output_node().args[0] if isinstance(n, torch.fx.Node)]
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._held = dict(zip(placeholders, names))

    def _whole_modules(self) -> set[str]:
        whole = set()
        for name, module in self.model.named_modules():
            own = next(module.parameters(recurse=False), None) is not None
            own |= next(module.buffers(recurse=False), None) is not None
            if name and (own or type(module).__name__ in self._no_split):
                whole.add(name)
        return whole | self._combining_modules()

    def _combining_modules(self) -> set[str]:
        """Those that combine what modules in them made with something from elsewhere, as a
        residual block does: a map can only say where that is for the whole. (Where a decoder
        adds up two embeddings of its own, these are together.) All of one class are alike."""
        kinds = self._kinds_of_tensors()
        found = set()
        for node in self._nodes:
            scope = origin_of(node).scope
            if not scope or node.op != "call_function":
                continue
            sources = [s for s in self._sources(node) if kinds[s] is not None]
            inside = [s for s in sources if self._made_in(s, scope) and kinds[s] == "weights"]
            if len(sources) > 1 and 0 < len(inside) < len(sources):
                found.add(scope)
            elif len(sources) > 1 and not inside and any(kinds[s] == "weights" for s in sources):
                found.add(scope)
        modules = dict(self.model.named_modules())
        classes = {type(modules[scope]) for scope in found if scope in modules}
        classes.discard(torch.nn.Sequential)
        return found | {name for name, m in modules.items() if name and type(m) in classes}

    def _kinds_of_tensors(self) -> dict[torch.fx.Node, str | None]:
        """What a tensor depends on: the model's ("weights"), else the sample ("inputs")."""
        kinds: dict[torch.fx.Node, str | None] = {}
        for node in self._nodes:
            if node.op == "placeholder":
                kinds[node] = "weights" if node in self._held else "inputs"
            else:
                found = {kinds[s] for s in node.all_input_nodes if s in kinds}
                kinds[node] = next((k for k in ("weights", "inputs") if k in found), None)
        return kinds

    def _made_in(self, node: torch.fx.Node, scope: str) -> bool:
        made = self._held[node] if node in self._held else origin_of(node).scope
        return made == scope or made.startswith(f"{scope}.")

    def _unit_of_tensor(self, name: str) -> str:
        return self._largest_whole(name.rpartition(".")[0]) or name

    def _largest_whole(self, path: str) -> str | None:
        parts = path.split(".")
        prefixes = (".".join(parts[: i + 1]) for i in range(len(parts)))
        return next((prefix for prefix in prefixes if prefix in self._whole), None)

    def _base(self, node: torch.fx.Node) -> torch.fx.Node:
        """The node whose memory a view shows."""
        while node.op == "call_function" and node.all_input_nodes:
            # What is no operator of PyTorch is a part of a tuple.
            if not getattr(node.target, "is_view", node.target is operator.getitem):
                break
            node = node.all_input_nodes[0]
        return node

    def _time(self, node, kinds, times) -> dict[str, int]:
        shapes = [source.meta["val"] for source in node.all_input_nodes if _is_tensor(source)]
        moved = sum(x.numel() * x.element_size() for x in shapes) + _bytes(node)
        flops = _flops(node)
        found = {
            kind: ROOFLINES.get(kind, ROOFLINES["host"]).time_ns(flops, moved) for kind in kinds
        }
        return found | {"host": times[node]} if node in times and "host" in kinds else found

    def _measure(self) -> dict[torch.fx.Node, int]:
        """Medians of running each operator as PyTorch does on this processor."""
        if any(tensor.is_meta for tensor in self._tensors.values()):
            raise ValueError("the model has no values: costs='measured' needs them")
        found: dict[torch.fx.Node, int] = {}

        class Clock(torch.fx.Interpreter):
            def run_node(self, n):
                if n.op != "call_function":
                    return super().run_node(n)
                runs = []
                for _ in range(_RUNS):
                    start = time.perf_counter_ns()
                    result = super().run_node(n)
                    runs.append(time.perf_counter_ns() - start)
                found[n] = round(statistics.median(runs))
                return result

        values = [*self._tensors.values(), *self._given]
        with torch.no_grad():
            Clock(self._module).run(*(value.detach() for value in values))
        return found

    @staticmethod
    def _place_inputs(graph: baechi.Graph, units: list[str | None]) -> None:
        """What belongs to no module is where it is read first."""
        for source, _, target in reversed(graph.edges):
            if units[source] is None:
                units[source] = units[target]

    def _add_unused(self, graph: baechi.Graph, units: list[str | None]) -> None:
        """Parameters that this sample does not reach need memory all the same."""
        named = {op.name for op in graph.ops}
        for name, tensor in self._tensors.items():
            if name not in named:
                graph.add(name, 0, resident=tensor.numel() * tensor.element_size())
                units.append(self._unit_of_tensor(name))


def _known_classes(model: torch.nn.Module, classes: Collection[str | type]) -> set[str]:
    """The names of classes, each of which is one of a module of the model."""
    if isinstance(classes, str):
        raise TypeError(f"no_split='{classes}' is one string: write no_split=['{classes}']")
    if isinstance(classes, type):
        name = classes.__name__
        raise TypeError(f"no_split={name} is one class: write no_split=[{name}]")
    known = {type(module).__name__ for module in model.modules()}
    names = set()
    for each in classes:
        if not isinstance(each, str | type):
            raise TypeError(f"no_split has {each!r}: give classes of modules, or their names")
        name = each if isinstance(each, str) else each.__name__
        names.add(name)
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(sorted(known))}"
            raise ValueError(f"no_split: the model has no module of class '{name}': {hint}")
    return names


class _Joined:
    """Units that must be together (disjoint sets)."""

    def __init__(self):
        self._parent: dict[str, str] = {}

    def find(self, unit: str | None) -> str | None:
        while unit in self._parent:
            unit = self._parent[unit]
        return unit

    def join(self, one: str, other: str) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self._parent[other] = one


def _is_tensor(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor | tuple | list)


def _bytes(node: torch.fx.Node) -> int:
    values = pytree.tree_leaves(node.meta["val"])
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


def _flops(node: torch.fx.Node) -> float:
    count = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count is not None:
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        return float(count(*args, **kwargs, out_val=node.meta["val"]))
    return float(sum(v.numel() for v in pytree.tree_leaves(node.meta["val"])))
