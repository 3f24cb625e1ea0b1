# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's experiments as commands: tables, files, and placers of one's own."""

import json
import pathlib

import pytest

for package in ("jax", "matplotlib", "tqdm"):
    pytest.importorskip(package, reason=f"{package} is not installed; run scripts/python-env")

import needs  # noqa: E402
from baechi.experiments import (  # noqa: E402
    benchmarks,
    command,
    cutting,
    execution,
    hardware,
    learning,
    losses,
    pieces,
    placers,
    report,
    resuming,
    tables,
)

pytestmark = needs.tool("baechi-place")

TINY = benchmarks.Benchmark("gnmt-tiny", "gnmt", "tiny", (("hidden", 64), ("batch", 64)))


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A small model in place of the paper's, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(benchmarks, "FULL", [TINY])
    monkeypatch.setattr(benchmarks, "REDUCED", [TINY])
    return tmp_path


def test_help(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    assert "with 30 % of the memory" in " ".join(capsys.readouterr().out.split())


def test_all_tables_as_markdown_json_and_plots(tiny, capsys):
    out = tiny / "out"
    assert command.main(["all", f"--output={out}"]) == 0
    assert capsys.readouterr().out.count("| gnmt-tiny |") >= 4

    known = report.read(out / "experiments.json")
    assert list(known) == ["table3", "table4", "table5", "table6", "table7"]
    (counts,) = known["table3"].rows
    assert counts["operations"] > counts["operators"] > counts["kernels"] > 0
    assert 0 < counts["groups"] <= counts["operators"]

    (steps,) = known["table4"].rows
    best = min(steps[f"{name}_ms"] for name in ("single", "expert", "mtopo", "metf", "msct"))
    assert steps["default_ms"] <= best, "the whole answer is worse than one placer's"
    assert "(1.00)" in steps["single"]

    groupings = [row["grouping"] for row in known["table6"].rows]
    assert groupings == [*tables.GROUPINGS, "all but forward-only, and the search"]
    assert known["table6"].rows[0]["groups"] > known["table6"].rows[3]["groups"]

    page = (out / "experiments.md").read_text()
    assert page.startswith("<!-- Written by python -m baechi.experiments")
    for name in ("table4", "table5"):
        assert f"](experiments-{name}.svg)" in page
        assert "<svg" in (out / f"experiments-{name}.svg").read_text()


@pytest.mark.parametrize("machine", [hardware.socc2020(), hardware.fast_links()])
def test_steps_in_pieces_know_their_machine(machine):
    text = cutting.on_machine("#map = affine_map<() -> ()>\nmodule @m {\n}\n", machine)
    assert "\nmodule @m attributes {baechi.machine = #baechi.machine<devices = [" in text
    assert f"link_model = {machine.data['link_model']}>}} {{" in text
    assert pieces._cuts("half", 4) == [
        "baechi-split{pieces={2} stored={true} reductions={true} merge-moments={true}}",
    ]
    assert set(pieces.GOALS[machine.name]) == {each.name for each in benchmarks.FULL}


def test_steps_in_pieces_go_on_where_they_ended(tiny, monkeypatch):
    out = tiny / "out"
    out.mkdir()
    (out / "splitting.md").write_text(
        "before\n<!-- pieces -->\nold\n<!-- end of pieces -->\nafter\n"
    )
    made = []

    def step(_, machine, way):
        made.append((machine.name, way))
        if way == "micro":
            return {"none": "nothing is as heavy as a batch"}
        return {"makespan_ns": 5_000_000 + len(made), "lower_bound_ns": 4_000_000, "cpu_s": 1.0}

    monkeypatch.setattr(pieces, "_made", step)
    assert command.main(["pieces", "--seconds=0", f"--output={out}"]) == 0
    (row,) = report.read(out / "experiments.json")["pieces"].rows
    assert row["single"] == "5.0" and row["whole"] == row["pieces"] == "not made"
    assert made == [("socc2020", "single"), ("fast-links", "single")]

    assert command.main(["pieces", f"--output={out}"]) == 0
    assert len(made) == len(set(made)) == 2 * 11
    first, (row,) = (
        report.read(out / "experiments.json")[f"pieces{end}"].rows for end in ("", "-fast")
    )
    assert row["micro"] == "none: nothing is as heavy as a batch"
    assert row["any_ms"] == min(row[f"{way}_ms"] for way in pieces.PROPOSED if way != "micro")
    assert "whole operators" in row["any"] and row["any_s"] == 7

    page = (out / "splitting.md").read_text().splitlines()
    assert page[:2] == ["before", "<!-- pieces -->"]
    assert page[-2:] == ["<!-- end of pieces -->", "after"] and "old" not in page
    assert page[2].count("|") == page[4].count("|") and len(page) == 8
    assert f"| 50 GB/s | `{row['model']}` | {row['single']} | {row['whole']} |" in page[5]
    assert page[5].endswith(f" | none | {row['replicas']} |")

    monkeypatch.setattr(pieces, "_made", None)
    assert command.main(["pieces", "--seconds=0", f"--output={out}"]) == 0
    again = report.read(out / "experiments.json")
    assert again["pieces"].rows == first and again["pieces-fast"].rows == [row]


def test_some_ways_are_made_beside_those_that_are_known(tiny, monkeypatch, capsys):
    out = tiny / "out"
    steps = {"single": 9, "whole": 8, "pieces": 6, "half": 5}
    made = []

    def step(_, machine, way):
        made.append(way)
        ns = steps[way] * 1_000_000
        return {"makespan_ns": ns, "lower_bound_ns": ns // 2, "cpu_s": 1.5}

    monkeypatch.setattr(pieces, "_made", step)
    assert command.main(["pieces", "--ways=whole,pieces", f"--output={out}"]) == 0
    (row,) = report.read(out / "experiments.json")["pieces"].rows
    assert row["any"] == "6.0 (1.50), a piece a device" and "half" not in row

    # More of them: what was made before is still compared, and nothing of it made again.
    assert command.main(["pieces", "--ways=half", f"--output={out}"]) == 0
    (row,) = report.read(out / "experiments.json")["pieces"].rows
    assert row["whole"] == "8.0 (1.12)" and row["pieces"] == "6.0 (1.50)"
    assert row["any"] == "5.0 (1.80), two devices a piece" and row["any_s"] == 4.5
    assert row["bound"] == "3.60"
    assert made == ["single", "whole", "pieces"] * 2 + ["half"] * 2

    # What splits=any does not compare, as it is too large.
    monkeypatch.setattr(pieces, "MOST_OPERATIONS", 100)
    assert command.main(["pieces", "--ways=micro", f"--output={out}"]) == 0
    known = report.read(out / "experiments.json")
    assert known["pieces"].rows[0]["micro"] == "left out" and known["pieces"].rows[0]["half"]
    assert "| left out |" in pieces.on_a_page(known)

    assert command.main(["pieces", "--ways=quarter"]) == 1
    assert "unknown way 'quarter'; known: whole, pieces, half" in capsys.readouterr().err


def test_seconds_are_a_number(capsys):
    with pytest.raises(SystemExit):
        command.main(["pieces", "--seconds=soon"])
    assert "'soon' is no number of seconds" in capsys.readouterr().err


def test_what_does_not_fit_is_computed_in_micro_batches(tiny, monkeypatch):
    setting = tables.Setting(hardware.socc2020(), [TINY], ["single", "metf"], lambda text: None)
    (made,) = tables.inputs_of(setting)
    ample = tables.place_one(setting, made, "single")
    total = setting.machine.data["devices"][0]["memory"] / 2**20
    monkeypatch.setattr(tables, "SMALL_MEMORY", 0.8 * ample.peak_mib / total)
    (row,) = tables.steps_small(setting).rows
    assert row["single"].endswith(" (1.00), 2 micro-batches")
    assert row["single_ms"] > ample.step_ms
    # One graph for both, which is made once.
    (graph,) = made.module.parent.glob("micro-2-*.json")
    names = {op["name"] for op in json.loads(graph.read_text())["ops"]}
    assert len(names) > made.operators

    monkeypatch.setattr(tables, "SMALL_MEMORY", 1e-6)
    (row,) = tables.steps_small(setting).rows
    assert row["single"] == row["metf"] == "does not fit" and row["single_ms"] is None


def test_results_are_added_to_those_that_are_there(tiny):
    out = tiny / "out"
    assert command.main(["table4", "--placers=single", f"--output={out}"]) == 0
    assert command.main(["table4", "--placers=single,metf", f"--output={out}"]) == 0
    assert command.main(["table3", f"--output={out}"]) == 0
    known = report.read(out / "experiments.json")
    assert list(known) == ["table3", "table4"]
    assert "metf" in known["table4"].columns


def test_rows_of_other_models_stay(tiny):
    columns = {"model": "model", "s": "s"}
    first = tables.Table("x", "X", [], columns, [{"model": "a", "s": 1}, {"model": "b", "s": 2}])
    again = tables.Table("x", "X", [], columns, [{"model": "b", "s": 3}])
    report.keep(tiny, [first], "a machine")
    report.keep(tiny, [again], "a machine")
    assert [row["s"] for row in report.read(tiny / "experiments.json")["x"].rows] == [1, 3]


def test_what_is_there_of_the_same_is_not_made_again(tiny, monkeypatch, capsys):
    other = benchmarks.Benchmark("mlp-tiny", "mlp", "tiny")
    monkeypatch.setattr(benchmarks, "FULL", [TINY, other])
    place, asked = tables.place_one, []

    def counted(setting, made, placer, **conditions):
        if ends and made.benchmark is ends[0]:
            raise KeyboardInterrupt
        asked.append((made.benchmark.name, placer))
        return place(setting, made, placer, **conditions)

    monkeypatch.setattr(tables, "place_one", counted)
    out = tiny / "out"
    arguments = ["table5", "--placers=single,metf", f"--output={out}"]
    ends = [other]
    with pytest.raises(KeyboardInterrupt):
        command.main(arguments)
    ends.clear()
    assert asked == [("gnmt-tiny", "single"), ("gnmt-tiny", "metf")]
    (first,) = report.read(out / "experiments.json")["table5"].rows

    # On from where it was ended, and then nothing is left to be made.
    resumed = [*arguments, "--resume"]
    assert command.main(resumed) == 0
    assert asked[2:] == [("mlp-tiny", "single"), ("mlp-tiny", "metf")]
    whole = report.read(out / "experiments.json")["table5"]
    assert whole.rows[0] == first and len(whole.rows) == 2
    capsys.readouterr()
    assert command.main(resumed) == 0
    assert len(asked) == 4
    assert capsys.readouterr().out.strip() == report.markdown(whole).strip()

    # Not without the option, and not of other conditions.
    asked.clear()
    assert command.main([*arguments, "--models=mlp-tiny"]) == 0
    assert [name for name, _ in asked] == ["mlp-tiny"] * 2
    for change in (
        lambda: monkeypatch.setattr(
            hardware, "socc2020", lambda machine=hardware.socc2020(): machine.with_devices(2)
        ),
        lambda: monkeypatch.setattr("baechi.experiments.resuming.state_of_code", lambda of: "new"),
        lambda: resumed.append("--evaluations=7"),
        lambda: resumed.append("--placers=metf"),
    ):
        asked.clear()
        change()
        assert command.main(resumed) == 0
        assert {name for name, _ in asked} == {"gnmt-tiny", "mlp-tiny"}
        asked.clear()
        assert command.main(resumed) == 0 and not asked
    setting = tables.Setting(hardware.socc2020(), [TINY], ["single"], lambda text: None)
    stamp = resuming.made_of("table5", TINY, setting, "")
    assert stamp == resuming.made_of("table5", TINY, setting, "")
    monkeypatch.setattr("baechi.experiments.inputs.version", lambda *of: "of other models")
    assert stamp != resuming.made_of("table5", TINY, setting, "")


def test_a_graph_is_made_once(tiny, monkeypatch):
    assert command.main(["table4", "--placers=single"]) == 0
    monkeypatch.setattr("baechi.experiments.inputs._make", None)
    assert command.main(["table4", "--placers=single"]) == 0


def test_a_placer_of_ones_own_takes_part(tiny, monkeypatch, capsys):
    (tiny / "learned.py").write_text(
        "from baechi.experiments import placers\n"
        "def place(case):\n"
        "    assert case.input.graph.exists() and case.machine.devices[0] == 'gpu0'\n"
        "    return placers.Outcome(step_ms=1234.5, cpu_s=6.0, evaluations=100)\n"
        "placers.register('learned', 'learned one', place)\n"
    )
    monkeypatch.syspath_prepend(str(tiny))
    for table in (placers.PLACERS, placers.TITLES):  # is taken out again at the end
        monkeypatch.setitem(table, "learned", None)
    assert command.main(["table4", "--with=learned", "--placers=single,learned"]) == 0
    said = capsys.readouterr().out
    assert "| learned one |" in said and "| 1234.5 (0.0" in said
    assert command.main(["table7", "--with=learned", "--placers=learned"]) == 0
    assert "| 6.0 | 100 |" in capsys.readouterr().out


def test_placers_that_learn(tiny, monkeypatch, capsys):
    monkeypatch.setattr(learning, "DEVICES", (2,))
    monkeypatch.setattr(benchmarks, "LEARNED", [TINY])
    out = tiny / "out"
    arguments = ["learned", "--evaluations=40", "--placers=msct,random,colocrl"]
    assert command.main([*arguments, f"--output={out}"]) == 0
    msct, chance, learner = report.read(out / "experiments.json")["learned"].rows
    assert msct["msct"] == "1.000" and msct["evaluations"] is None
    for row in (chance, learner):
        counts, _, steps = zip(*row["curve"])
        assert row["evaluations"] == 40 and counts[-1] <= 40
        assert list(steps) == sorted(steps, reverse=True)
        assert float(row["bound"]) >= 1
    assert "<svg" in (out / "experiments-learned.svg").read_text()

    with pytest.raises(SystemExit):
        command.main(["learned", "--evaluations=0"])
    assert "'0' is no number of evaluations" in capsys.readouterr().err


def test_less_memory_than_the_model_needs(tiny):
    setting = tables.Setting(hardware.socc2020(), [TINY], ["single", "msct"], lambda what: None)
    small = hardware.socc2020().with_share_of_memory(1e-5)
    (row,) = tables._steps(setting, small).rows
    assert row["single"] == "does not fit" and row["single_ms"] is None
    assert "bytes" in row["single_problem"]


def test_execution_on_host_devices(tiny, monkeypatch):
    monkeypatch.setattr(execution, "STEPS", 2)
    out = tiny / "out"
    arguments = ["table4", "--execute=host:2", "--placers=expert", f"--output={out}"]
    assert command.main(arguments) == 0
    (row,) = report.read(out / "experiments.json")["executed"].rows
    assert row["expert_ms"] > 0 and row["single_ms"] > 0
    assert "wrong" not in row["expert"]


def test_cells_that_failed_say_why(tiny, capsys):
    arguments = ["table4", "--execute=host:2@1KiB", "--placers=expert,msct"]
    assert command.main(arguments) == 0
    told = capsys.readouterr().out
    assert told.count("no placement can fit") == 2, told


@pytest.mark.parametrize(
    "machine, message",
    [("hots:3", "machine 'hots:3': unknown"), ("machine.json", "machine.json: not valid JSON")],
)
def test_a_wrong_machine_is_told_before_the_work(tiny, capsys, monkeypatch, machine, message):
    (tiny / "machine.json").write_text("{")
    monkeypatch.chdir(tiny)
    monkeypatch.setattr(execution, "_run", None)
    assert command.main(["table4", f"--execute={machine}"]) == 1
    assert f"error: {message}" in capsys.readouterr().err


def assert_losses(row):
    """Fifty losses equal JAX's on every machine, and a limit is met that one device refuses."""
    differences = [row[machine] for machine in losses.MACHINES]
    differences.append(row["limited"].partition(", ")[2])
    assert all(float(text) < 1e-4 for text in differences), row
    assert row["limited"].startswith(("host:2", "host:4")), row


@pytest.mark.parametrize("name", ["mlp-tiny", "rnnlm-tiny"])
def test_losses_equal_those_of_jax(tmp_path, monkeypatch, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "out"
    assert command.main(["losses", f"--models={name}", f"--output={out}"]) == 0
    (row,) = report.read(out / "experiments.json")["losses"].rows
    assert_losses(row)


def test_losses_in_pieces_equal_those_of_jax(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "out"
    assert command.main(["losses-pieces", "--models=mlp-tiny", f"--output={out}"]) == 0
    (row,) = report.read(out / "experiments.json")["losses-pieces"].rows
    differences = [row[mode].partition(",")[0] for mode in losses.MODES]
    assert all(float(text) < 1e-4 for text in differences), row
    assert not row["forced:2"].endswith("whole") and not row["canonical:2"].endswith("whole"), row


@pytest.mark.loss_curves
@pytest.mark.parametrize("name", [benchmark.name for benchmark in benchmarks.TRAINED])
def test_losses_of_every_model_equal_those_of_jax(tmp_path, name):
    out = tmp_path / "out"
    assert command.main(["losses", f"--models={name}", f"--output={out}"]) == 0
    (row,) = report.read(out / "experiments.json")["losses"].rows
    assert_losses(row)


def test_compilation_takes_its_kernels_from_the_store(tiny):
    out = tiny / "out"
    assert command.main(["compile", f"--output={out}"]) == 0
    (row,) = report.read(out / "experiments.json")["compile"].rows
    assert row["model"] == "gnmt-tiny" and row["peak"] > 0 and " (" in row["second"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["table4", "--models=vgg"], "unknown model 'vgg'; known: gnmt-tiny"),
        (["table4", "--placers=best"], "unknown placer 'best'; known: single, expert"),
        (["table5", "--resume"], "--resume goes on from what --output=FOLDER has"),
        (["pieces", "--resume", "--output=/none"], "--resume is not for pieces; it is for table3"),
        (["table4", "--with=no_such_module"], "--with=no_such_module: No module named"),
    ],
)
def test_wrong_options(tiny, capsys, arguments, message):
    assert command.main(arguments) == 1
    assert f"error: {message}" in capsys.readouterr().err


def test_a_foreign_results_file_is_not_replaced(tiny, capsys):
    (tiny / "experiments.json").write_text(json.dumps({"format": "other"}))
    assert command.main(["table4", "--placers=single", f"--output={tiny}"]) == 1
    assert "not written by baechi.experiments; remove it" in capsys.readouterr().err


def test_memory_refuses_a_model_it_does_not_have():
    from baechi.experiments import memory
    from baechi.importer.common.errors import ImportFailure

    with pytest.raises(ImportFailure, match="unknown model 'none'; known: moe"):
        memory.tables(["none"], lambda what: None)


def test_less_memory_is_run_with_a_pool():
    from baechi.experiments import memory

    (table,) = memory.tables(["wgan"], lambda what: None)
    (row,) = table.rows
    assert float(row["memory"]) < 0.41 * float(row["ample"])
    assert row["limited_ms"] > 0


def test_every_model_is_run_in_half_of_its_memory(monkeypatch):
    from baechi.experiments import halves

    tiny = [benchmarks.Benchmark("mlp", "mlp", "tiny", (("batch", 512),))]
    monkeypatch.setattr(halves, "MODELS", tiny)
    (table,) = halves.tables(["mlp"], lambda what: None)
    (row,) = table.rows
    assert float(row["resident"]) < float(row["half"]) < float(row["peak"])
    assert not row.get("pooled", row["slower"]).startswith(halves.UNFIT)
    assert row["bits"] == "the same"


def test_the_page_says_what_the_results_say():
    # By words: the page's lines are wrapped.
    docs = pathlib.Path(__file__).resolve().parents[2] / "docs"
    machine = json.loads((docs / report.RESULTS).read_text())["machine"]
    written = report.page_text(list(report.read(docs / report.RESULTS).values()), machine)
    assert (docs / "experiments.md").read_text().split() == written.split()
