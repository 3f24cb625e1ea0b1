# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a PyTorch function to a graph of ATen operations without mutations."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.utils.checkpoint
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from baechi.common import collector
from baechi.importer.torch import (
    byte_types,
    graph_rules,
    lifting,
    linalg,
    passes,
    recurrent,
    transforms,
)
from baechi.importer.torch import decompositions as torch_decompositions
from baechi.importer.torch import functions as torch_functions
from baechi.importer.torch.comparison import mend_comparisons
from baechi.importer.torch.empty import fold_empty
from baechi.importer.torch.indices import Checks, Lookup
from baechi.importer.torch.layout import inverse, memory_order
from baechi.importer.torch.names import Recorder, origin_of
from baechi.importer.torch.refusals import (
    DATA_DEPENDENT,
    Refusals,
    explained_errors,
    line_of,
)

aten = torch.ops.aten


@dataclasses.dataclass
class Trace:
    """A graph, and what its flat arguments are.

    After the function's own arguments come tensors that it holds itself
    (`constants`) and random numbers that it draws (`draws`, in the order of the
    program; each call of one gives the numbers of one run). After the function's own
    results comes, where there are `checks`, a tensor that says for each whether an index
    that the program computes was out of range (`flags`).
    """

    graph: torch.fx.GraphModule
    names: list[str]
    constants: list[torch.Tensor]
    draws: list[Callable[[], torch.Tensor]]
    looked_up: dict[int, list[Lookup]]
    checks: list[Lookup]

    def tables(self) -> dict[int, list[Lookup]]:
        """Arguments that are indices as they are, and what is looked up by them."""
        return self.looked_up

    @property
    def placeholders(self) -> list[torch.fx.Node]:
        return [node for node in self.graph.graph.nodes if node.op == "placeholder"]

    @property
    def outputs(self) -> list[torch.fx.Node]:
        """The function's own."""
        return self._results[: len(self._results) - bool(self.checks)]

    @property
    def flags(self) -> list[torch.fx.Node]:
        """The result that belongs to `checks`, if there are any."""
        return self._results[-1:] if self.checks else []

    @property
    def _results(self) -> list[torch.fx.Node]:
        return list(self.graph.graph.output_node().args[0])


def trace(
    function: Callable[..., Sequence[torch.Tensor]],
    arguments: Sequence[torch.Tensor],
    names: Sequence[str],
    recorder: Recorder,
) -> Trace:
    """Traces `function(*arguments)`, which returns tensors.

    names: of the arguments. Raises ImportFailure for what has no fixed shapes, with all
    else that is unsupported.
    """
    passes.prepare()
    try:
        return _trace(function, arguments, names, recorder)
    except BaseException:
        passes.drop()
        raise


def _trace(
    function: Callable[..., Sequence[torch.Tensor]],
    arguments: Sequence[torch.Tensor],
    names: Sequence[str],
    recorder: Recorder,
) -> Trace:
    refusals = Refusals(recorder)
    # In two passes: `functionalize` knows neither `vmap` (masks of attention) nor
    # autograd's functions, but in the graph of the first pass neither is left.
    with collector.paused(), lowerable_operations(), recorder.recording(), explained_errors():
        mutating, unseen = _followed(function, arguments, refusals)
        graph_rules.drop_tests(mutating.graph)
        graph_rules.check_operands(mutating.graph)
        graph_rules.refuse_assertions(mutating.graph)
        # What `functionalize` is not given it leaves with its mutations.
        constants = lifting.constants(mutating)
        checks = Checks(mutating.graph)
        recorded = _Recorded(mutating, recorder, refusals, checks)
        functional = torch.func.functionalize(recorded.checked, remove="mutations")
        given = [*arguments, *constants]
        # Its types are in the first pass.
        with torch.autocast("cpu", enabled=False):
            graph = _traced(functional, given, torch_decompositions.table())
    graph_rules.check_shapes(graph.graph)
    graph_rules.drop_identities(graph.graph)
    graph_rules.spell_numbers(graph.graph)
    fold_empty(graph.graph)
    mend_comparisons(graph.graph)
    byte_types.widen(graph)
    constants += lifting.constants(graph)
    draws = lifting.draws(graph.graph)
    further = [f"constant/{i}" for i in range(len(constants))]
    further += [f"random/{i}" for i in range(len(draws))]
    graph.graph.eliminate_dead_code()
    graph.recompile()
    if refusals.found:
        raise refusals.error(linalg.unsupported(graph), unseen)
    given = [node for node in mutating.graph.nodes if node.op == "placeholder"]
    tables = {i: checks.given[node] for i, node in enumerate(given) if node in checks.given}
    return Trace(graph, [*names, *further], constants, draws, tables, checks.flags)


def _followed(
    function: Callable[..., Sequence[torch.Tensor]],
    arguments: Sequence[torch.Tensor],
    refusals: Refusals,
) -> tuple[torch.fx.GraphModule, str]:
    """The graph; where it depends on values, with stand-ins for them, as far as these
    lead, and why no further."""
    with contextlib.suppress(*DATA_DEPENDENT):
        return _traced(function, arguments), ""
    unseen = ""

    def standing_in(*values):
        nonlocal unseen
        with refusals:
            try:
                return function(*values)
            except Exception as error:  # whatever a model makes of numbers that are none
                if not refusals.found:
                    raise
                unseen = f"What follows was not looked at ({line_of(error)})."
        return refusals.results

    module = _traced(standing_in, arguments)
    for node in reversed(module.graph.nodes):
        if node.op == "call_function" and "val" not in node.meta and not node.users:
            module.graph.erase_node(node)  # what was refused
    return module, unseen


def _traced(
    function: Callable[..., Sequence[torch.Tensor]],
    arguments: Sequence[torch.Tensor],
    decompositions: dict | None = None,
) -> torch.fx.GraphModule:
    # Without symbols for what depends on values, which `make_fx` would make by itself.
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    traced = make_fx(
        function,
        decomposition_table=decompositions,
        tracing_mode="fake",
        _allow_non_fake_inputs=True,
    )
    # Graphs are interpreted and lowered, and few called: these are written as code then.
    with _use_lazy_graph_module(True):
        return traced(*(mode.from_tensor(value) for value in arguments))


DENSE = "all are dense here: take sparse=False, or to_dense() before"


class _Recorded(torch.fx.Interpreter):
    """Runs a graph; what is traced has the origin of its node, and results lie in
    memory as the graph's views of them expect, however an operation is decomposed."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        recorder: Recorder,
        refusals: Refusals,
        checks: Checks,
    ):
        super().__init__(module)
        self._recorder, self._refusals, self._checks = recorder, refusals, checks
        self._flags: list[torch.Tensor] = []

    def checked(self, *values: torch.Tensor) -> list[torch.Tensor]:
        """The graph's results, and whether indices were out of range; see Trace."""
        self._flags = []
        results = list(self.run(*values))
        return [*results, torch.stack(self._flags)] if self._flags else results

    def run_node(self, n: torch.fx.Node) -> object:
        if n.target is aten._linalg_check_errors.default:
            return None  # it looks at values
        with self._recorder.known(origin_of(n)):
            for index, lookup in self._checks.computed.get(n, ()):
                self._flags.append(lookup.outside(self.env[index]).any())
            try:
                result = super().run_node(n)
            except Exception as error:
                if not isinstance(n.target, torch._ops.OpOverload):
                    raise
                # Of many lines the first; Interpreter adds the rest.
                reason = str(error).strip().partition("\n")[0]
                self._refusals.note(n.target, origin_of(n), reason)
                return pytree.tree_map_only(torch.Tensor, _zeros_like, n.meta["val"])
            if any(_is_sparse(x) for x in pytree.tree_leaves(result)):
                self._refusals.note(n.target, origin_of(n), "a sparse tensor; " + DENSE)
                return pytree.tree_map_only(torch.Tensor, _dense_like, result)
            if isinstance(n.target, torch._ops.OpOverload) and not _gives_a_view(n.target):
                result = pytree.tree_map(_laid_out_as, result, n.meta["val"])
            return result

    def call_function(self, target, args, kwargs):
        """Random numbers are drawn in the order of memory: for a tensor that lies there
        transposed, as for the tensor that it is a view of."""
        drawn = args and _draws(target) and target not in _DRAWN_IN_ORDER
        order = _other_order(args[0]) if drawn else None
        if order is None:
            return super().call_function(target, args, kwargs)
        result = super().call_function(target, (args[0].permute(order), *args[1:]), kwargs)
        back = inverse(order)
        return pytree.tree_map_only(torch.Tensor, lambda x: x.permute(back), result)


def _is_sparse(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout != torch.strided


def _dense_like(value: torch.Tensor) -> torch.Tensor:
    """Stands in for what was noted."""
    return torch.empty(value.shape, dtype=value.dtype, device=value.device)


# Into new memory, which has the order of the dimensions, or, of a normal distribution, in
# another way where memory has gaps or another order (lifting.draws).
_DRAWN_IN_ORDER = {
    aten.normal_.default,
    aten.randn_like.default,
    aten.bernoulli.default,
    aten.bernoulli.p,
    aten.normal.Tensor_float,
    aten.normal.Tensor_Tensor,
    aten.normal.float_Tensor,
}


def _draws(target: object) -> bool:
    random = torch.Tag.nondeterministic_seeded
    return isinstance(target, torch._ops.OpOverload) and random in target.tags


def _other_order(value: object) -> list[int] | None:
    """The dimensions of a tensor as they lie in memory, where that is another order."""
    if not isinstance(value, torch.Tensor) or value.is_contiguous() or 0 in value.stride():
        return None
    order = memory_order(value.shape, value.stride())
    return None if order == sorted(order) else order


def _zeros_like(recorded: torch.Tensor) -> torch.Tensor:
    return _laid_out_as(torch.zeros(recorded.shape, dtype=recorded.dtype), recorded)


def _gives_a_view(target: torch._ops.OpOverload) -> bool:
    return any(result.alias_info is not None for result in target._schema.returns)


def _laid_out_as(found: object, recorded: object) -> object:
    """A copy with the strides of `recorded`, where they are others."""
    if not isinstance(found, torch.Tensor) or not isinstance(recorded, torch.Tensor):
        return found
    sizes = zip(found.shape, found.stride(), recorded.stride(), strict=True)
    if all(size < 2 or ours == theirs for size, ours, theirs in sizes):
        return found
    order = memory_order(recorded.shape, recorded.stride())
    found = found.permute(order).clone(memory_format=torch.contiguous_format)
    return found.permute(inverse(order))


@contextlib.contextmanager
def lowerable_operations() -> Iterator[None]:
    """Attention and LSTM as plain operations instead of fused ones, and batch
    normalization with its new statistics."""
    kernels = sdpa_kernel(SDPBackend.MATH), enable_python_dispatcher(), _PlainForms()
    with contextlib.ExitStack() as stack:
        plain = _kept_tensors(), _masks_as_given(), transforms.plain_zeros()
        for each in (*kernels, compiling(), *plain):
            stack.enter_context(each)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of what the flags are that are set back
        with torch.backends.mkldnn.flags(enabled=False):
            yield


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """`torch.compiler.is_compiling()`, as for `torch.export`: models look at values (is
    there padding?) only where it is false."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


@contextlib.contextmanager
def _kept_tensors() -> Iterator[None]:
    """Checkpoints, whose hooks autograd's functions do not know, as plain calls: what
    is kept and what is computed again is not theirs to say here."""

    def apply(function, _, *args):
        return function(*args)

    def nothing(*_, **__):
        yield

    owner = torch.utils.checkpoint
    before = owner.CheckpointFunction.apply, owner._checkpoint_without_reentrant_generator
    owner.CheckpointFunction.apply = apply
    owner._checkpoint_without_reentrant_generator = nothing
    try:
        yield
    finally:
        owner.CheckpointFunction.apply, owner._checkpoint_without_reentrant_generator = before


@contextlib.contextmanager
def _masks_as_given() -> Iterator[None]:
    """`nn.Transformer`'s masks without a look at whether they are causal, which is a
    hint for faster kernels: they are added to the scores all the same."""

    def is_causal(mask, hint=None, size=None):
        return hint is True

    owner = torch.nn.modules.transformer
    before = owner._detect_is_causal_mask
    owner._detect_is_causal_mask = is_causal
    try:
        yield
    finally:
        owner._detect_is_causal_mask = before


class _PlainForms(TorchFunctionMode):
    """Attention without masks of the user's, where no row can be masked wholly:
    PyTorch's own form checks every row for that. Recurrent networks with dropout."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.nn.functional.scaled_dot_product_attention:
            if (mixed := _attention(*args, **kwargs)) is not None:
                return mixed
        if not kwargs and recurrent.is_recurrent(function):
            if recurrent.has_dropout(args):
                return recurrent.layer_by_layer(function, args)
            return recurrent.whole(function, args)
        if function is torch.Tensor.tolist:
            return _listed(*args)
        if function is torch.Tensor.numpy:
            raise DataDependentOutputException("Tensor.numpy")
        if function in torch_functions.TABLE:
            own = torch_functions.TABLE[function](*args, **kwargs)
            if own is not NotImplemented:
                return own
        return function(*args, **kwargs)


def _listed(x: torch.Tensor) -> Any:
    """`tolist` by element, which shows what depends on values."""
    return [_listed(row) for row in x.unbind()] if x.dim() else x.item()


def _attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    length, memory = query.shape[-2], key.shape[-2]
    if attn_mask is not None or dropout_p or enable_gqa or (is_causal and length != memory):
        return None
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.transpose(-2, -1)) * scale
    if is_causal:
        rows = torch.arange(length)
        allowed = rows.reshape(-1, 1) >= rows
        scores = torch.where(allowed, scores, torch.full((), float("-inf"), dtype=scores.dtype))
    return torch.softmax(scores, -1) @ value
