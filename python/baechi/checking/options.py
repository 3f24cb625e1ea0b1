# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls are checked, how closely, and what is raised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

import ml_dtypes
import numpy as np

# Of the largest element of a result. Sums of other orders differ by some 1e-6 in single
# precision; what is beyond these on well-conditioned steps is no rounding.
TOLERANCES: Mapping[str, float] = {
    "float64": 1e-10,
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 4e-2,
}
# Single precision, where GPUs may round the factors of products (`cuda_math`).
_ROUNDED_FACTORS = {"tf32": 1e-2, "fp16": 1e-2, "bf16": 4e-2}

Check = Literal["first"] | int | None
Tolerance = float | Mapping[str, float] | None


class CheckError(RuntimeError):
    """A step's results are not the framework's; the message says which and where.

    result: the name of the first result that differs.
    error: its largest difference, as a part of the largest element's size; infinite where
        one is NaN or infinite and the other is not, or where integers differ.
    tolerance: what was allowed.
    operator, source: of the first operation that differs, as far as it was found:
        its name ("decoder/l0/cond") and "file:line:column".
    """

    def __init__(
        self,
        message: str,
        result: str,
        error: float,
        tolerance: float,
        operator: str = "",
        source: str = "",
    ):
        super().__init__(message)
        self.result, self.error, self.tolerance = result, error, tolerance
        self.operator, self.source = operator, source

    def __reduce__(self) -> tuple[Any, ...]:
        """An exception's own gives the message alone to the constructor."""
        fields = self.result, self.error, self.tolerance, self.operator, self.source
        return type(self), (str(self), *fields)


@dataclasses.dataclass(frozen=True)
class CheckOptions:
    """`check=` and `check_tolerance=`; raises TypeError or ValueError for others."""

    check: Check = None
    tolerance: Tolerance = None
    cuda_math: str = "fp32"

    def __post_init__(self) -> None:
        every = self.check
        number = isinstance(every, int) and not isinstance(every, bool) and every > 0
        if every is not None and every != "first" and not number:
            raise ValueError(
                f"check is {every!r}: give 'first' (each program's first call), a number N "
                "(the first call and every Nth after it), or None"
            )
        if self.tolerance is None:
            return
        if every is None:
            raise ValueError("check_tolerance is given, but nothing is checked: add check='first'")
        given = self.tolerance
        values = given if isinstance(given, Mapping) else dict.fromkeys(TOLERANCES, given)
        for kind, value in values.items():
            if kind not in TOLERANCES:
                raise ValueError(
                    f"check_tolerance names the type {kind!r}; it may name {', '.join(TOLERANCES)}"
                )
            real = isinstance(value, int | float) and not isinstance(value, bool)
            if not real or not math.isfinite(value) or value < 0:
                raise ValueError(
                    f"check_tolerance is {value!r}: give a part of a result's largest element, "
                    "such as 1e-4, or one for each type: {'float32': 1e-4}"
                )

    def is_due(self, calls: int) -> bool:
        """Whether the call after so many of the same program is checked."""
        if self.check is None:
            return False
        return calls == 0 if self.check == "first" else calls % int(self.check) == 0

    def of(self, dtype: Any) -> float:
        """The tolerance of a result's type: 0 for integers and booleans."""
        kind = np.dtype(dtype)
        if not is_floating(kind):
            return 0.0
        given = self._given(kind)
        if given is not None:
            return given
        if kind == np.float32 and self.cuda_math in _ROUNDED_FACTORS:
            return _ROUNDED_FACTORS[self.cuda_math]
        return TOLERANCES[kind.name]

    def binds(self, dtype: Any) -> bool:
        """Whether the user has said what of this type may differ: that, and nothing more."""
        return self._given(np.dtype(dtype)) is not None

    def _given(self, kind: np.dtype[Any]) -> float | None:
        if self.tolerance is None or not is_floating(kind):
            return None
        if isinstance(self.tolerance, Mapping):
            return self.tolerance.get(kind.name)
        return float(self.tolerance)


def is_floating(dtype: np.dtype[Any]) -> bool:
    return bool(np.issubdtype(dtype, np.floating)) or dtype == ml_dtypes.bfloat16
