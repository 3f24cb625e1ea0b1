# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where experts put the models of the collection: name patterns to devices.

The files beside this one, `experts/MODEL.expert`, are expert files
(docs/formats.md) whose devices are places in a row of four. On a machine of
another size the row is stretched over its devices.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from baechi.importer.common.errors import ImportFailure

PLACES = 4
_FOLDER = pathlib.Path(__file__).parent / "experts"


def known() -> list[str]:
    """The models that have an expert's placement."""
    return sorted(file.stem for file in _FOLDER.glob("*.expert"))


def rules(model: str, devices: Sequence[str]) -> str:
    """The expert file of a model for these devices.

    Place p of four is device `p * len(devices) // 4`, so that neighbours stay
    neighbours. Raises ImportFailure for a model without one.
    """
    file = _FOLDER / f"{model}.expert"
    if not file.is_file():
        raise ImportFailure(
            f"no expert's placement is known for {model}; for: {', '.join(known())}"
        )
    lines = [f"# {model} on {', '.join(devices)}"]
    for line in file.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            lines.append(line)
            continue
        pattern, _, place = line.rpartition("=")
        lines.append(f"{pattern}= {devices[int(place) * len(devices) // PLACES]}")
    return "\n".join(lines) + "\n"
