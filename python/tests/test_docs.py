# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation: what pages show works, and the site builds with all its links."""

import re
import shutil
import subprocess
import sys

import pytest

from baechi.compiling import tools
from pages import DOCS, ROOT, blocks, run_commands, run_program


@pytest.mark.parametrize(
    ("page", "needs"),
    [
        ("python.md", "numpy"),
        ("start-compare.md", "numpy"),
        ("start-jax.md", "jax"),
        ("start-pytorch.md", "torch_mlir"),
        ("training-loops.md", "torch_mlir"),
        ("training-loops-jax.md", "jax"),
        ("two-devices.md", "jax"),
        ("loops.md", "jax"),
        ("nodes.md", "jax"),
        ("replicas.md", "jax"),
    ],
)
def test_python_of_pages_runs(page, needs, tmp_path):
    pytest.importorskip(needs)
    # One program, as a reader would go through it.
    done = run_program("\n".join(blocks(page, "python")), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_tutorial_runs(tmp_path):
    pytest.importorskip("jax")
    done = run_program("\n".join(blocks("tutorial.md", "python")), tmp_path)
    assert done.returncode == 0, done.stderr
    # The scratch of the product's code differs with what is fastest here.
    proof = r"while operator 18 'backward/first/dot_general' runs, (\d+) bytes .* must be held"
    found = re.search(proof, done.stdout)
    assert found and 16.5 < int(found[1]) / 2**20 < 17.5, done.stdout
    assert "equal after five steps" in done.stdout
    done = run_commands("tutorial.md", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "step.html").stat().st_size > 10_000


def test_the_page_on_shardy_runs(tmp_path):
    pytest.importorskip("jax")
    plan, reading = blocks("shardy.md", "python")
    done = run_program(plan, tmp_path)
    assert done.returncode == 0, done.stderr
    (shown,) = blocks("shardy.md", "text")
    assert done.stdout == shown
    done = run_commands("shardy.md", tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_program(reading, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mpmd.transfer" in done.stdout


def test_the_readme_shows_what_happens(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    # As on a new machine: what runs measured before shows, as the roofline does.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (program,), (shown,) = blocks("../README.md", "python"), blocks("../README.md", "text")
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr

    def without_figures(text):
        """What depends neither on times, nor on who has won, nor on other work."""
        text = re.sub("; other work disturbed .*", "", text)
        words = [re.sub(r"'.*?'|[\d.]+(?= ms| %)", "…", line).split() for line in text.splitlines()]
        return [
            line[:1] + line[3:4] if line[:1] and line[0][:4] == "host" else line for line in words
        ]

    # Lines that are left out are one of dots.
    told = without_figures(done.stdout)
    for part in shown.split("...\n"):
        lines = without_figures(part)
        starts = [i for i in range(len(told)) if told[i : i + len(lines)] == lines]
        assert starts, (lines, told)
        told = told[starts[0] + len(lines) :]
    assert not told
    alone = run_program(program.replace("host:2", "host:1"), tmp_path)
    assert "no placement can fit the memories" in alone.stderr
    assert re.search(r"operator \d+ '.*' with \d+ bytes", alone.stderr)


@pytest.mark.parametrize("page", ["start-mlir.md", "start-compare.md"])
def test_commands_of_pages_run(page, tmp_path):
    for folder in ("examples", "data"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    done = run_commands(page, tmp_path)
    assert done.returncode == 0, done.stderr


def test_worked_examples_are_the_projects_code(tmp_path):
    page = (DOCS / "extending.md").read_text()
    quoted = re.findall(r"^`(\S+)`[^\n]*:\n```\w+\n(.*?)^```$", page, re.S | re.M)
    assert len(quoted) == 7
    for file, text in quoted:
        assert text in (ROOT / file).read_text(), file
    built = tools.find("baechi-run").parents[1]
    if not (built / "bin" / "PlacementTests").exists():
        pytest.skip("the package has no unit tests to run")
    for folder in ("data", "test"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "release").symlink_to(built)
    done = run_commands("extending.md", tmp_path, skip=["scripts/build"])
    assert done.returncode == 0, done.stderr
    assert "[  PASSED  ] 1 test" in done.stdout


def test_every_environment_variable_is_told_of():
    told = set(re.findall(r"`(BAECHI_\w+)`", read("environment.md")))
    sources = "\n".join(
        file.read_text()
        for folder in ("lib", "runtime", "tools", "python/baechi")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".cpp", ".h", ".py")
    )
    named = set(re.findall(r'"(BAECHI_[A-Z_]*[A-Z])"', sources))
    assert told == named
    assert len(told) >= 10


def read(page):
    return (DOCS / page).read_text()


def build(config, folder):
    # Not --quiet: it would keep the strict build from seeing the warnings.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "--config-file", config, "--site-dir", folder], capture_output=True, text=True
    )


def test_the_site_builds_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs")
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    for name in ("index", "start-jax", "start-pytorch", "start-mlir", "start-compare"):
        assert (tmp_path / "site" / f"{name}.html").exists()
    # A link out of docs/ leads to a copy.
    assert 'href="source/examples/jit_mlp.py"' in (tmp_path / "site" / "jit.html").read_text()
    assert (tmp_path / "site/source/examples/jit_mlp.py").exists()
    for page in (tmp_path / "site").rglob("*.html"):
        fetched = r"<(?:script|img|link)[^>]*(?:src|href)=[\"'](?:https?:)?//[^\"']*"
        assert not re.findall(fetched, page.read_text()), page


@pytest.mark.parametrize(
    "link", ["[x](nowhere.md)", "[x](jit.md#nowhere)", "[x](../nowhere.py)", "![x](no.png)"]
)
def test_links_are_checked(link, tmp_path):
    pytest.importorskip("mkdocs")
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for folder in ("examples", "include"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with open(tmp_path / "docs" / "index.md", "a") as page:
        page.write(f"\n{link}\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert re.search(r"(nowhere|no\.png)", done.stderr)
