#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a training step of at least N operations on tensors: a residual network as an importer
leaves it, unfused.

    make_program.py 100000 [--widths 16] -o step.mlir

Each layer normalises its rows, multiplies, adds a bias, takes a softmax over four slices that it
concatenates again, multiplies and adds what it came from; a backward layer for each, in reverse,
reads what the forward layer left, and updates the parameters. Every operation has a location of
its own. Widths change from layer to layer among --widths of them, so that about so many kernels of
each sort are distinct. Of N counts each linalg, arith, math and tensor operation of the function
itself; of a linalg operation its init is another, as in imported models.
"""

import argparse
import sys

ROWS = 64
RATE = 0.01


class Step:
    def __init__(self, widths):
        self.widths = widths
        self.lines, self.arguments, self.results = [], [], []
        self.count = 0
        self.scope = ""

    def emit(self, text, shape, what):
        """An operation with one result, which is returned as (name, shape)."""
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(
            f'  {name} = {text} : {what or self.tensor(shape)} loc("{self.scope}/{self.count}")'
        )
        return name, shape

    @staticmethod
    def tensor(shape):
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    def argument(self, shape, name):
        self.arguments.append((f"%{name}", shape, name))
        return f"%{name}", shape

    def empty(self, shape):
        return self.emit("tensor.empty()", shape, None)

    def filled(self, constant, shape):
        init, _ = self.empty(shape)
        type = self.tensor(shape)
        return self.linalg_op(f"fill ins({constant} : f32) outs({init} : {type}) -> {type}", shape)

    def linalg(self, name, inputs, init, tail=""):
        """A named linalg operation. Those with a `tail` print no result type."""
        types = ", ".join(self.tensor(shape) for _, shape in inputs)
        values = ", ".join(value for value, _ in inputs)
        out, shape = init
        arrow = "" if tail else f" -> {self.tensor(shape)}"
        return self.linalg_op(
            f"{name} ins({values} : {types}) outs({out} : {self.tensor(shape)}){tail}{arrow}", shape
        )

    def linalg_op(self, text, shape):
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(
            f'  {name} = linalg.{text} loc("{self.scope}/{text.split()[0]}{self.count}")'
        )
        return name, shape

    def unary(self, op, x):
        return self.emit(f"{op} {x[0]}", x[1], None)

    def binary(self, op, x, y):
        assert x[1] == y[1], (op, x, y)
        return self.emit(f"{op} {x[0]}, {y[0]}", x[1], None)

    def rows(self, x, body, start):
        init = self.filled(start, x[1][:1])
        return self.linalg(f"reduce {{ {body} }}", [x], init, " dimensions = [1]")

    def columns(self, x):
        init = self.filled("%zero", x[1][1:])
        return self.linalg("reduce { arith.addf }", [x], init, " dimensions = [0]")

    def over_columns(self, x, width):
        return self.linalg("broadcast", [x], self.empty((x[1][0], width)), " dimensions = [1]")

    def over_rows(self, x):
        return self.linalg("broadcast", [x], self.empty((ROWS, x[1][0])), " dimensions = [0]")

    def transpose(self, x):
        return self.linalg("transpose", [x], self.empty(x[1][::-1]), " permutation = [1, 0]")

    def matmul(self, x, y):
        return self.linalg("matmul", [x, y], self.filled("%zero", (x[1][0], y[1][1])))

    def slice(self, x, offset, width):
        shape = (x[1][0], width)
        return self.emit(
            f"tensor.extract_slice {x[0]}[0, {offset}] [{shape[0]}, {width}] [1, 1]",
            shape,
            f"{self.tensor(x[1])} to {self.tensor(shape)}",
        )

    def concatenated(self, parts):
        width = sum(part[1][1] for part in parts)
        whole, offset = self.empty((ROWS, width)), 0
        for part in parts:
            whole = self.emit(
                f"tensor.insert_slice {part[0]} into {whole[0]}[0, {offset}] "
                f"[{ROWS}, {part[1][1]}] [1, 1]",
                whole[1],
                f"{self.tensor(part[1])} into {self.tensor(whole[1])}",
            )
            offset += part[1][1]
        return whole

    def update(self, argument, gradient, name):
        rate = self.filled("%rate", argument[1])
        step = self.binary("arith.mulf", gradient, rate)
        self.results.append((self.binary("arith.subf", argument, step), name))

    def normalised(self, x):
        width = x[1][1]
        scale = self.filled("%scale", x[1][:1])
        mean = self.binary("arith.mulf", self.rows(x, "arith.addf", "%zero"), scale)
        centred = self.binary("arith.subf", x, self.over_columns(mean, width))
        squares = self.binary("arith.mulf", centred, centred)
        variance = self.binary("arith.mulf", self.rows(squares, "arith.addf", "%zero"), scale)
        deviation = self.unary(
            "math.rsqrt", self.binary("arith.addf", variance, self.filled("%small", x[1][:1]))
        )
        return self.binary("arith.mulf", centred, self.over_columns(deviation, width)), deviation

    def softmax(self, x):
        width = x[1][1]
        high = self.rows(x, "arith.maximumf", "%low")
        exp = self.unary("math.exp", self.binary("arith.subf", x, self.over_columns(high, width)))
        return self.binary(
            "arith.divf", exp, self.over_columns(self.rows(exp, "arith.addf", "%zero"), width)
        )

    def forward(self, x, index):
        self.scope = f"layer{index}"
        d, h = x[1][1], self.widths[index % len(self.widths)]
        w1, b1 = self.argument((d, h), f"w1_{index}"), self.argument((h,), f"b1_{index}")
        w2 = self.argument((h, d), f"w2_{index}")
        normal, deviation = self.normalised(x)
        hidden = self.binary("arith.addf", self.matmul(normal, w1), self.over_rows(b1))
        heads = [self.softmax(self.slice(hidden, head * h // 4, h // 4)) for head in range(4)]
        mixed = self.concatenated(heads)
        return self.binary("arith.addf", self.matmul(mixed, w2), x), (
            index,
            w1,
            b1,
            w2,
            normal,
            deviation,
            mixed,
        )

    def backward(self, gradient, saved):
        index, w1, b1, w2, normal, deviation, mixed = saved
        self.scope = f"backward/layer{index}"
        d, h = gradient[1][1], mixed[1][1]
        self.update(w2, self.matmul(self.transpose(mixed), gradient), f"w2_{index}")
        towards = self.matmul(gradient, self.transpose(w2))
        product = self.binary("arith.mulf", towards, mixed)
        parts = []
        for head in range(4):
            part = self.slice(product, head * h // 4, h // 4)
            total = self.over_columns(self.rows(part, "arith.addf", "%zero"), h // 4)
            probability = self.slice(mixed, head * h // 4, h // 4)
            parts.append(
                self.binary("arith.subf", part, self.binary("arith.mulf", probability, total))
            )
        inner = self.concatenated(parts)
        self.update(b1, self.columns(inner), f"b1_{index}")
        self.update(w1, self.matmul(self.transpose(normal), inner), f"w1_{index}")
        back = self.matmul(inner, self.transpose(w1))
        scale = self.filled("%scale", deviation[1])
        mean = self.binary(
            "arith.mulf",
            self.rows(self.binary("arith.mulf", back, normal), "arith.addf", "%zero"),
            scale,
        )
        along = self.binary("arith.mulf", normal, self.over_columns(mean, d))
        through = self.binary(
            "arith.mulf", self.binary("arith.subf", back, along), self.over_columns(deviation, d)
        )
        return self.binary("arith.addf", gradient, through)

    def text(self):
        results = [
            f'{self.tensor(shape)} {{baechi.name = "{name}"}}' for (_, shape), name in self.results
        ]
        position = {name: number for number, (_, name) in enumerate(self.results)}
        arguments = [
            f'{value}: {self.tensor(shape)} {{baechi.name = "{name}"'
            + (f", baechi.updated_by = {position[name]} : i64" if name in position else "")
            + "}"
            for value, shape, name in self.arguments
        ]
        constants = [
            f"  %{name} = arith.constant {value} : f32"
            for name, value in (
                ("zero", "0.0"),
                ("low", "0xFF800000"),
                ("rate", RATE),
                ("scale", 1.0 / 64),
                ("small", "1.0e-5"),
            )
        ]
        values = ", ".join(value for (value, _), _ in self.results)
        types = ", ".join(self.tensor(shape) for (_, shape), _ in self.results)
        return "\n".join(
            [
                f"func.func @step({', '.join(arguments)}) -> ({', '.join(results)}) {{",
                *constants,
                *self.lines,
                f"  return {values} : {types}",
                "}",
                "",
            ]
        )


def program(operations, widths):
    """The module's text, and its number of layers."""

    def of(layers):
        step = Step([64 + 16 * number for number in range(widths)])
        x = step.argument((ROWS, 64), "x")
        saved = []
        for index in range(layers):
            x, left = step.forward(x, index)
            saved.append(left)
        for left in reversed(saved):
            x = step.backward(x, left)
        step.results.append((x, "gradient"))
        return step

    first, second = of(1).count, of(2).count
    layers = max(1, -(-(operations - first) // (second - first)) + 1)
    return of(layers).text(), layers


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operations", type=int)
    parser.add_argument("--widths", type=int, default=16)
    parser.add_argument("-o", dest="output", default="-")
    options = parser.parse_args()
    text, layers = program(options.operations, options.widths)
    print(f"{layers} layers", file=sys.stderr)
    if options.output == "-":
        sys.stdout.write(text)
    else:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
