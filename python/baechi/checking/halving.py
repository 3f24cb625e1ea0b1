# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first operation whose values are wrong, by computing parts of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from baechi.checking.compare import Difference


class Wrong(NamedTuple):
    """last: the number of the operation that a part must end with to differ. others: so many
    before it may be to blame instead. difference: what the part has."""

    last: int
    others: int
    difference: Difference


def first_wrong(
    total: int,
    cuts: Sequence[int],
    judge: Callable[[int], Difference | None],
    refusals: tuple[type[Exception], ...],
) -> Wrong | None:
    """judge: compares a part of so many operations, or raises one of the refusals; cuts: how many
    a part may have, in order. None: there is no difference in the whole either, once it has no
    other program around it."""
    found: Difference | None = None
    right, wrong = 0, len(cuts) - 1  # the cut `wrong` differs, those before `right` do not
    try:
        found = judge(total)
        if found is None:
            return None
        while right < wrong:
            middle = (right + wrong) // 2
            difference = judge(cuts[middle])
            if difference is None:
                right = middle + 1
            else:
                wrong, found = middle, difference
    except refusals:
        if found is None:
            return None  # a part of a program may be refused where the whole is not
    return Wrong(cuts[wrong] - 1, cuts[wrong] - 1 - (cuts[right - 1] if right else 0), found)
