# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of `gpu-kernel-outlining` as host functions of one thread each.

`K_NAME_NUMBER` is the code of launch NUMBER of kernel NAME, by the names that the fat binary has.
Which thread of which block it is, it asks `watch_block_x` and the like. Threads run one after the
other: barriers go, shuffles give a thread its own value and shared memory is on the stack, so that
values are wrong, while what is touched is the same, as no address depends on what threads hand
each other."""

from __future__ import annotations

import re

_ASKS = {"block_id": "block", "thread_id": "thread", "block_dim": "threads", "grid_dim": "blocks"}
_NAME = r'@("?)([^"(:\s]+)\{}'


def _identifier(name: str) -> str:
    return re.sub("[^A-Za-z0-9_]", "_", name)


def _names(lines: list[str]) -> dict[tuple[str, str], str]:
    """Of what is launched, by its module and its name there."""
    names: dict[tuple[str, str], str] = {}
    function, number = "", 0
    for line in lines:
        if found := re.match(r"\s*(?:llvm|func)\.func (?:private )?" + _NAME.format(1), line):
            function, number = found[2], 0
        if found := re.search(r'gpu\.launch_func\s+@("?)([^":]+)\1::@("?)([^"\s]+)\3', line):
            names[found[2], found[4]] = f"K_{_identifier(function)}_{number}"
            number += 1
    return names


def _until_closed(text: str) -> int:
    """Where the parenthesis is closed that was opened before the text."""
    depth = 1
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    raise ValueError(f"a parenthesis is not closed: {text}")


def _head(name: str, rest: str) -> list[str]:
    end = _until_closed(rest)
    arguments, tail = rest[:end], rest[end + 1 :]
    lines = [f"func.func @{name}({arguments}) {{"]
    for kind in ("workgroup", "private"):
        if (begin := tail.find(f"{kind}(")) < 0:
            continue
        inside = tail[begin + len(kind) + 1 :]
        inside = _here(inside[: _until_closed(inside)])
        buffers = re.findall(r"(%\w+) : (memref<(?:[^<>]|<[^<>]*>)*>)", inside)
        lines += [f"{buffer} = memref.alloca() : {type}" for buffer, type in buffers]
    return lines


def _here(line: str) -> str:
    """Without address spaces."""
    return re.sub(r", #gpu\.address_space<\w+>", "", line)


def host_functions(outlined: str) -> str:
    """A module of `func.func` out of one with `gpu.func`."""
    lines = outlined.split("\n")
    names = _names(lines)
    made = ["module {"]
    made += [
        f"func.func private @watch_{asked}_{axis}() -> index attributes {{llvm.readnone}}"
        for asked in _ASKS.values()
        for axis in "xyz"
    ]
    module, within = "", False
    for line in lines:
        if found := re.match(r"\s*gpu\.module " + _NAME.format(1), line):
            module = found[2]
        elif found := re.match(r"\s*gpu\.func " + _NAME.format(1) + r"\((.*)$", line):
            made += _head(names[module, found[2]], found[3])
            within = True
        elif within and "gpu.return" in line:
            made += ["return", "}"]
            within = False
        elif within and not re.match(r"\s*(gpu\.barrier|nvvm\.bar\.warp\.sync)", line):
            made.append(_line(line))
    return "\n".join([*made, "}\n"])


def _line(line: str) -> str:
    line = _here(line).replace("memref.memory_space_cast", "memref.cast")
    for operation, asked in _ASKS.items():
        line = re.sub(
            rf"gpu\.{operation}\s+(\w)", rf"func.call @watch_{asked}_\1() : () -> index", line
        )
    shuffle = re.match(r"(\s*%\w+) = nvvm\.shfl\.sync\s+\w+ %\w+, (%\w+),.* : (\w+) -> \w+", line)
    if shuffle:
        return f"{shuffle[1]} = arith.ori {shuffle[2]}, {shuffle[2]} : {shuffle[3]}"
    return line
