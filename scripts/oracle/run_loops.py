#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what baechi-run computes of random loop nests, in blocks on several devices, with one
entry after the other in NumPy, bit for bit.

    run_loops.py BAECHI_RUN [LOOPS] [SEED] [MACHINE...]

20 loops by default, a machine of two host devices; loops of odd seeds are ordered. Nests are those
of check_loops.py, each entry of which writes sums of what it reads. Entries follow each other in
the order of their keys, or in an unordered loop in that of the blocks, made here from where
baechi-run's remarks say that keys are cut.
"""

import itertools
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from check_loops import Nest, of, total

TYPES = {"f32": np.float32, "i32": np.int32}


class Tame(Nest):
    """A nest whose arrays each go along keys of their own, as in programs: more of them run in
    blocks. Reads are beside what is written."""

    def array(self, rng):
        rank = rng.randint(1, min(2, len(self.levels)))
        self.along = rng.sample(range(len(self.levels)), rank)
        self.factor = 2 if rng.random() < 0.1 else 1
        return super().array(rng)

    def subscript(self, rng):
        factors = [0] * len(self.levels)
        # Of each access one after the other.
        factors[self.along[0]] = self.factor
        self.along = [*self.along[1:], self.along[0]]
        return factors, rng.choice([0, 0, 0, 1, 2])


class Sparse(Tame):
    """Entries with these keys, some of them several times, each with a value that it changes."""

    def __init__(self, rng):
        super().__init__(rng)
        self.entries = [rng.choice(self.counters or [()]) for _ in range(rng.randint(1, 40))]

    def key(self, counters):
        return counters

    def columns(self):
        return [np.array(column, np.int32) for column in zip(*self.entries)]

    def foreach(self, first, ordered):
        """How the loop begins; its body sees arrays %b<first>, ..."""
        count = len(self.entries)
        keys = ", ".join(
            f"%c{k} = %k{first}_{k} : memref<{count}xi32> in {min(column)} to {max(column) + 1}"
            for k, column in enumerate(zip(*self.counters))
        )
        arrays = ", ".join(
            f"%b{first + n} = %a{first + n} : memref<{'x'.join(map(str, extents))}x{kind}>"
            for n, (kind, extents, _) in enumerate(self.arrays)
        )
        return (
            f"baechi.foreach {'ordered' if ordered else 'unordered'} ({keys}) "
            f"values(%x = %e{first} : memref<{count}xf32>) arrays({arrays}) {{"
        )


def of_entries(nest):
    return isinstance(nest, Sparse)


def text(nest, first, ordered):
    """The nest as loops of affine, or one over keys, over arrays %a<first>, ..."""
    if of_entries(nest):
        begin, held = nest.foreach(first, ordered), {"f32": "%x", "i32": "%i32"}
        held = body(nest, first, "%b", held, lines := [begin])
        return "\n".join([*lines, f"baechi.yield {held['f32']} : f32", "}"])
    lines = []
    for level, (lower, upper, step) in enumerate(nest.levels):
        dims = ", ".join(f"d{k}" for k in range(level))
        counters = ", ".join(f"%c{k}" for k in range(level))
        low, high = (
            f"affine_map<({dims}) -> ({total(bound, 'd')})>({counters})" for bound in (lower, upper)
        )
        lines.append(f"affine.for %c{level} = {low} to {high} step {step} {{")
    body(nest, first, "%a", {"f32": "%f32", "i32": "%i32"}, lines)
    return "\n".join([*lines, "}" * len(nest.levels)])


def body(nest, first, name, held, lines):
    number = 0
    for n, (kind, extents, accesses) in enumerate(nest.arrays):
        memref = f"memref<{'x'.join(map(str, extents))}x{kind}>"
        letter = kind[0]
        for access, subscripts in accesses:
            at = f"{name}{first + n}[{', '.join(total(s, '%c') for s in subscripts)}] : {memref}"
            number += 1
            if access != "write":
                lines.append(f"%v{number} = affine.load {at}")
            if access == "read":
                lines.append(f"%w{number} = arith.mul{letter} {held[kind]}, %half{kind} : {kind}")
                lines.append(f"%x{number} = arith.add{letter} %w{number}, %v{number} : {kind}")
                held[kind] = f"%x{number}"
            elif access == "update":
                lines.append(f"%w{number} = arith.add{letter} %v{number}, {held[kind]} : {kind}")
                lines.append(f"affine.store %w{number}, {at}")
            else:
                lines.append(f"affine.store {held[kind]}, {at}")
    return held


def module(nests, ordered):
    """The step of all of them, and the lines that they begin at."""
    arguments, others, bodies = [], [], []
    for nest in nests:
        bodies.append(text(nest, len(arguments), ordered))
        if of_entries(nest):
            count, x = len(nest.entries), f"e{len(arguments)}"
            for k in range(len(nest.levels)):
                name = f"k{len(arguments)}_{k}"
                others.append(f'%{name}: memref<{count}xi32> {{baechi.name = "{name}"}}')
            others.append(f'%{x}: memref<{count}xf32> {{baechi.name = "{x}"}}')
        for kind, extents, _ in nest.arrays:
            memref = f"memref<{'x'.join(map(str, extents))}x{kind}>"
            name = f"a{len(arguments)}"
            arguments.append(f'%{name}: {memref} {{baechi.name = "{name}"}}')
    constants = [
        "%i32 = arith.constant 3 : i32",
        "%f32 = arith.constant 0.7 : f32",
        "%halfi32 = arith.constant 5 : i32",
        "%halff32 = arith.constant 0.3 : f32",
    ]
    head = [f"func.func @step({', '.join(arguments + others)}) {{", *constants]
    lines = [len(head) + 1]
    for body in bodies:
        lines.append(lines[-1] + body.count("\n") + 1)
    return "\n".join([*head, *bodies, "return", "}"]), lines[:-1]


def order(nest, remark, ordered):
    """The numbers of the entries, one after the other."""
    found = re.match(r"(.*?): (\d+) blocks of (\d+) workers; (.*); simulated: ", remark)
    every = nest.entries if of_entries(nest) else nest.counters
    numbers = range(len(every))
    if ordered or not found:
        return numbers
    workers = int(found[3])
    axes = []
    for axis in found[4].split("; "):
        form, cuts = axis.split(" at ")
        axes.append((compile(form, form, "eval"), [int(cut) for cut in cuts.split(", ")]))
    blocks = {}
    for number in numbers:
        keys = dict(zip("ijk", nest.key(every[number])))
        parts = []
        for form, cuts in axes:
            at = eval(form, {}, keys)
            parts.append(sum(at >= cut for cut in cuts[1:-1]))
        blocks.setdefault(tuple(parts), []).append(number)
    counts = [len(cuts) - 1 for _, cuts in axes]
    if found[1].startswith(("wavefront", "one after")):
        scheduled = sorted(itertools.product(*map(range, counts)), key=lambda b: (sum(b), b[0]))
    else:
        turns = itertools.product(range(workers), repeat=len(axes) - 1)
        # Parts of the other axes may be a multiple of the workers': in rounds, one after the other.
        rounds = [range(-(-count // workers)) for count in counts[1:]]
        scheduled = [
            (worker, *(r * workers + (worker + t) % workers for t, r in zip(turned, each)))
            for turned in turns
            for each in itertools.product(*rounds)
            for worker in range(workers)
        ]
    made = [number for block in scheduled for number in blocks.get(block, [])]
    assert len(made) == len(every), remark
    return made


def compute(nest, arrays, values, numbers):
    half = {"f32": np.float32(0.3), "i32": np.int32(5)}
    every = nest.entries if of_entries(nest) else nest.counters
    for number in numbers:
        counters = every[number]
        held = {"f32": np.float32(0.7), "i32": np.int32(3)}
        if of_entries(nest):
            held["f32"] = values[number]
        for array, (kind, _, accesses) in zip(arrays, nest.arrays):
            for access, subscripts in accesses:
                at = tuple(of(s, counters) for s in subscripts)
                if access == "read":
                    held[kind] = held[kind] * half[kind] + array[at]
                elif access == "update":
                    array[at] = array[at] + held[kind]
                else:
                    array[at] = held[kind]
        if of_entries(nest):
            values[number] = held["f32"]


def main():
    tool = sys.argv[1]
    numbers = [int(word) for word in sys.argv[2:4]]
    count, seed = numbers + [20, 1][len(numbers) :]
    machines = sys.argv[4:] or ["host:2"]
    rng, ordered = random.Random(seed), seed % 2 == 1
    nests = []
    while len(nests) < count:
        nest = rng.choice([Nest, Tame, Tame, Sparse])(rng)
        # Of a nest without entries nothing may be left, not even its results.
        if nest.counters:
            nests.append(nest)
    kinds = [(kind, extents) for nest in nests for kind, extents, _ in nest.arrays]
    drawn = np.random.default_rng(seed)
    given = [
        drawn.normal(size=extents).astype(np.float32)
        if kind == "f32"
        else drawn.integers(-1000, 1000, extents).astype(np.int32)
        for kind, extents in kinds
    ]
    columns, values, first = {}, {}, 0
    for nest in nests:
        if of_entries(nest):
            columns |= {f"k{first}_{k}": column for k, column in enumerate(nest.columns())}
            values[first] = drawn.normal(size=len(nest.entries)).astype(np.float32)
        first += len(nest.arrays)
    wrong = 0
    np.seterr(over="ignore")
    with tempfile.TemporaryDirectory() as folder:
        file, inputs, outputs = (Path(folder) / n for n in ("loops.mlir", "in.npz", "out.npz"))
        module_text, lines = module(nests, ordered)
        file.write_text(module_text)
        arrays = {f"a{n}": array for n, array in enumerate(given)}
        np.savez(inputs, **arrays, **columns, **{f"e{n}": each for n, each in values.items()})
        for machine in machines:
            run = subprocess.run(
                [
                    *(tool, file, f"--machine={machine}", f"--inputs={inputs}", "--steps=1"),
                    *(f"--outputs={outputs}", "--costs=roofline", "--budget=0"),
                    f"--loops={'ordered' if ordered else 'unordered'}+serial",
                    *("--placer=round-robin", "--grouping=none"),
                ],
                capture_output=True,
                text=True,
            )
            if run.returncode:
                sys.exit(run.stderr[-3000:])
            if machine != "host:1" and "outputs    equal" not in run.stdout:
                sys.exit(run.stdout[-1000:])
            # A nest of one entry is no loop, and has none.
            said = dict(
                re.findall(
                    r"mlir:(\d+):\d+: remark: (.* workers; .*|runs on one device: .*)", run.stderr
                )
            )
            remarks = [said.get(str(line), "no loop") for line in lines]
            wanted = [array.copy() for array in given]
            first, written = 0, []
            changed = {n: each.copy() for n, each in values.items()}
            for nest, remark in zip(nests, remarks):
                mine = wanted[first : first + len(nest.arrays)]
                compute(nest, mine, changed.get(first), order(nest, remark, ordered))
                for n, (_, _, accesses) in enumerate(nest.arrays):
                    if any(access != "read" for access, _ in accesses):
                        written.append((wanted[first + n], nest, remark))
                first += len(nest.arrays)
            # In the order of the step's arguments.
            first = 0
            for nest, remark in zip(nests, remarks):
                if of_entries(nest):
                    written.append((changed[first], nest, remark))
                first += len(nest.arrays)
            got = np.load(outputs)
            for out, (array, nest, remark) in enumerate(written):
                if got[f"out{out}"].tobytes() != array.tobytes():
                    wrong += 1
                    print(f"{machine}: out{out} differs: {remark}\n{text(nest, 0, ordered)}")
            blocks = sum(" workers; " in remark for remark in remarks)
            print(f"{machine}: {count} loops, {blocks} in blocks, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
