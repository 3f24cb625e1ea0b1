# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pages say of messages, measured figures and tests is in the sources still."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_SOURCES = ("python/baechi", "lib", "runtime", "tools")
_SUFFIXES = {".py", ".cpp", ".h"}


def rows(page):
    """The cells of each row of a page's tables, heads left out."""
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| message "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.fixture(scope="module")
def words():
    """All text of the sources, with the parts of a literal that is split over lines joined."""
    texts = (
        file.read_text()
        for folder in _SOURCES
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in _SUFFIXES
    )
    return re.sub(r"[\"']\s*\n\s*(?:f?[\"'])", "", "\n".join(texts))


MESSAGES = [
    message.group(1)
    for cells in rows("troubleshooting.md")
    if (message := re.match(r"\|? ?`([^`]+)`", cells[0]))
]


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_of_the_page_are_in_the_sources(message, words):
    parts = [part.strip() for part in message.split("…") if len(part.strip()) > 2]
    assert parts and [part for part in parts if part not in words] == []


def test_the_page_has_messages():
    assert len(MESSAGES) > 20


def test_figures_of_two_devices_are_those_measured():
    measured = (DOCS / "benchmarks-frameworks.md").read_text()
    own, found = (DOCS / "two-devices.md").read_text(), 0
    for name, one, two, gain, ratio in re.findall(
        r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", own, re.M
    ):
        first, second = (line.split(" | ") for line in re.findall(rf"^\| {name} .*", measured, re.M))
        assert first[1] == one, name
        assert (second[1], second[4], second[6]) == (two, ratio, gain)
        found += 1
    assert found == 5


def has_test(name):
    """Whether `path::test` is there: a function, a GoogleTest, or a whole file of lit's."""
    path, _, test = name.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    if file.suffix == ".py":
        tree = ast.parse(file.read_text())
        return any(isinstance(n, ast.FunctionDef) and n.name == test for n in ast.walk(tree))
    if file.suffix == ".cpp":
        suite, _, case = test.partition(".")
        return bool(re.search(rf"^TEST\w*\({suite}, {case}\)", file.read_text(), re.M))
    return not test and re.search(r"^(?:// |# )?RUN: ", file.read_text(), re.M) is not None


def named_tests(page):
    return re.findall(r"`((?:python/tests|test|unittests)/[^`\s]+)`", (DOCS / page).read_text())


@pytest.mark.parametrize("page", ["differences.md"])
def test_tests_that_a_page_names_are_there(page):
    named = named_tests(page)
    assert len(named) > 10
    assert [name for name in named if not has_test(name)] == []


def test_a_test_that_is_not_there_is_seen():
    assert not has_test("python/tests/test_jit.py::test_nothing")
    assert not has_test("python/tests/nowhere.py::test_training_equals_jax")
    assert not has_test("unittests/Placement/PlaceTest.cpp::Place.Nothing")
    assert has_test("unittests/Placement/PlaceTest.cpp::Place.NeverWorseThanOneDevice")
    assert has_test("test/Tools/run-limits.test")
