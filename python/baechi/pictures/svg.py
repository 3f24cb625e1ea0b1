# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A picture of a step for notebooks: one HTML element with an SVG, nothing from outside."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from baechi.pictures.picture import Array, Memory, Picture, Row, duration, envelope, size, split

# Okabe & Ito 2008: told apart with every kind of colour vision; the last is for the rest.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#9a9a9a"]
_LIMIT = "#d32f2f"

_LEFT, _PLOT, _RIGHT = 108, 800, 62
_WIDTH = _LEFT + _PLOT + _RIGHT
_DEVICE, _QUEUE, _GAP, _MEMORY = 24, 12, 4, 46
# Devices whose memory is drawn: the fullest.
_MOST_MEMORY = 16
# Limits that are all so many times the peaks are not drawn to scale.
_FAR = 2.0


def colour(part: int, picture: Picture) -> str:
    """Of a part of the model."""
    return COLOURS[-1] if picture.parts[part] == "other" else COLOURS[part % len(COLOURS)]


def to_html(picture: Picture) -> str:
    """For `_repr_html_`: timeline by device and queue, memory against the limits."""
    body: list[str] = []
    top = 6
    for row in picture.rows:
        # A device that does nothing needs no more than its name.
        height = _QUEUE if row.is_queue or not len(row.spans) else _DEVICE
        body += _row(row, picture, top, height)
        top += height + _GAP
    body += _axis(picture.step_ns, top)
    top += 34
    held = [memory for memory in picture.memory if memory.peak]
    shown = sorted(held, key=lambda m: -m.peak / max(m.limit, 1))[:_MOST_MEMORY]
    fullest = max((memory.peak / max(memory.limit, 1) for memory in shown), default=0)
    for memory in held:
        if any(memory is each for each in shown):
            body += _memory(memory, picture.step_ns, top, fullest)
            top += _MEMORY + 2 * _GAP
    facts = " · ".join(html.escape(fact) for fact in picture.facts)
    left_out = len(held) - len(shown)
    note = f"<div>memory: the {len(shown)} fullest devices</div>" if left_out else ""
    return (
        '<div style="font:12px/1.5 system-ui,sans-serif;max-width:1200px">'
        f"<div>{facts}</div><div>{_legend(picture)}</div>"
        f'<svg viewBox="0 0 {_WIDTH} {top}" width="100%" role="img" '
        f'aria-label="Timeline of a step" style="font:10px system-ui,sans-serif;fill:currentColor">'
        f"{''.join(body)}</svg>{note}</div>"
    )


def comparison(report: Mapping[str, Any]) -> str:
    """Of `baechi.compare`: a table of placers, the times as bars to one scale with the
    lower bound as a line."""
    value = "max_load_ns" if report["objective"] == "max-load" else "makespan_ns"
    longest = max((row.get(value, 0) for row in report["placers"]), default=0) or 1
    bound = 100 * report["lower_bound_ns"] / longest
    heads = ["placer", "max load" if value == "max_load_ns" else "step", "", "gap", "speed-up"]
    heads += ["fullest device", "time of the placer", ""]
    lines = [_cells("th", heads)]
    for row in report["placers"]:
        ns = row.get(value)
        name = html.escape(row["name"])
        best = row["name"] == report["best"]
        tint = COLOURS[2] if best else COLOURS[0] if row["valid"] else COLOURS[-1]
        cells = [
            f"<b>{name}</b>" if best else name,
            "" if ns is None else duration(ns),
            "" if ns is None else _bar(100 * ns / longest, bound, tint),
            f"{100 * row['gap']:.1f} %" if row["valid"] else "",
            f"{row['speed_up']:.2f}×" if row.get("speed_up") else "",
            f"{100 * row['peak_share']:.0f} %" if "peak_share" in row else "",
            duration(1e9 * row["seconds"]),
            "" if row["valid"] else html.escape(row["problem"].splitlines()[0][:120]),
        ]
        lines.append(_cells("td", cells))
    facts = (
        f"lower bound {duration(report['lower_bound_ns'])} ({html.escape(report['lower_bound'])})"
    )
    return f"<table>{''.join(lines)}</table><div>{facts}</div>"


def _cells(kind: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in cells) + "</tr>"


def _bar(width: float, bound: float, tint: str) -> str:
    """Both of 100."""
    return (
        '<div style="position:relative;width:180px;height:12px">'
        f'<div style="height:12px;width:{width:.1f}%;background:{tint}"></div>'
        f'<div style="position:absolute;top:-2px;height:16px;left:{bound:.1f}%;'
        f'border-left:1px solid {_LIMIT}"></div></div>'
    )


def _legend(picture: Picture) -> str:
    swatch = '<span style="white-space:nowrap"><span style="color:{}">■</span> {}</span>'
    used = {int(p) for row in picture.rows for p in np.unique(row.spans["part"])}
    return " &nbsp; ".join(
        swatch.format(colour(p, picture), html.escape(picture.parts[p])) for p in sorted(used)
    )


def _row(row: Row, picture: Picture, top: int, height: int) -> Iterable[str]:
    middle = top + height / 2 + 3.5
    yield _text(_LEFT - 6, middle, row.label, "end", 16)
    yield (
        f'<rect x="{_LEFT}" y="{top}" width="{_PLOT}" height="{height}" '
        'fill="currentColor" fill-opacity=".06"/>'
    )
    yield _text(_LEFT + _PLOT + 5, middle, f"{100 * row.busy(picture.step_ns):.0f} %", "start")
    long, shares, parts = split(row, picture.step_ns, _PLOT)
    # Short ones: columns of one colour and about one share together, as one path.
    level = np.ceil(shares * 4).astype(int)
    for part in np.unique(parts[level > 0]):
        for step in range(1, 5):
            path = _columns((parts == part) & (level == step), top, height)
            if path:
                yield (
                    f'<path d="{path}" fill="{colour(int(part), picture)}" '
                    f'fill-opacity="{step / 4}"/>'
                )
    scale = _PLOT / max(picture.step_ns, 1)
    for span in long:
        start, finish = int(span["start"]), int(span["finish"])
        name = picture.names[span["name"]] if span["name"] >= 0 else "message"
        words = f"{name}\n{duration(finish - start)} from {duration(start)}"
        yield (
            f'<rect x="{_LEFT + start * scale:.1f}" y="{top}" '
            f'width="{max((finish - start) * scale - 0.4, 0.6):.1f}" height="{height}" '
            f'fill="{colour(int(span["part"]), picture)}">{_title(words)}</rect>'
        )


def _columns(chosen: Array, top: int, height: int) -> str:
    """Rectangles over the runs of chosen columns, as the data of a path."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
    return "".join(
        f"M{_LEFT + start} {top}h{finish - start}v{height}h{start - finish}z"
        for start, finish in zip(edges[::2], edges[1::2], strict=True)
    )


def _axis(step_ns: int, top: int) -> Iterable[str]:
    spacing = tick_spacing(step_ns)
    for k in range(int(step_ns / spacing) + 1):
        x = _LEFT + k * spacing * _PLOT / max(step_ns, 1)
        yield f'<path d="M{x:.1f} {top}v4" stroke="currentColor" stroke-opacity=".5"/>'
        yield _text(x, top + 15, duration(k * spacing) if k else "0", "middle")


def tick_spacing(length: float, most: int = 8) -> float:
    """1, 2 or 5 times a power of ten, so that at most so many intervals fit."""
    least = max(length, 1) / most
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(k * power for k in (1, 2, 5, 10) if k * power >= least))


def _memory(memory: Memory, step_ns: int, top: int, fullest: float) -> Iterable[str]:
    bottom = top + _MEMORY
    # All devices as shares of their limits, on one scale.
    near = _FAR * fullest >= 1
    full = max(memory.limit * (max(fullest, 1) if near else 1.15 * fullest), 1)
    levels = envelope(memory, step_ns, _PLOT)
    heights = bottom - levels / full * _MEMORY
    # Only where it changes.
    turns = np.flatnonzero(np.diff(levels, prepend=levels[0] - 1))
    line = "".join(f"H{_LEFT + int(x)}V{heights[x]:.1f}" for x in turns)
    words = f"{memory.label}: peak {size(memory.peak)} of {size(memory.limit)}"
    yield _text(_LEFT - 6, top + _MEMORY / 2, memory.label, "end", 16)
    yield _text(_LEFT - 6, top + _MEMORY / 2 + 12, size(memory.peak), "end")
    yield (
        f'<path d="M{_LEFT} {bottom}{line}H{_LEFT + _PLOT}V{bottom}z" fill="{COLOURS[0]}" '
        f'fill-opacity="{0.35 if memory.planned else 0.2}">{_title(words)}</path>'
    )
    y = bottom - memory.limit / full * _MEMORY if near else top
    dashes = "" if near else ' stroke-dasharray="2 4"'
    yield f'<path d="M{_LEFT} {y:.1f}h{_PLOT}" stroke="{_LIMIT}"{dashes}/>'
    share = 100 * memory.peak / max(memory.limit, 1)
    yield _text(_LEFT + _PLOT + 5, y + 4, size(memory.limit), "start")
    yield _text(_LEFT + _PLOT + 5, y + 17, f"{share:.0f} %", "start")


def _title(words: str) -> str:
    """What a browser shows under the pointer."""
    return f"<title>{html.escape(words)}</title>"


def _text(x: float, y: float, words: str, anchor: str, most: int = 40) -> str:
    shown = html.escape(cut(words, most))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'


def cut(words: str, most: int) -> str:
    """At most so many characters, with … in the middle: names begin alike, and their
    ends tell them apart. Of a pair of devices, each for itself."""
    if len(words) <= most:
        return words
    arrow = " → "
    if arrow in words:
        ends = words.split(arrow)
        return arrow.join(cut(end, (most - len(arrow)) // 2) for end in ends)
    end = 2 * (most - 1) // 3
    return f"{words[: most - 1 - end]}…{words[len(words) - end :]}"
