# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled steps of all front ends share: they show themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baechi import svg

if TYPE_CHECKING:
    from baechi.picture import Picture
    from baechi.program import Program


class Shown:
    """Has the program that was called last as `_latest`; None: there is none yet."""

    _latest: Program | None

    def picture(self) -> Picture:
        """What `baechi.plot_timeline` and `baechi.plot_memory` draw: the plan of the
        program called last."""
        if self._latest is None:
            raise RuntimeError("the step has no program yet: call it first")
        return self._latest.picture()

    def _repr_html_(self) -> str | None:
        """In notebooks: the same, once the step was called."""
        return None if self._latest is None else svg.to_html(self.picture())
