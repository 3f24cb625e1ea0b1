# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program's run came to, and how findings are told apart."""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Verdict:
    """'equal'; 'rounding' (further off, but so is the framework); 'unstable' (the framework's
    own answer is not determined); 'xla' (an error of the framework's compiler: without it, the
    framework gives our result, or with it alone the process ends, too); 'invalid' (the
    framework refuses it); 'refused' (an error that says so); 'broken' (the fuzzer failed); or a
    finding: 'wrong' (another result), 'failed' (any other error), 'crashed' (the process
    ended)."""

    kind: str
    words: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind in ("wrong", "failed", "crashed")

    @property
    def signature(self) -> str:
        """Equal for findings and refusals that say the same about different programs."""
        words = "" if self.kind == "wrong" else self.words.split(" | ")[0]
        words = re.sub(r"loc\(.*?\): |in '.*?'|<[^>]*>", "", words)
        return f"{self.kind}: {re.sub(r'[0-9]+', 'N', words)}"[:200]


def of_error(kind: str, error: BaseException) -> Verdict:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return Verdict(kind, f"{type(error).__name__}: {' | '.join(lines[:3])}")
