# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads XLA's text of an optimised module: `compiled.as_text()` of JAX.

Only what a graph needs of it: computations, their instructions in order, who reads whom, how many
bytes, and which results take the place of parameters.
"""

from __future__ import annotations

import dataclasses
import re

from baechi.graphs.native import _placement

# Bits of an element; of what is not listed, the number in its name (f32, s8, f8e4m3fn).
_BITS = {"pred": 8, "token": 0, "opaque": 0, "c64": 64, "c128": 128, "bf16": 16}
_NUMBERED = re.compile(r"[fsu](\d+)")
_LEAF = re.compile(r"([a-z]\w*)\[([\d,<= ]*)\]")
_NAMED = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_NAME = re.compile(r"%([\w.\-]+)")
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
    r"|\b(?:branch_computations|called_computations|calls)=\{([^}]*)\}"
)
_PREDECESSORS = re.compile(r"control-predecessors=\{([^}]*)\}")
_SCOPE = re.compile(r'op_name="([^"]*)"')
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")


class ProfileError(_placement.PlacementError):
    """A module's text, or its profile, that is not what is needed; says where and why."""


@dataclasses.dataclass
class Instruction:
    """An instruction of a computation. `leaves`: bytes of each tensor that it gives."""

    name: str
    opcode: str
    leaves: list[int]
    operands: list[str]
    attributes: str
    """What follows the operands, and of a parameter or a constant what stands there."""
    is_root: bool
    line: int

    @property
    def called(self) -> list[str]:
        """The computations that it runs."""
        names: list[str] = []
        for one, several in _CALLED.findall(self.attributes):
            names += [one] if one else [n.strip().lstrip("%") for n in several.split(",")]
        return [name for name in names if name]

    @property
    def predecessors(self) -> list[str]:
        """What it waits for without reading it."""
        found = _PREDECESSORS.search(self.attributes)
        return _NAME.findall(found[1]) if found else []

    @property
    def scope(self) -> str:
        """The model's own name for it, such as `jit(f)/jvp()/dot_general`."""
        found = _SCOPE.search(self.attributes)
        return found[1] if found else ""

    def index(self, key: str) -> int:
        """A number among the attributes: `index=2` of get-tuple-element."""
        found = re.search(rf"\b{key}=(\d+)", self.attributes)
        if found is None:
            raise ProfileError(f"line {self.line}: {self.name} has no {key}")
        return int(found[1])


@dataclasses.dataclass
class Module:
    """`aliases`: parameters whose place results take, by the results' numbers."""

    name: str
    entry: str
    computations: dict[str, list[Instruction]]
    aliases: dict[int, int]


def parse(text: str) -> Module:
    """A module of its text. Raises ProfileError."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("HloModule "):
        raise ProfileError(
            "line 1: not XLA's text of a compiled module, which begins with 'HloModule': "
            "jax.jit(f).lower(...).compile().as_text()"
        )
    name = re.split(r"[ ,]", lines[0], maxsplit=2)[1]
    computations: dict[str, list[Instruction]] = {}
    entry, current = "", None
    for number, line in enumerate(lines[1:], 2):
        if found := _COMPUTATION.match(line):
            current = computations.setdefault(found[2], [])
            entry = found[2] if found[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and line.strip():
            current.append(_instruction(line, number))
    if not entry:
        raise ProfileError("the module has no ENTRY computation")
    return Module(name, entry, computations, _aliases(lines[0]))


def _aliases(header: str) -> dict[int, int]:
    at = header.find("input_output_alias={")
    if at < 0:
        return {}
    inside = header[header.index("{", at) : _closing(header, header.index("{", at), 1)]
    return {int(result or 0): int(parameter) for result, parameter in _ALIAS.findall(inside)}


def _closing(text: str, start: int, line: int) -> int:
    """Where what opens at `start` is closed."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "({[") - (text[at] in ")}]")
        if depth == 0:
            return at + 1
    raise ProfileError(f"line {line}: '{text[start]}' is not closed")


def _instruction(line: str, number: int) -> Instruction:
    named = _NAMED.match(line)
    if named is None:
        raise ProfileError(f"line {number}: not an instruction: {line.strip()[:60]}")
    start = end = named.end()
    while end < len(line) and line[end] != " ":
        end = _closing(line, end, number) if line[end] in "({[" else end + 1
    shape = line[start:end]
    opened = line.find("(", end)
    opcode = line[end:opened].strip()
    if opened < 0 or not re.fullmatch(r"[a-z][\w\-]*", opcode):
        raise ProfileError(f"line {number}: {named[2]} has no operands")
    closed = _closing(line, opened, number)
    inside = line[opened + 1 : closed - 1]
    leaves = _LEAF.findall(_bare(shape))
    if re.sub(r"[(), ]", "", _LEAF.sub("", _bare(shape))):
        raise ProfileError(f"line {number}: '{shape}' is no shape")
    is_leaf = opcode in ("parameter", "constant")
    return Instruction(
        name=named[2],
        opcode=opcode,
        leaves=[_bytes(kind, extents, number) for kind, extents in leaves],
        operands=[] if is_leaf else _NAME.findall(inside),
        attributes=(f"number={inside}" if opcode == "parameter" else "") + line[closed:],
        is_root=bool(named[1]),
        line=number,
    )


def _bare(shape: str) -> str:
    """Without layouts and comments."""
    return re.sub(r"\{[^}]*\}|/\*[^*]*\*/", "", shape)


def _bytes(kind: str, extents: str, line: int) -> int:
    bits = _BITS.get(kind)
    if bits is None:
        digits = _NUMBERED.match(kind)
        if digits is None:
            raise ProfileError(f"line {line}: '{kind}' is no type that is known here")
        bits = int(digits[1])
    count = 1
    for extent in filter(None, re.sub(r"[<= ]", "", extents).split(",")):
        count *= int(extent)
    return -(-count * bits // 8)
