#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what --baechi-raise-loops and --baechi-analyse-loops say of random loop nests with
what trying all entries says.

    check_loops.py BAECHI_OPT [LOOPS] [SEED]

300 loops by default. Half of many are ordered, of 500 and less those of odd seeds.

Nests are of one to three loops of affine, with steps and bounds that depend on outer counters,
over arrays of one or two dimensions at sums of counters. A verdict is unsound when two entries
that it lets run at once touch an element that one of them writes. One is missed when entries
that differ in a key are independent, or those that differ in up to three if the loop is
unordered, and the verdict is serial.
"""

import itertools
import random
import re
import subprocess
import sys

PER_MODULE = 500


class Nest:
    """Levels (lower, upper, step), where bounds are (coefficients of counters, constant); arrays
    of (type, extents, accesses), where an access is (kind, subscripts)."""

    def __init__(self, rng):
        self.levels = []
        for level in range(rng.randint(1, 3)):
            step = 2 if rng.random() < 0.15 else 1
            lower = ([0] * level, rng.randint(0, 3))
            upper = ([0] * level, lower[1] + rng.randint(1, 5))
            around = [k for k in range(level) if self.levels[k][2] == 1]
            if around and step == 1 and rng.random() < 0.3:
                outer = rng.choice(around)
                bound = ([int(k == outer) for k in range(level)], rng.randint(0, 1))
                lower, upper = (bound, upper) if rng.random() < 0.5 else (lower, bound)
            self.levels.append((lower, upper, step))
        self.counters = list(self.enumerate([]))
        self.arrays = [self.array(rng) for _ in range(rng.randint(1, 2))]

    def enumerate(self, counters):
        if len(counters) == len(self.levels):
            yield tuple(counters)
            return
        lower, upper, step = self.levels[len(counters)]
        for value in range(of(lower, counters), of(upper, counters), step):
            yield from self.enumerate([*counters, value])

    def key(self, counters):
        """The keys that counters become: with a step they count from 0 on."""
        return tuple(
            value if step == 1 else (value - lower[1]) // step
            for value, (lower, _, step) in zip(counters, self.levels)
        )

    def array(self, rng):
        kind = rng.choice(["f32", "i32"])
        rank = rng.randint(1, 2)
        accesses = []
        for _ in range(rng.randint(1, 3)):
            subscripts = [self.subscript(rng) for _ in range(rank)]
            accesses.append((rng.choice(["read", "write", "update"]), subscripts))
        extents = []
        for dimension in range(rank):
            positions = [
                of(subscripts[dimension], counters)
                for _, subscripts in accesses
                for counters in self.counters
            ] or [0]
            least = min(positions)
            for _, subscripts in accesses:
                factors, constant = subscripts[dimension]
                subscripts[dimension] = (factors, constant - least)
            extents.append(max(positions) - least + 1)
        return kind, extents, accesses

    def subscript(self, rng):
        keys = len(self.levels)
        if rng.random() < 0.3:
            return [rng.randint(-3, 3) for _ in range(keys)], rng.randint(0, 3)
        factors = [0] * keys
        factors[rng.randrange(keys)] = rng.randint(-3, 3) if rng.random() < 0.25 else 1
        return factors, rng.randint(0, 3)

    def text(self, name):
        types = [f"memref<{'x'.join(map(str, e))}x{t}>" for t, e, _ in self.arrays]
        lines = [f"func.func @{name}(" + ", ".join(f"%a{n}: {t}" for n, t in enumerate(types))]
        lines[0] += ") {"
        lines += ["%i32 = arith.constant 3 : i32", "%f32 = arith.constant 0.5 : f32"]
        for level, (lower, upper, step) in enumerate(self.levels):
            dims = ", ".join(f"d{k}" for k in range(level))
            counters = ", ".join(f"%c{k}" for k in range(level))
            low, high = (
                f"affine_map<({dims}) -> ({total(bound, 'd')})>({counters})"
                for bound in (lower, upper)
            )
            lines.append(f"affine.for %c{level} = {low} to {high} step {step} {{")
        number = 0
        for n, (kind, _, accesses) in enumerate(self.arrays):
            add = "arith.addf" if kind == "f32" else "arith.addi"
            for access, subscripts in accesses:
                at = f"%a{n}[{', '.join(total(s, '%c') for s in subscripts)}] : {types[n]}"
                if access != "write":
                    lines.append(f"%v{number} = affine.load {at}")
                if access == "update":
                    lines.append(f"%w{number} = {add} %v{number}, %{kind} : {kind}")
                    lines.append(f"affine.store %w{number}, {at}")
                if access == "write":
                    lines.append(f"affine.store %{kind}, {at}")
                number += 1
        return "\n".join([*lines, "}" * len(self.levels), "return", "}"])

    def conflicts(self, without):
        """Distances of the keys of entries that conflict, the later minus the earlier."""
        found = set()
        keys = [self.key(counters) for counters in self.counters]
        for n, (_, _, accesses) in enumerate(self.arrays):
            if n in without:
                continue
            touched = {}
            for entry, counters in enumerate(self.counters):
                for access, subscripts in accesses:
                    element = tuple(of(s, counters) for s in subscripts)
                    by = touched.setdefault(element, {})
                    by[entry] = by.get(entry, False) or access != "read"
            for by in touched.values():
                for (x, wrote), (y, writes) in itertools.combinations(sorted(by.items()), 2):
                    if wrote or writes:
                        found.add(tuple(b - a for a, b in zip(keys[x], keys[y])))
        return found


def of(form, counters):
    return sum(c * x for c, x in zip(form[0], counters)) + form[1]


def total(form, name):
    terms = [f"{c} * {name}{k}" for k, c in enumerate(form[0]) if c]
    return " + ".join([*terms, str(form[1])])


def numbers(text, field):
    found = re.search(field + r" = \[([-\d, ]*)\]", text.split("dependences")[0])
    return [int(n) for n in found[1].split(",")] if found else []


def inside(distance, hull):
    for number, text in zip(distance, hull.split(", ")):
        found = re.fullmatch(r"any|(?:from )?(-?\d+)|to (-?\d+)|(-?\d+) to (-?\d+)", text)
        low = found[1] or found[3]
        high = found[2] or found[4] or (found[1] if "from" not in text else None)
        if (low and number < int(low)) or (high and number > int(high)):
            return False
    return True


def unsound(nest, verdict, ordered):
    """What is wrong with a verdict, if anything."""
    scheme = re.search(r"scheme = (\w+)", verdict)[1]
    keys, form, sums = (numbers(verdict, field) for field in ("keys", "form", "sums"))
    for n in sums:
        kind, _, accesses = nest.arrays[n]
        if kind != "i32" or any(access != "update" for access, _ in accesses):
            return f"array {n} is no sum"
    conflicts = nest.conflicts(sums)
    if scheme == "independent" and conflicts:
        return f"entries at {min(conflicts)} conflict"
    if ordered and scheme == "disjoint" and len(keys) > 1:
        return "the order of entries is not kept"
    for distance in conflicts:
        along = sum(c * d for c, d in zip(form, distance))
        wrong = {
            "disjoint": all(distance[k] for k in keys),
            "wavefront": all(distance[k] for k in keys) or any(distance[k] < 0 for k in keys),
            "skewed": along != 0,
            "timed": along == 0 or (ordered and along < 0),
        }
        if wrong.get(scheme, False):
            return f"entries at {distance} conflict"
    hulls = re.findall(r"distances = \(([^)]*)\)", verdict)
    for distance in nest.conflicts([]):
        if any(distance) and not any(inside(distance, hull) for hull in hulls):
            return f"no dependence tells of {distance}"
    return None


def parallel(nest, ordered):
    sums = [
        n
        for n, (kind, _, accesses) in enumerate(nest.arrays)
        if kind == "i32" and all(access == "update" for access, _ in accesses)
    ]
    conflicts = nest.conflicts(sums)
    entries = [nest.key(counters) for counters in nest.counters]
    # No two entries differ in a key that has one value: blocks by it are one.
    keys = [k for k, values in enumerate(zip(*entries)) if len(set(values)) > 1]
    return not conflicts or any(
        not any(all(d[k] for k in chosen) for d in conflicts)
        for size in range(1, 2 if ordered else 4)
        for chosen in itertools.combinations(keys, size)
    )


def main():
    tool = sys.argv[1]
    given = [int(number) for number in sys.argv[2:]]
    count, seed = given + [300, 1][len(given) :]
    rng = random.Random(seed)
    wrong = missed = found = serial = 0
    for start in range(0, count, PER_MODULE):
        ordered = start // PER_MODULE % 2 == 0 if count > PER_MODULE else seed % 2 == 1
        nests = [Nest(rng) for _ in range(min(PER_MODULE, count - start))]
        module = "\n".join(nest.text(f"f{n}") for n, nest in enumerate(nests))
        raising = "--baechi-raise-loops" + ("" if ordered else "=unordered")
        said = subprocess.run(
            [tool, raising, "--baechi-analyse-loops", "-mlir-disable-threading"],
            input=module,
            capture_output=True,
            text=True,
        )
        if said.returncode:
            sys.exit(said.stderr[:2000])
        functions = re.split(r"func\.func @f\d+\(", said.stdout)[1:]
        for nest, text in zip(nests, functions, strict=True):
            verdicts = re.findall(r"baechi\.foreach .*verdict (.*) \{$", text, re.M)
            keys = text.partition("foreach")[2].partition(")")[0].count(" in ")
            if len(verdicts) != 1 or keys != len(nest.levels):
                sys.exit(f"not raised:\n{nest.text('f')}\n{text}\n{said.stderr[:500]}")
            if reason := unsound(nest, verdicts[0], ordered):
                wrong += 1
                print(f"unsound: {reason}\n{nest.text('f')}\n{verdicts[0]}")
            is_serial = "scheme = serial" in verdicts[0]
            serial += is_serial
            if parallel(nest, ordered):
                found += not is_serial
                missed += is_serial
        if count > PER_MODULE:
            print(f"{start + len(nests)}: {wrong} {found} {missed}", file=sys.stderr, flush=True)
    share = 100 * found / max(found + missed, 1)
    print(f"{count} loops: {wrong} unsound, {found} of {found + missed} parallel ones found")
    print(f"({share:.2f} %), {serial} serial")
    return wrong > 0 or share < 99


if __name__ == "__main__":
    sys.exit(main())
