# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results as files: experiments.json, which grows, and from it the page and the plots."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
from typing import Any

from baechi.common import files
from baechi.experiments import bosen, curves, orion, p3, pieces, published
from baechi.experiments.tables import Cell, Table
from baechi.importer.common.errors import ImportFailure

RESULTS = "experiments.json"
_FORMAT = {"format": "baechi-experiments", "version": 1}
# Of the page, after the numbered tables.
_LAST = ["compile", "executed", "learned", "losses", "losses-pieces"]


def keep(folder: pathlib.Path, tables: list[Table], machine: str) -> None:
    """Adds tables to the folder's experiments.json. A table that is there keeps its rows
    of other models."""
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / RESULTS
    known = read(results) if results.exists() else {}
    for table in tables:
        known[table.name] = _merged(known.get(table.name), table)
    known = dict(sorted(known.items(), key=lambda item: (item[0] in _LAST, item[0])))
    data = {**_FORMAT, "machine": machine, "tables": list(map(dataclasses.asdict, known.values()))}
    files.write(results, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


def publish(folder: pathlib.Path, machine: str) -> list[pathlib.Path]:
    """Writes the page and the plots of what experiments.json has. Returns the files."""
    known = read(folder / RESULTS)
    page = folder / "experiments.md"
    files.write(page, page_text(list(known.values()), machine).encode())
    if "pieces" in known:
        _fill(folder / "splitting.md", pieces.on_a_page(known))
    return [page, *(plot(table, folder) for table in known.values() if table.plot)]


def _fill(page: pathlib.Path, table: str) -> None:
    """Writes a table between its marks on a page that has them."""
    text = page.read_text() if page.exists() else ""
    before, mark, rest = text.partition("<!-- pieces -->\n")
    _, end, after = rest.partition("<!-- end of pieces -->")
    if mark and end:
        files.write(page, f"{before}{mark}{table}\n{end}{after}".encode())


def _merged(old: Table | None, new: Table) -> Table:
    if old is None or old.columns != new.columns:
        return new
    again = {row["model"] for row in new.rows}
    kept = [row for row in old.rows if row["model"] not in again]
    return dataclasses.replace(new, rows=[*kept, *new.rows])


def read(file: pathlib.Path) -> dict[str, Table]:
    """The tables of an experiments.json. Raises ImportFailure for another file."""
    try:
        data = json.loads(file.read_text())
        if {key: data[key] for key in _FORMAT} != _FORMAT:
            raise KeyError("format")
        return {table["name"]: Table(**table) for table in data["tables"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ImportFailure(f"{file}: not written by baechi.experiments; remove it") from error


def markdown(table: Table) -> str:
    """One table with its title and notes."""
    keys = list(table.columns)
    lines = [f"## {table.name}: {table.title}", *table.notes, ""]
    lines.append("| " + " | ".join(table.columns.values()) + " |")
    lines.append("|" + "---|" * len(keys))
    for row in table.rows:
        lines.append("| " + " | ".join(_cell(row.get(key)) for key in keys) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: Cell) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)


def page_text(tables: list[Table], machine: str) -> str:
    """The page, in Markdown."""
    low, high = published.PLACEMENT_SECONDS["optimised"]
    slow, fast = published.GNMT_SPEED_UP
    head = f"""<!-- Written by python -m baechi.experiments; do not edit. -->

# The paper's experiments

```
python -m baechi.experiments all --output=docs
python -m baechi.experiments table4 --execute --output=docs
python -m baechi.experiments compile --models=inception-32,gnmt50-128 --output=docs
python -m baechi.experiments losses --output=docs
python -m baechi.experiments losses-pieces --output=docs
python -m baechi.experiments learned --output=docs
python -m baechi.experiments p3 --output=docs
python -m baechi.experiments orion --output=docs
python -m baechi.experiments bosen --output=docs
python -m baechi.experiments bosen-large --output=docs
python -m baechi.experiments memory --output=docs
python -m baechi.experiments halves --output=docs
python -m baechi.experiments pieces --output=docs
```

Tables by model are written after each of them; with `--resume` a command that was ended goes on
from there, without the models whose rows were made by the same code of the same inputs.

Models imported from JAX at full size ([import.md](import.md)) and placed on
{machine}.
Costs are the roofline's, steps are predictions of the scheduler under that machine's links
([placement.md](placement.md)), and every placement was verified. The paper (Jeon et al., SoCC 2020,
arXiv 2301.08695) measured other frameworks' graphs on such a machine: ratios can be compared, times
cannot. Of its figures stand here those that this project has a source for: placing in {low} to
{high} s with its optimisations; GNMT {slow} to {fast} times as fast on four GPUs as on one; a step
at most {published.WORST_AGAINST_EXPERT} times the expert's; and the authors' later runs of
Inception-V3 in PyTorch.
"""
    parts = [head]
    for table in tables:
        parts.append(markdown(table))
        if table.plot:
            parts.append(f"![{table.title}](experiments-{table.name}.svg)\n")
    return "\n".join(parts)


def plot(table: Table, folder: pathlib.Path) -> pathlib.Path:
    """Bars of the plotted columns for each row, as experiments-NAME.svg."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ImportFailure("plots need matplotlib; scripts/python-env installs it") from error
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "baechi"  # the same picture, the same file
    from matplotlib import pyplot

    file = folder / f"experiments-{table.name}.svg"
    drawn = {
        "curve": curves.draw,
        "gains": p3.draw,
        "passes": orion.draw,
        "convergence": bosen.draw,
    }
    if table.plot and (draw := drawn.get(table.plot[0])):
        figure = draw(table)
        figure.savefig(file, metadata={"Date": None})
        pyplot.close(figure)
        return file
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    width = 0.8 / len(table.plot)
    titles: dict[str, Any] = {key: table.columns.get(key.removesuffix("_ms")) for key in table.plot}
    for i, key in enumerate(table.plot):
        heights = [_number(row.get(key)) for row in table.rows]
        places = [j + (i - (len(table.plot) - 1) / 2) * width for j in range(len(heights))]
        bars = axes.bar(places, heights, width, label=titles[key])
        for bar, height in zip(bars, heights):
            if math.isnan(height):  # nothing fits
                middle = bar.get_x() + width / 2
                axes.text(middle, 0, "×", ha="center", va="bottom", color=bar.get_facecolor())
    axes.set_xticks(range(len(table.rows)), [str(row["model"]) for row in table.rows])
    axes.set_ylabel("step, ms")
    axes.set_title(table.title)
    figure.legend(loc="outside lower center", ncols=len(table.plot), fontsize="small")
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
    return file


def _number(value: Cell) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
