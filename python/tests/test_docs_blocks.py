# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every block of every page is run or compared by a test, or has a reason why not."""

import re
import shutil
import subprocess

import pytest

from baechi.compiling import tools
from pages import DOCS, ROOT, all_blocks, blocks, run_program

# By page and language: the file in python/tests, and the test, that runs such blocks.
_RUN = {
    "../README.md": {"python text": "test_docs.test_the_readme_shows_what_happens"},
    "ahead.md": {"python": "test_docs_blocks.test_the_page_on_ahead_of_time_runs"},
    "architecture.md": {"": "test_docs_blocks.test_the_passes_of_the_house_are_there"},
    "checking.md": {"python": "test_docs_continued.test_python_that_goes_on_runs"},
    "choice.md": {"sh": "test_docs_commands.test_choices"},
    "cuda-kernels.md": {"sh": "test_docs_commands.test_kernels_of_gpus"},
    "experiments.md": {"": "test_docs_blocks.test_experiments_have_their_names"},
    "extending.md": {
        "cpp tablegen mlir sh": "test_docs.test_worked_examples_are_the_projects_code"
    },
    "formats.md": {"": "test_docs_blocks.test_members_of_formats_are_known"},
    "host-calls.md": {
        "python": "test_docs_continued.test_python_that_goes_on_runs",
        "mlir": "test_docs_blocks.test_ir_of_pages_is_read",
    },
    "import.md": {
        "python": "test_cli.test_the_example_of_the_documentation_trains",
        "sh": "test_docs_commands.test_importing",
        "mlir": "test_docs_blocks.test_ir_of_pages_is_read",
        "": "test_init.test_random_bits_vectors",
    },
    "iree.md": {"sh": "test_docs_commands.test_iree_runs_what_the_page_exports"},
    "jit.md": {"python": "test_docs_continued.test_python_that_goes_on_runs"},
    "kernel-store.md": {"sh": "test_docs_continued.test_commands_that_go_on_run"},
    "learned.md": {
        "py": "test_docs_blocks.test_a_placer_that_learns",
        "": "test_docs_blocks.test_experiments_have_their_names",
    },
    "loops.md": {
        "python": "test_docs.test_python_of_pages_runs",
        "": "test_docs_commands.test_loops_of_other_programs",
    },
    "nodes.md": {
        "sh text": "test_docs_commands.test_machines_of_nodes",
        "python": "test_docs.test_python_of_pages_runs",
    },
    "onnx.md": {"python sh": "test_docs_continued.test_the_page_on_onnx_runs"},
    "package.md": {
        "sh": "test_docs_commands.test_the_package_in_other_tools",
        "cmake tablegen": "test_docs_commands."
        "test_the_package_is_what_the_downstream_projects_take",
    },
    "placement.md": {
        "sh": "test_docs_continued.test_commands_that_go_on_run",
        "c++": "test_docs_blocks.test_cpp_of_pages_compiles",
    },
    "profile-format.md": {"": "test_docs_blocks.test_members_of_formats_are_known"},
    "program-format.md": {"": "test_docs_blocks.test_members_of_formats_are_known"},
    "python.md": {"python": "test_docs.test_python_of_pages_runs"},
    "remarks.md": {"sh": "test_docs_commands.test_remarks"},
    "replicas.md": {
        "python": "test_replicas.test_the_page_s_programs_run",
        "sh": "test_docs_commands.test_replicas",
    },
    "report-page.md": {"sh": "test_docs_commands.test_the_report_page"},
    "runtime.md": {
        "c++": "test_docs_blocks.test_cpp_of_pages_compiles",
        "sh": "test_docs_commands.test_the_runtime",
    },
    "shardy.md": {"python sh text": "test_docs.test_the_page_on_shardy_runs"},
    "splitting.md": {
        "python": "test_docs_continued.test_python_that_goes_on_runs",
        "sh": "test_docs_commands.test_cuts",
    },
    "start-compare.md": {
        "python": "test_docs.test_python_of_pages_runs",
        "sh": "test_docs.test_commands_of_pages_run",
        "py": "test_docs_blocks.test_a_placer_of_ones_own_is_registered",
    },
    "start-jax.md": {"python": "test_docs.test_python_of_pages_runs"},
    "start-mlir.md": {"sh": "test_docs.test_commands_of_pages_run"},
    "start-pytorch.md": {"python": "test_docs.test_python_of_pages_runs"},
    "step-library.md": {"sh": "test_docs_continued.test_commands_that_go_on_run"},
    "tools.md": {"sh": "test_docs_commands.test_the_tools_in_one_page"},
    "torch.md": {
        "python": "test_docs_continued.test_python_that_goes_on_runs",
        "sh": "test_docs_commands.test_models_of_pytorch",
    },
    "training-loops-jax.md": {"python": "test_docs.test_python_of_pages_runs"},
    "training-loops.md": {"python": "test_docs.test_python_of_pages_runs"},
    "translate.md": {"sh": "test_docs_continued.test_commands_that_go_on_run"},
    "tutorial.md": {"python sh": "test_docs.test_the_tutorial_runs"},
    "two-devices.md": {"python": "test_docs.test_python_of_pages_runs"},
}
_SCRIPTS = "installs and builds: continuous integration runs these by themselves"
_MINUTES = "measures for minutes on a quiet machine"
# By page and the beginning of a block: why no test runs it.
_NOT_RUN = {
    ("../README.md", "scripts/demo"): _SCRIPTS,
    ("index.md", "scripts/install-packages"): _SCRIPTS,
    ("wheels.md", "scripts/install-packages"): _SCRIPTS,
    ("wheels.md", "scripts/wheel"): _SCRIPTS,
    ("wheels.md", "cmake --preset release -DMPI"): "builds for another MPI, which is not here",
    ("benchmarks-compiler.md", "scripts/build release"): _MINUTES,
    ("benchmarks-compiler.md", ".venv/bin/python -m baechi.importer bench"): _MINUTES,
    ("benchmarks-gpu.md", "benchmarks/gpu/run.sh"): "needs a GPU; test_gpu_benchmark has the rest",
    ("benchmarks-msr.md", "scripts/oracle/msr_to_graph.py"): _MINUTES,
    ("benchmarks-placement.md", "scripts/build release"): _MINUTES,
    (
        "fuzzing.md",
        "scripts/fuzz-frameworks",
    ): "thousands of programs; test_fuzz_frameworks runs few",
    ("fuzzing.md", "scripts/fuzz-lowerings"): "thousands of programs; test_fuzz_lowerings runs few",
    ("fuzzing.md", "scripts/check-accesses"): "a hundred programs; test_fuzz_accesses runs three",
    ("concepts.md", " model ── import"): "a picture",
    # What was printed once, on one machine: the words are compared elsewhere.
    ("ahead.md", "device          arena"): "its words: test_the_page_on_ahead_of_time_runs",
    ("ahead.md", "2 devices: "): "its words: test_the_page_on_ahead_of_time_runs",
    ("ahead.md", "baechi-step 1"): "what lies in a file; test_ahead changes each part of one",
    ("checking.md", "the result 'loss'"): "words of an error: test_jit_check, test_torch_check",
    (
        "kernels.md",
        "step       predicted",
    ): "the report's words: test_the_readme_shows_what_happens",
    ("memory.md", "baechi-place GRAPH"): "test/Tools/place-fit-memory.test",
    ("memory.md", "cut        'generator"): "the report's words: test/Tools/run-cut-to-fit.mlir",
    ("splitting.md", "pieces     159"): "the report's words: test/Tools/run-splits.test",
    ("splitting.md", "           predicted"): "the report's words: unittests/Driver",
    ("splitting.md", "loops      2 loops"): "the report's words: test/Tools/run-unrolled.test",
    ("splitting.md", "pieces        2 of 2"): "test_cuts compares it",
}
# scripts/generate-docs writes these from sources, and looks in ctest that they are fresh;
# scripts/check-examples runs the examples of passes.
_GENERATED = {"api.md", "dialect.md", "passes.md"}
_PAGES = ["../README.md", *sorted(page.name for page in DOCS.glob("*.md"))]


def test_every_block_is_run_or_says_why_not():
    used = set()
    for page in _PAGES:
        if page in _GENERATED:
            continue
        run = {word for words in _RUN.get(page, {}) for word in words.split(" ")}
        for language, text in all_blocks(page):
            reasons = {key for key in _NOT_RUN if key[0] == page and text.startswith(key[1])}
            assert reasons or language in run, f"no test runs this of {page}:\n{text}"
            used |= reasons or {(page, language)}
    named = {
        (page, word) for page, runs in _RUN.items() for words in runs for word in words.split(" ")
    }
    assert used == named | set(_NOT_RUN), used ^ (named | set(_NOT_RUN))


def test_the_tests_that_run_blocks_are_there():
    for runs in _RUN.values():
        for name in runs.values():
            file, test = name.split(".")
            assert f"\ndef {test}(" in (ROOT / "python/tests" / f"{file}.py").read_text(), name


def test_the_page_on_ahead_of_time_runs(tmp_path):
    pytest.importorskip("jax")
    done = run_program("\n".join(blocks("ahead.md", "python")), tmp_path)
    assert done.returncode == 0, done.stderr

    def words(text):
        return re.sub(r"[\d.]+ (B|KiB|MiB|GiB)", "…", text).split()

    memory, least = (words(text) for text in blocks("ahead.md", "")[:2])
    printed = words(done.stdout)
    assert "#".join(memory) in "#".join(printed)
    assert "#".join(least) in "#".join(printed)


def test_the_passes_of_the_house_are_there():
    known = set(re.findall(r"^### `(-[\w-]+)`", (DOCS / "passes.md").read_text(), re.M))
    (picture,) = blocks("architecture.md", "")
    named = set(re.findall(r"-(-baechi-[\w-]+)", picture))
    assert len(named) > 15
    assert named <= known


def test_experiments_have_their_names():
    pytest.importorskip("jax")
    from baechi.experiments import command

    lines = blocks("experiments.md", "")[0] + blocks("learned.md", "")[0]
    for line in lines.splitlines():
        given = line.removeprefix("python -m baechi.experiments ")
        assert given != line
        command._parser().parse_args(given.split())  # exits where it knows one not


@pytest.mark.parametrize(
    ("page", "sources"),
    [
        ("formats.md", ["lib/Placement", "lib/Pipelines", "lib/Transforms", "lib/Target"]),
        ("profile-format.md", ["lib/Costs"]),
        ("program-format.md", ["lib/Conversion", "lib/Driver", "lib/Pipelines", "runtime"]),
    ],
)
def test_members_of_formats_are_known(page, sources):
    text = "".join(
        file.read_text()
        for folder in sources
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".cpp", ".h")
    )
    members = {word for _, block in all_blocks(page) for word in re.findall(r'"(\w+)":', block)}
    members -= {"cuda", "host", "exact"}  # kinds of devices; a word before a colon
    assert len(members) > 10
    missing = {word for word in members if f'"{word}"' not in text and f'\\"{word}\\"' not in text}
    assert not missing, missing


def test_an_expert_s_file_is_read(tmp_path):
    expert = blocks("formats.md", "")[-1]
    (tmp_path / "gnmt.expert").write_text(expert)
    graphs = ROOT / "data/graphs"
    done = subprocess.run(
        [
            tools.find("baechi-place"), graphs / "gnmt40.json.xz",
            graphs / "machine_4x8GiB.json", "--placer=expert",
            f"--expert={tmp_path / 'gnmt.expert'}", "--budget=0",
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("page", "before", "after"),
    [
        ("host-calls.md", "", ""),
        (
            "import.md",
            "",
            "%loss = arith.constant dense<0.0> : tensor<f32>\n"
            "return %loss, %arg0 : tensor<f32>, tensor<16x32xf32>\n} }",
        ),
    ],
)
def test_ir_of_pages_is_read(page, before, after):
    (text,) = blocks(page, "mlir")
    done = subprocess.run(
        [tools.find("baechi-opt"), "--baechi-form-kernels"],
        input=before + text + after,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "func.func @step" in done.stdout


_AROUND = {
    "placement.md": """
        void report(const std::string &);
        void run(const baechi::placement::Problem &problem) {
          %s
        }""",
    "runtime.md": """
        #include "Baechi/Runtime/Program.h"
        #include "Baechi/Runtime/Session.h"
        int fail(const std::string &);
        int run(const std::string &manifest, const baechi::runtime::SymbolResolver &findSymbol,
                char *data, size_t bytes) {
          %s
          return 0;
        }""",
}


@pytest.mark.parametrize("page", _AROUND)
def test_cpp_of_pages_compiles(page, tmp_path):
    compiler = shutil.which("clang++-22") or shutil.which("c++")
    if not compiler:
        pytest.skip("there is no compiler of C++")
    (text,) = blocks(page, "c++")
    includes = "".join(re.findall(r"^#include .*\n", text, re.M))
    body = text.removeprefix(includes)
    source = tmp_path / "page.cpp"
    source.write_text(includes + _AROUND[page] % body)
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_placer_that_learns(tmp_path):
    pytest.importorskip("jax")
    text = "\n".join(blocks("learned.md", "py"))
    assert "evaluations=1000" in text and '"trained"' in text
    before = """
import baechi
graph = baechi.Graph()
for i in range(6):
    graph.add(f"t{i // 3}/l{i % 3}", 1000, inputs=[i - 1] if i % 3 else [], outputs=[100])
machine = "host:2"
"""
    after = "\nassert (found.curve['best_ns'][1:] <= found.curve['best_ns'][:-1]).all()"
    text = before + text.replace("evaluations=1000", "evaluations=64") + after
    done = run_program(text, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_placer_of_ones_own_is_registered(tmp_path):
    pytest.importorskip("jax")
    (text,) = blocks("start-compare.md", "py")
    body, outcome = text.split("    return placers.Outcome(")
    assert body.count("...") == 1
    filled = (
        body.replace("...", "pass") + "    return placers.Outcome(" + outcome.replace("...", "1")
    )
    done = run_program(filled + "\nassert 'mine' in placers.PLACERS", tmp_path)
    assert done.returncode == 0, done.stderr
