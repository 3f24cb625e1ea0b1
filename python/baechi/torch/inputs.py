# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a step is called with: checked, and named as the model's `forward` does."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from baechi.steps.compiled import as_key

# Python values that a program has in its code: they cannot change.
_NUMBERS = (bool, int, float, complex)
_VALUES = (*_NUMBERS, str, bytes, enum.Enum, slice, range, torch.dtype, torch.device)
_MOST_TOLD = 12  # leaves in a message


class Inputs:
    """The leaves of (inputs, keyword arguments, target) of a call.

    device: where the model is. Raises TypeError and ValueError, which name the argument, for
    what no step takes.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        with_target: bool,
        args: tuple,
        kwargs: dict,
        device: torch.device,
    ):
        self._model, self._with_target, self._device = model, with_target, device
        target = None
        if with_target:
            if not args:
                raise TypeError("the step lacks its target: give it last, without a name")
            *inputs, target = args
            args = tuple(inputs)
        self._args, self._kwargs, self._target = args, kwargs, target
        self._check_packed((args, kwargs, target))
        self.leaves, self.structure = pytree.tree_flatten((args, kwargs, target))
        self.positions = [i for i, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]
        self._check_leaves()
        kinds = tuple(
            (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else as_key(leaf)
            for leaf in self.leaves
        )
        self.key = self.structure, kinds

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [self.leaves[i] for i in self.positions]

    def filled(self, tensors: Iterable[torch.Tensor]) -> tuple[tuple, dict[str, Any], Any]:
        """Arguments, keyword arguments and target, with these tensors for its own."""
        leaves = list(self.leaves)
        for i, value in zip(self.positions, tensors, strict=True):
            leaves[i] = value
        return pytree.tree_unflatten(leaves, self.structure)

    def names(self) -> dict[int, str]:
        """Of the leaves: `tokens`, `batch/mask`, `target`."""
        found = []
        for name, value in self._named():
            for path, _ in pytree.tree_flatten_with_path(value)[0]:
                inner = "/".join(re.findall(r"\w+", pytree.keystr(path)))
                found.append(f"{name}/{inner}" if inner else name)
        return dict(enumerate(found))

    def _named(self) -> list[tuple[str, Any]]:
        """The arguments by name, in the order of their leaves."""
        declared = list(inspect.signature(self._model.forward).parameters.values())
        named: list[tuple[str, Any]] = []
        for i, value in enumerate(self._args):
            variadic = i >= len(declared) or declared[i].kind is inspect.Parameter.VAR_POSITIONAL
            named.append((f"inputs{i}" if variadic else declared[i].name, value))
        named += self._kwargs.items()
        if self._with_target:
            named.append(("target", self._target))
        return named

    def check_signature(self) -> None:
        """Whether the model's `forward` takes such arguments."""
        try:
            signature = inspect.signature(self._model.forward)
        except ValueError:  # of a function without Python code
            return
        wrong = _misfit(signature, self._args, self._kwargs)
        if not wrong:
            return
        takes = f"the step takes what {type(self._model).__name__}.forward{signature} takes"
        if not self._with_target:
            raise TypeError(f"{takes}: {wrong}")
        if "target" in self._kwargs and "target" not in signature.parameters:
            raise TypeError(f"{takes}, then the target: give it as the last, not by its name")
        # Too few: then what was taken for the target is one of the others, and it lacks, too.
        full = _misfit(signature, (*self._args, self._target), self._kwargs)
        if not full:
            raise TypeError(f"{takes}, then the target: missing the last argument, the target")
        if "missing" in wrong and "missing" in full:
            raise TypeError(f"{takes}, then the target: {full}, and the target")
        raise TypeError(f"{takes}, then the target: {wrong}")

    def described(self) -> str:
        """`x: float32 [8, 16], target: int64 [8]`."""
        names = self.names()
        told = [
            f"{names[i]}: {str(x.dtype).removeprefix('torch.')} {list(x.shape)}"
            if isinstance(x, torch.Tensor)
            else f"{names[i]}: {x!r:.40}"
            for i, x in enumerate(self.leaves)
            if i in names  # without a target its place is empty
        ]
        more = [f"and {len(told) - _MOST_TOLD} more"] if len(told) > _MOST_TOLD else []
        return ", ".join([*told[:_MOST_TOLD], *more])

    def _check_packed(self, given: Any) -> None:
        if not any(map(_is_packed, pytree.tree_leaves(given, is_leaf=_is_packed))):
            return
        for name, value in self._named():
            if any(map(_is_packed, pytree.tree_leaves(value, is_leaf=_is_packed))):
                raise TypeError(
                    f"the step's argument '{name}' has a PackedSequence, whose lengths are no "
                    "fixed shape: give pad_packed_sequence(...)[0], and mask what is padded"
                )

    def _check_leaves(self) -> None:
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, torch.Tensor):
                wrong = _wrong_tensor(leaf, self._device)
            elif isinstance(leaf, np.ndarray | np.generic):
                wrong = "is an array of numpy: give torch.from_numpy(...) or torch.tensor(...)"
            else:
                wrong = _wrong_value(leaf)
            if wrong:
                self.check_signature()  # it may be another argument than it seems
                raise TypeError(f"the step's argument '{self.names()[i]}' {wrong}")


def _misfit(signature: inspect.Signature, args: tuple, kwargs: dict) -> str:
    """Why a function does not take such arguments."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


def _is_packed(value: Any) -> bool:
    return isinstance(value, torch.nn.utils.rnn.PackedSequence)


def _wrong_tensor(leaf: torch.Tensor, device: torch.device) -> str:
    if leaf.requires_grad:
        return (
            "requires a gradient, which a step does not give to what it is called with: "
            "call it with .detach()"
        )
    if leaf.device != device and device.type != "cpu":
        return f"is on {leaf.device}, and the model on {device}: give .to('{device}')"
    if leaf.device != device:
        return f"is on {leaf.device}: give .cpu(), the step moves it to the machine's devices"
    if leaf.layout is not torch.strided or leaf.is_nested:
        return "is not dense: give .to_dense(), or pad it"
    return ""


def _wrong_value(leaf: Any) -> str:
    if leaf is None or callable(leaf) or isinstance(leaf, _VALUES):
        return ""
    return f"is a {type(leaf).__name__}: give tensors, numbers, strings and containers of them"
