# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of steps: what is added up, and what notebooks and papers get."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import baechi
from baechi.pictures import picture, svg
from problems import MACHINE, diamond, random_graph


def random_row(seed, spans=500, step=100_000):
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.choice(step + 1, 2 * spans, replace=False))
    found = np.empty(spans, picture.SPAN)
    found["start"], found["finish"] = edges[::2], edges[1::2]
    found["part"] = rng.integers(3, size=spans)
    found["name"] = np.arange(spans)
    return picture.Row("gpu0", False, found)


@pytest.mark.parametrize("columns", [1, 7, 100, 1000])
def test_columns_hold_the_time_of_short_spans(columns):
    step = 100_000
    row = random_row(columns, step=step)
    long, shares, parts = picture.split(row, step, columns)
    width = step / columns
    assert (long["finish"] - long["start"] >= 2 * width).all()
    # Nanosecond by nanosecond.
    busy = np.zeros((3, step))
    for span in row.spans[~np.isin(row.spans["name"], long["name"])]:
        busy[span["part"], span["start"] : span["finish"]] = 1
    when = np.minimum((np.arange(step) + 0.5) / width, columns - 0.5).astype(int)
    expected = np.array([np.bincount(when, each, minlength=columns) for each in busy]) / width
    tolerance = 1.01 / width
    assert np.abs(shares - expected.sum(axis=0)).max() <= 2 * tolerance
    chosen = expected[parts, np.arange(columns)]
    assert (chosen >= expected.max(axis=0) - 2 * tolerance).all()


@pytest.mark.parametrize("columns", [1, 3, 64, 500])
def test_the_envelope_hides_no_peak(columns):
    rng = np.random.default_rng(columns)
    time = np.concatenate([[0], np.sort(rng.choice(np.arange(1, 1000), 80, replace=False))])
    levels = rng.integers(0, 1000, size=81)
    memory = picture.Memory("gpu0", time, levels, 1000)
    found = picture.envelope(memory, 1000, columns)
    held = levels[np.searchsorted(time, np.arange(1000), side="right") - 1]
    edges = np.arange(columns + 1) * 1000 / columns
    for k in range(columns):
        first, last = int(np.floor(edges[k])), int(np.ceil(edges[k + 1]))
        assert held[int(np.ceil(edges[k])) : last].max(initial=0) <= found[k]
        assert found[k] <= held[first:last].max()
    assert found.max() == memory.peak


def test_parts_are_told_apart_where_the_work_is():
    names = ["grad/enc/a", "grad/dec/b", "grad/dec/c", "enc/a", "dec.b", "loss"]
    parts, number = picture.parts_of(names, np.array([40, 30, 20, 5, 3, 2]))
    assert parts == ["grad/dec", "grad/enc", "enc", "dec", "loss"]
    assert number.tolist() == [1, 0, 0, 2, 3, 4]
    many = [f"l{i}" for i in range(20)]
    parts, number = picture.parts_of(many, np.arange(20, 0, -1))
    assert parts == [*many[: picture.PARTS], picture.OTHER]
    assert number.tolist() == [*range(picture.PARTS), *[picture.PARTS] * 13]


def elements(html):
    """All of the picture's elements; what is not well formed raises."""
    assert "http" not in html and "src=" not in html and "url(" not in html
    drawing = re.search(r"<svg.*</svg>", html, re.S).group(0)
    return list(ElementTree.fromstring(drawing).iter())


def texts(html):
    return [element.text for element in elements(html) if element.tag == "text"]


def test_a_placement_shows_itself():
    html = baechi.place(diamond(), MACHINE)._repr_html_()
    words = texts(html)
    assert {"gpu0", "gpu1"} <= set(words)
    assert any("→" in word for word in words)
    assert any("9.77 KiB" in word for word in words)  # the limit
    titles = [e.text for e in elements(html) if e.tag == "title"]
    assert "b\n1 µs from 30 ns" in titles or "c\n1 µs from 30 ns" in titles
    assert "step 1.04 µs by" in html and "4 operators" in html


def test_names_are_no_markup():
    graph = diamond()
    graph.ops[1].name = "<script>alert('&')</script>/x"
    html = baechi.place(graph, MACHINE)._repr_html_()
    assert "<script" not in html
    assert any("<script>" in (e.text or "") for e in elements(html))


def test_large_steps_stay_small():
    operators = 20_000
    graph = baechi.Graph()
    before = None
    for i in range(operators):
        read = [] if before is None or i % 50 == 0 else [before]
        before = graph.add(f"l{i % 12}/op", 100 + i % 7, inputs=read, outputs=[i % 5])
    placement = baechi.place(graph, MACHINE, "metf", budget=0)
    html = placement._repr_html_()
    assert len(html) < 300_000
    assert len(elements(html)) < 1500


def test_many_queues_and_devices():
    devices = [{"name": f"d{i}", "kind": "x", "memory": 10**6 + i} for i in range(20)]
    placement = baechi.Evaluator(
        random_graph(seed=1, operators=300), MACHINE | {"devices": devices}
    )
    rng = np.random.default_rng(0)
    spread = rng.integers(20, size=placement.units.max() + 1)[placement.units]
    shown = placement.place(spread).picture()
    queues = [row.label for row in shown.rows if row.is_queue]
    assert queues == [f"d{i} → all" for i in range(20)]
    html = svg.to_html(shown)
    assert "memory: the 16 fullest devices" in html
    elements(html)


def test_nothing_to_show():
    empty = baechi.place(baechi.Graph(), MACHINE)
    assert "0 operators" in empty._repr_html_()
    assert baechi.plot_timeline(empty).axes


MANIFEST = {
    "devices": [
        {
            "name": "host0",
            "arena_bytes": 1000,
            "memory": 2000,
            "operators": [{"name": "a", "start_ns": 0, "time_ns": 500}],
        },
        {
            "name": "host1",
            "arena_bytes": 300,
            "memory": 2000,
            "operators": [{"name": "b", "start_ns": 700, "time_ns": 300}],
        },
    ],
    "queues": [
        {
            "from": 0,
            "to": 1,
            "messages": [
                {"name": "a", "bytes": 8, "start_ns": 500, "end_ns": 650},
                {"bytes": 8, "start_ns": 650, "end_ns": 700},
            ],
        }
    ],
    "predicted": {"makespan_ns": 1000, "lower_bound_ns": 800, "placer": "msct", "winner": "metf"},
}


def test_a_compiled_program_shows_itself():
    shown = picture.of_program(MANIFEST, measured_ns=1234)
    assert [(row.label, row.busy(1000)) for row in shown.rows] == [
        ("host0", 0.5),
        ("host1", 0.3),
        ("host0 → host1", 0.2),
    ]
    html = svg.to_html(shown)
    assert "predicted step 1 µs by metf · measured 1.23 µs" in html
    assert "1000 B" in html


def test_the_headline_is_the_reports_and_the_axis_holds_all():
    """The runtime's prediction may be shorter or longer than the plan's last span."""
    for step_ns, axis in ((900, 1000), (2000, 2000)):
        predicted = MANIFEST["predicted"] | {"step_ns": step_ns}
        shown = picture.of_program(MANIFEST | {"predicted": predicted})
        assert shown.facts[0] == f"predicted step {picture.duration(step_ns)} by metf"
        assert shown.step_ns == axis
        html = svg.to_html(shown)
        right = [
            float(rect.get("x")) + float(rect.get("width"))
            for rect in elements(html)
            if rect.tag == "rect"
        ]
        assert max(right) <= 108 + 800


def test_idle_devices_take_one_thin_lane():
    idle = {"name": "host2", "arena_bytes": 0, "memory": 2000, "operators": []}
    devices = [*MANIFEST["devices"], idle]
    html = svg.to_html(picture.of_program(MANIFEST | {"devices": devices}))
    assert texts(html).count("host2") == 1
    assert texts(html).count("host1") == 2


def test_long_names_keep_what_tells_them_apart():
    assert svg.cut("host0", 16) == "host0"
    one, other = (svg.cut(f"encoder/layer_{n}/attention", 16) for n in (3, 4))
    assert len(one) == 16 and "…" in one
    assert svg.cut("rack0.node12.gpu7 → rack0.node12.gpu1", 16) == "ra…pu7 → ra…pu1"
    assert one.endswith("attention") and other.startswith("encod")


def test_a_jitted_step_shows_itself():
    jax = pytest.importorskip("jax")

    @baechi.jit(machine="host:1", costs="roofline", budget="0")
    def step(x):
        return jax.numpy.tanh(x @ x)

    assert step._repr_html_() is None
    step(np.ones((8, 8), np.float32))
    assert "host0" in texts(step._repr_html_())


def test_a_comparison_shows_itself():
    machine = MACHINE | {"devices": [d | {"memory": 45} for d in MACHINE["devices"]]}
    graph = random_graph(seed=2, operators=20)
    for on in (MACHINE, machine):
        comparison = baechi.compare(graph, on, ["msct", "etf", "default"])
        html = comparison._repr_html_()
        table = ElementTree.fromstring(re.search(r"<table>.*</table>", html, re.S).group(0))
        names = ["".join(row[0].itertext()) for row in table]
        assert names == ["placer", "msct", "etf", "default"]
        bold = ["".join(e.itertext()) for e in table.iter("b")]
        assert bold == ([comparison.best] if comparison.best else [])


def test_figures_for_papers(tmp_path):
    pytest.importorskip("matplotlib")
    placement = baechi.place(random_graph(seed=2, operators=200), MACHINE)
    figure = baechi.plot_timeline(placement)
    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[:2] == ["gpu0", "gpu1"]
    assert axes.get_xlim()[1] == pytest.approx(placement.step_ns / 1000)
    assert axes.get_xlabel() == "time (µs)"
    figure.savefig(tmp_path / "timeline.pdf")
    assert (tmp_path / "timeline.pdf").read_bytes().startswith(b"%PDF")
    memory = baechi.plot_memory(placement).axes[0]
    drawn = max(patch.get_data().values.max() for patch in memory.patches)
    assert drawn == pytest.approx(placement.peak_bytes.max() / 1024)
    assert memory.get_ylabel() == "memory (KiB)"
    # Into a figure of one's own.
    assert baechi.plot_memory(placement, axes) is figure
