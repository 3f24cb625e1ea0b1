# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws rooms and the arrows between them, for scripts/check-rooms: who uses others lies above.

Rows are the longest ways down; within one, boxes are sorted by the middle of what they use or
are used by (Sugiyama, Tagawa & Toda, "Methods for Visual Understanding of Hierarchical System
Structures", IEEE Trans. SMC 1981). An arrow over several rows has a place of its own in each.
"""

import html

ROW, GAP, HEIGHT, MARGIN, TITLE = 64, 20, 26, 16, 34
WAY = 6  # the width of an arrow that passes a row


def rows_of(uses):
    """Nodes by rows from the lowest, and whom each leads to in the row below. A node is a room,
    or (room, used, row) where an arrow passes."""
    level = {}

    def of(room):
        if room not in level:
            level[room] = 1 + max(map(of, uses[room]), default=-1)
        return level[room]

    rows = [[] for _ in range(1 + max(map(of, uses)))]
    for room in uses:
        rows[level[room]].append(room)
    below = {}
    for room, used in uses.items():
        for target in used:
            low = target
            for row in range(level[target] + 1, level[room]):
                rows[row].append((room, target, row))
                below[rows[row][-1]] = [low]
                low = rows[row][-1]
            below.setdefault(room, []).append(low)
    return rows, below


def sort_rows(rows, below):
    above = {}
    for node, used in below.items():
        for low in used:
            above.setdefault(low, []).append(node)
    for turn in range(24):
        up = turn % 2 == 0
        for k in range(1, len(rows)) if up else range(len(rows) - 2, -1, -1):
            beside = rows[k - 1] if up else rows[k + 1]
            place = {node: (i + 0.5) / len(beside) for i, node in enumerate(beside)}
            own = {node: (i + 0.5) / len(rows[k]) for i, node in enumerate(rows[k])}

            def middle(node):
                near = [place[n] for n in (below if up else above).get(node, ())]
                return sum(near) / len(near) if near else own[node]

            rows[k].sort(key=middle)


def width_of(node):
    return WAY if isinstance(node, tuple) else 18 + 7.2 * len(node)


def draw_part(title, uses, top):
    """The elements of one picture, its width and where it ends."""
    rows, below = rows_of(uses)
    sort_rows(rows, below)
    widths = [sum(map(width_of, row)) + GAP * (len(row) - 1) for row in rows]
    wide = max(widths)
    at = {}
    for k, row in enumerate(rows):
        x = MARGIN + (wide - widths[k]) / 2
        for node in row:
            at[node] = (x + width_of(node) / 2, top + TITLE + ROW * (len(rows) - 1 - k))
            x += width_of(node) + GAP
    lines, boxes = [], []
    for node, used in below.items():
        for low in used:
            (x, y), (to_x, to_y) = at[node], at[low]
            y += 0 if isinstance(node, tuple) else HEIGHT
            end = "" if isinstance(low, tuple) else ' marker-end="url(#tip)"'
            bend = (to_y - y) / 2
            lines.append(
                f'<path d="M{x:.0f},{y:.0f} C{x:.0f},{y + bend:.0f} '
                f'{to_x:.0f},{to_y - bend:.0f} {to_x:.0f},{to_y:.0f}"{end}/>'
            )
    for node, (x, y) in at.items():
        if not isinstance(node, tuple):
            wide_box = width_of(node)
            boxes.append(
                f'<rect x="{x - wide_box / 2:.0f}" y="{y:.0f}" width="{wide_box:.0f}" '
                f'height="{HEIGHT}" rx="4"/>'
                f'<text x="{x:.0f}" y="{y + 17:.0f}">{html.escape(node)}</text>'
            )
    head = f'<text class="title" x="{MARGIN}" y="{top + 14}">{html.escape(title)}</text>'
    end = top + TITLE + ROW * (len(rows) - 1) + HEIGHT
    return [head, *lines, *boxes], wide + 2 * MARGIN, end


def draw(parts):
    """SVG of (title, room: rooms that it uses), one below the other."""
    elements, wide, top = [], 0, MARGIN
    for title, uses in parts:
        drawn, width, end = draw_part(title, uses, top)
        elements += drawn
        wide, top = max(wide, width), end + 2 * MARGIN
    style = (
        "rect{fill:#eef3fa;stroke:#4a6fa5}path{fill:none;stroke:#8a8a8a}"
        "text{font:12px ui-monospace,monospace;text-anchor:middle;fill:#1c1c1c}"
        ".title{font:bold 14px sans-serif;text-anchor:start}.paper{fill:#fff;stroke:none}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {top:.0f}" '
            f'width="{wide:.0f}" height="{top:.0f}">',
            f"<style>{style}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" '
            'style="fill:#8a8a8a;stroke:none"/></marker></defs>',
            '<rect class="paper" width="100%" height="100%"/>',
            *elements,
            "</svg>\n",
        ]
    )
