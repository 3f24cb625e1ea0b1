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


def text(nest, first):
    """The nest as loops of affine over arrays %a<first>, ..."""
    lines = []
    for level, (lower, upper, step) in enumerate(nest.levels):
        dims = ", ".join(f"d{k}" for k in range(level))
        counters = ", ".join(f"%c{k}" for k in range(level))
        low, high = (
            f"affine_map<({dims}) -> ({total(bound, 'd')})>({counters})" for bound in (lower, upper)
        )
        lines.append(f"affine.for %c{level} = {low} to {high} step {step} {{")
    held, number = {"f32": "%f32", "i32": "%i32"}, 0
    for n, (kind, extents, accesses) in enumerate(nest.arrays):
        memref = f"memref<{'x'.join(map(str, extents))}x{kind}>"
        letter = kind[0]
        for access, subscripts in accesses:
            at = f"%a{first + n}[{', '.join(total(s, '%c') for s in subscripts)}] : {memref}"
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
    return "\n".join([*lines, "}" * len(nest.levels)])


def module(nests):
    """The step of all of them, and the lines that they begin at."""
    arguments, bodies = [], []
    for nest in nests:
        bodies.append(text(nest, len(arguments)))
        for kind, extents, _ in nest.arrays:
            memref = f"memref<{'x'.join(map(str, extents))}x{kind}>"
            init = "value = 0.0 : f32" if kind == "f32" else "value = 0 : i64"
            init = f'baechi.init = {{kind = "constant", {init}}}'
            name = f"a{len(arguments)}"
            arguments.append(f'%{name}: {memref} {{baechi.name = "{name}", {init}}}')
    constants = [
        "%i32 = arith.constant 3 : i32",
        "%f32 = arith.constant 0.7 : f32",
        "%halfi32 = arith.constant 5 : i32",
        "%halff32 = arith.constant 0.3 : f32",
    ]
    head = [f"func.func @step({', '.join(arguments)}) {{", *constants]
    lines = [len(head) + 1]
    for body in bodies:
        lines.append(lines[-1] + body.count("\n") + 1)
    return "\n".join([*head, *bodies, "return", "}"]), lines[:-1]


def order(nest, remark, ordered):
    """The counters of the entries, one after the other."""
    found = re.match(r"(.*?): (\d+) blocks of (\d+) workers; (.*)", remark)
    if ordered or not found:
        return nest.counters
    workers = int(found[3])
    axes = []
    for axis in found[4].split("; "):
        form, cuts = axis.split(" at ")
        axes.append((compile(form, form, "eval"), [int(cut) for cut in cuts.split(", ")]))
    blocks = {}
    for counters in nest.counters:
        keys = dict(zip("ijk", nest.key(counters)))
        parts = []
        for form, cuts in axes:
            at = eval(form, {}, keys)
            parts.append(sum(at >= cut for cut in cuts[1:-1]))
        blocks.setdefault(tuple(parts), []).append(counters)
    counts = [len(cuts) - 1 for _, cuts in axes]
    if found[1].startswith(("wavefront", "one after")):
        scheduled = sorted(itertools.product(*map(range, counts)), key=lambda b: (sum(b), b[0]))
    else:
        turns = itertools.product(range(workers), repeat=len(axes) - 1)
        scheduled = [
            (worker, *((worker + turn) % workers for turn in turned))
            for turned in turns
            for worker in range(workers)
        ]
    made = [counters for block in scheduled for counters in blocks.get(block, [])]
    assert len(made) == len(nest.counters), remark
    return made


def compute(nest, arrays, entries):
    half = {"f32": np.float32(0.3), "i32": np.int32(5)}
    for counters in entries:
        held = {"f32": np.float32(0.7), "i32": np.int32(3)}
        for array, (kind, _, accesses) in zip(arrays, nest.arrays):
            for access, subscripts in accesses:
                at = tuple(of(s, counters) for s in subscripts)
                if access == "read":
                    held[kind] = held[kind] * half[kind] + array[at]
                elif access == "update":
                    array[at] = array[at] + held[kind]
                else:
                    array[at] = held[kind]


def main():
    tool = sys.argv[1]
    numbers = [int(word) for word in sys.argv[2:4]]
    count, seed = numbers + [20, 1][len(numbers) :]
    machines = sys.argv[4:] or ["host:2"]
    rng, ordered = random.Random(seed), seed % 2 == 1
    nests = [rng.choice([Nest, Tame, Tame])(rng) for _ in range(count)]
    kinds = [(kind, extents) for nest in nests for kind, extents, _ in nest.arrays]
    drawn = np.random.default_rng(seed)
    given = [
        drawn.normal(size=extents).astype(np.float32)
        if kind == "f32"
        else drawn.integers(-1000, 1000, extents).astype(np.int32)
        for kind, extents in kinds
    ]
    wrong = 0
    np.seterr(over="ignore")
    with tempfile.TemporaryDirectory() as folder:
        file, inputs, outputs = (Path(folder) / n for n in ("loops.mlir", "in.npz", "out.npz"))
        module_text, lines = module(nests)
        file.write_text(module_text)
        np.savez(inputs, **{f"a{n}": array for n, array in enumerate(given)})
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
            for nest, remark in zip(nests, remarks):
                mine = wanted[first : first + len(nest.arrays)]
                compute(nest, mine, order(nest, remark, ordered))
                for n, (_, _, accesses) in enumerate(nest.arrays):
                    if any(access != "read" for access, _ in accesses):
                        written.append((first + n, nest, remark))
                first += len(nest.arrays)
            got = np.load(outputs)
            for out, (number, nest, remark) in enumerate(written):
                if got[f"out{out}"].tobytes() != wanted[number].tobytes():
                    wrong += 1
                    print(f"{machine}: array {number} differs: {remark}\n{text(nest, 0)}")
            blocks = sum(" workers; " in remark for remark in remarks)
            print(f"{machine}: {count} loops, {blocks} in blocks, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
