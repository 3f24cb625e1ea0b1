# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pages promise is tested, and what they say of messages and figures is so."""

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
    sections = (DOCS / "benchmarks-frameworks.md").read_text().split("\n## ")
    measured = next(section for section in sections if section.startswith("AVX-512\n"))
    own, found = (DOCS / "two-devices.md").read_text(), 0
    for name, one, *several in re.findall(r"^\| (\w+)" + r" \| ([\d.]+)" * 5 + r" \|$", own, re.M):
        lines = re.findall(rf"^\| {name} .*", measured, re.M)
        first, second = (line.split(" | ") for line in lines)
        assert first[1] == one, name
        assert [second[column] for column in (1, 2, 8, 5)] == several, name
        found += 1
    assert found == 8


def has_test(name):
    """Whether `path::test` is there: a function, a GoogleTest, a test of CMake's, or a file."""
    path, _, test = name.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    if file.suffix == ".py":
        nodes = ast.walk(ast.parse(file.read_text()))
        return not test or any(isinstance(n, ast.FunctionDef) and n.name == test for n in nodes)
    if file.name == "CMakeLists.txt":
        return f"add_test(NAME {test}" in file.read_text()
    if file.suffix == ".cpp":
        suite, _, case = test.partition(".")
        return bool(re.search(rf"^TEST\w*\({suite}, {case}\)", file.read_text(), re.M))
    return not test and re.search(r"^(?:// |# )?RUN: ", file.read_text(), re.M) is not None


def named_tests(page):
    return re.findall(r"`((?:python/tests|test|unittests)/[^`\s]+)`", (DOCS / page).read_text())


@pytest.mark.parametrize("page", ["differences.md", "promises.md"])
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


def text(page):
    """A page's words, without code blocks, each paragraph, item and row by itself."""
    file = ROOT / page if page == "README.md" else DOCS / page
    plain = re.sub(r"^```.*?^```$", "\n", file.read_text(), flags=re.S | re.M)
    parts = re.split(r"\n(?=\s*(?:[-#|]|\d+\.|\n))", plain)
    return "\n".join(" ".join(part.split()) for part in parts)


PROMISES = [
    (cells[0], re.search(r"[\w-]+\.md", cells[1]).group(), cells[2])
    for cells in rows("promises.md")
    if len(cells) == 3 and cells[0] != "promise"
]


@pytest.mark.parametrize(("promise", "page", "tests"), PROMISES)
def test_promises_stand_in_their_pages(promise, page, tests):
    assert promise in text(page)
    assert tests.startswith("`")


_WORDS = re.compile(
    r"\b(?:never|refuse[sd]?|equals?|bit for bit|guarantee\w*|proven|nothing has changed"
    r"|at any time|whole or not at all)\b",
    re.I,
)
# Measured, generated, and pages on these very lists.
_OTHER_PAGES = re.compile(
    r"benchmarks|experiments|soak|fuzzing|iree|passes|dialect|promises|differences|"
    r"api|troubleshooting|two-devices|learned|remarks|cuda-kernels"
)
# Descriptions, in which these words promise nothing.
_NO_PROMISES = (
    '`"never"`',
    "`never`",
    "## What is refused",
    "More is never worse",
    "never above a device's memory",
    "A list schedule never waits",
    "operators that never gain",
    "two processes on one GPU, which NCCL refuses",
    "loaded when a session needs it; a session is refused where it cannot be",
    "the session is refused where there is none",
    "kernels destroy their context or never end",
    "its gap to a proven lower bound",
    "the limit that the plan was proven against",
    "the smallest machine of so many equal devices",
    "**What is equal.**",
    "one whose elements are equal keeps its value",
    "equal subexpressions merged",
    "equal parts of what is free there",
    "## How equal the losses are",
)


def test_every_promise_is_in_the_list():
    missing = []
    for page in ("README.md", *sorted(file.name for file in DOCS.glob("*.md"))):
        if _OTHER_PAGES.match(page):
            continue
        listed = [promise for promise, of, _ in PROMISES if of == page]
        for part in text(page).split("\n"):
            for known in (*listed, *_NO_PROMISES):
                part = part.replace(known, "")
            missing += [
                f"{page}: {part[max(0, word.start() - 60) : word.end() + 60]}"
                for word in _WORDS.finditer(part)
            ]
    assert missing == []
