# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What happens to gradients between `backward()` and the update."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch

Tensors = Mapping[str, torch.Tensor]


@dataclasses.dataclass(frozen=True)
class GradientOptions:
    """Those of `compile_step`; raises ValueError and TypeError for what cannot be.

    clip_norm: the arguments of `torch.nn.utils.clip_grad_norm_`; clip_value: of
    `clip_grad_value_`.
    """

    clip_norm: Mapping[str, Any] | None = None
    clip_value: float | None = None
    accumulate: int = 1
    scaler: torch.amp.GradScaler | None = None

    @staticmethod
    def checked(
        clip_grad_norm: float | Mapping[str, Any] | None,
        clip_grad_value: float | None,
        accumulate: int,
        scaler: torch.amp.GradScaler | None,
    ) -> GradientOptions:
        if type(accumulate) is not int or accumulate < 1:
            raise ValueError(f"accumulate={accumulate!r}: give a number of calls, from 1")
        if clip_grad_value is not None:
            _check_limit("clip_grad_value", clip_grad_value)
        clip = None
        if clip_grad_norm is not None:
            given = clip_grad_norm if isinstance(clip_grad_norm, Mapping) else None
            clip = {"max_norm": clip_grad_norm} if given is None else dict(given)
            known = ("max_norm", "norm_type", "error_if_nonfinite")
            if unknown := set(clip) - set(known):
                raise ValueError(
                    f"clip_grad_norm has no '{min(unknown)}'; known: {', '.join(known)}"
                )
            if "max_norm" not in clip:
                raise ValueError("clip_grad_norm lacks 'max_norm'")
            _check_limit("clip_grad_norm", clip["max_norm"])
            clip = {"norm_type": 2.0, "error_if_nonfinite": False} | clip
        if scaler is not None and not isinstance(scaler, torch.amp.GradScaler):
            raise TypeError(f"scaler is a {type(scaler).__name__}: give a torch.amp.GradScaler")
        scales = scaler is not None and scaler.is_enabled()
        return GradientOptions(clip, clip_grad_value, accumulate, scaler if scales else None)

    def numbers(self) -> dict[str, float]:
        """What a step gets of the scaler's."""
        if self.scaler is None:
            return {}
        scale = float(self.scaler.get_scale())
        # In two factors, the second a power of two: 1 / 2^127 is a denormal number.
        mantissa, exponent = math.frexp(1.0 / scale)
        half = exponent // 2
        return {
            "scale": scale,
            "unscale": math.ldexp(mantissa, half),
            "unscale_rest": math.ldexp(1.0, exponent - half),
        }

    def applied(
        self, gradients: Tensors, numbers: Tensors
    ) -> tuple[Tensors, dict[str, torch.Tensor]]:
        """The gradients as the update gets them, and what is told beside the loss:
        `overflow` (whether any was not finite before it was unscaled) and
        `gradient_norm` (before it was clipped)."""
        told = {}
        if self.scaler is not None:
            finite = [torch.isfinite(gradient).all() for gradient in gradients.values()]
            told["overflow"] = torch.stack(finite).all().logical_not()
            factor, rest = numbers["unscale"], numbers["unscale_rest"]
            gradients = {name: (g * factor * rest).to(g.dtype) for name, g in gradients.items()}
        if self.clip_value is not None:
            limit = float(self.clip_value)
            gradients = {name: g.clamp(-limit, limit) for name, g in gradients.items()}
        if self.clip_norm is not None:
            kind = float(self.clip_norm["norm_type"])
            norms = [torch.linalg.vector_norm(g, kind) for g in gradients.values()]
            # In the widest of their types, as PyTorch stacks them.
            widest = max((norm.dtype for norm in norms), key=lambda dtype: dtype.itemsize)
            stacked = torch.stack([norm.to(widest) for norm in norms])
            norm = told["gradient_norm"] = torch.linalg.vector_norm(stacked, kind)
            factor = (float(self.clip_norm["max_norm"]) / (norm + 1e-6)).clamp(max=1.0)
            gradients = {name: g * factor.to(g.dtype) for name, g in gradients.items()}
        return gradients, told

    def check_norm(self, norm: torch.Tensor) -> None:
        """RuntimeError for one that is not finite, where that is asked for."""
        if self.clip_norm and self.clip_norm["error_if_nonfinite"] and not norm.isfinite():
            raise RuntimeError(
                f"the total norm of order {self.clip_norm['norm_type']} of the gradients is "
                f"{norm.item()}, so they cannot be clipped (error_if_nonfinite=True); nothing "
                "was updated"
            )

    def after_update(self, overflow: bool) -> None:
        """The scaler's `update()`."""
        if self.scaler is None:
            return
        scaler = self.scaler
        if scaler._scale is None:
            scaler._lazy_init_scale_growth_tracker(torch.device("cpu"))
        torch._amp_update_scale_(
            scaler._scale,
            scaler._growth_tracker,
            torch.full((), float(overflow), device=scaler._scale.device),
            scaler.get_growth_factor(),
            scaler.get_backoff_factor(),
            scaler.get_growth_interval(),
        )


def _check_limit(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a {type(value).__name__}: give a number")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{name}={value}: give a limit of at least 0")


class Consumed(torch.Tensor):
    """The `.grad` of a parameter that a step has updated by its gradient, which is gone.

    Clipping, scaling or applying it now would do nothing, or the update twice: every use
    but to drop or convert it is an error.
    """

    _why = (
        "this .grad was used up by a compiled step, or is not computed by it: it updates what "
        "its own optimizer has (a second optimizer needs a step of its own): say clipping, "
        "accumulation and scaling to compile_step (clip_grad_norm=, clip_grad_value=, "
        "accumulate=, scaler=), and before a backward pass of your own call "
        "optimizer.zero_grad()"
    )

    @staticmethod
    def __new__(cls, like: torch.Tensor, dtype: torch.dtype | None = None) -> Consumed:
        return torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=dtype or like.dtype, device=like.device
        )

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return "<a gradient that a compiled step has used>"

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        aten = torch.ops.aten
        if function in (aten.detach.default, aten.alias.default, aten.clone.default):
            return cls(args[0])
        if function is aten._to_copy.default:
            return cls(args[0], (kwargs or {}).get("dtype"))
        raise RuntimeError(cls._why)


class Elsewhere(Consumed):
    """What a hook computes before a module reads it (the weight of a pruned layer): a
    compiled step computes it where it runs. A call of the model makes it anew."""

    _why = (
        "this tensor is computed by a hook of the model and, within a compiled step, is not "
        "here: call the model, or read the parameters that it is computed from"
    )

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return "<a tensor that a hook computes within a compiled step>"
