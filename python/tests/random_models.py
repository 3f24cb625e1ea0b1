# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random training steps in linalg: a model for every seed, the same every time.

Every operation is continuous and keeps values small, so that results of other
orders of summation differ by rounding alone.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

EXTENTS = [1, 2, 3, 5, 8, 16, 17, 33]


@dataclass(frozen=True)
class Tensor:
    """An SSA value of f32."""

    name: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        return tensor(self.shape)


def tensor(shape: tuple[int, ...], element: str = "f32") -> str:
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def model(seed: int) -> str:
    """A step with 8 to 60 operations, parameters that it updates among its arguments."""
    return _Writer(random.Random(seed)).write()


class _Writer:
    def __init__(self, choose: random.Random):
        self.choose = choose
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.parameters: list[tuple[int, Tensor]] = []  # with their positions
        self.values: list[Tensor] = []
        self.count = 0

    def write(self) -> str:
        for _ in range(self.choose.randint(1, 3)):
            rows, columns = self.choose.choices(EXTENTS, k=2)
            self.values.append(self.argument((rows, columns)))
        kinds = [
            self.product,
            self.product,
            self.unary,
            self.unary,
            self.binary,
            self.bias,
            self.softmax,
            self.reduction,
            self.transpose,
            self.slice_,
            self.concatenate,
            self.pad,
            self.reshape,
            self.gather,
            self.branch,
        ]
        for _ in range(self.choose.randint(8, 60)):
            self.choose.choice(kinds)()
        return self.finish()

    # ---- the program around the operations

    def argument(self, shape: tuple[int, ...], parameter: bool = False) -> Tensor:
        position = len(self.arguments)
        value = Tensor(f"%a{position}", shape)
        self.arguments.append(
            f"{value.name}: {value.type} "
            f'{{UPDATE{position}baechi.name = "a{position}", baechi.init = '
            f'{{high = 5.000000e-01 : f32, kind = "uniform", low = -5.000000e-01 : f32, '
            f"seed = {position + 1} : i64}}}}"
        )
        if parameter:
            self.parameters.append((position, value))
        return value

    def finish(self) -> str:
        results = self.choose.sample(self.values, min(3, len(self.values)))
        updates = {}
        for position, value in self.parameters:
            kind = self.choose.random()
            if kind < 0.5:
                updates[position] = len(results)
                results.append(self.step_towards(value))
            elif kind < 0.8 and len(value.shape) == 2:
                *before, last = self.change_rows(value)
                results += [other for other in before if self.choose.random() < 0.2]
                updates[position] = len(results)
                results.append(last)
        heads = []
        for position, head in enumerate(self.arguments):
            updated = (
                f"baechi.updated_by = {updates[position]} : i64, " if position in updates else ""
            )
            heads.append(head.replace(f"UPDATE{position}baechi", f"{updated}baechi"))
        types = ", ".join(value.type for value in results)
        names = ", ".join(value.name for value in results)
        body = "\n".join(f"  {line}" for line in self.lines)
        return (
            f"func.func @step({', '.join(heads)}) -> ({types}) {{\n"
            f"  %zero = arith.constant 0.0 : f32\n{body}\n  return {names} : {types}\n}}\n"
        )

    def step_towards(self, parameter: Tensor) -> Tensor:
        """The parameter's next value: from a value of its shape where there is one."""
        same = [value for value in self.values if value.shape == parameter.shape]
        other = self.choose.choice(same) if same else parameter
        body = ["%s = arith.mulf %y, %c : f32", "%r = arith.subf %x, %s : f32"]
        return self.elementwise([parameter, other], body, constant=0.125)

    def change_rows(self, parameter: Tensor) -> list[Tensor]:
        """The parameter with some rows changed, one to three times, each by what it holds."""
        versions = [parameter]
        for _ in range(self.choose.randint(1, 3)):
            change = self.choose.choice([self.insert_rows, self.add_rows])
            versions.append(change(versions[-1], self.choose.choice(versions)))
        return versions[1:]

    def insert_rows(self, table: Tensor, source: Tensor) -> Tensor:
        rows, columns = self.choose.randint(1, table.shape[0]), table.shape[1]
        begin, end = (self.choose.randint(0, table.shape[0] - rows) for _ in range(2))
        part = self.emit(
            f"tensor.extract_slice {source.name}[{begin}, 0] [{rows}, {columns}] [1, 1] : "
            f"{source.type} to {tensor((rows, columns))}",
            (rows, columns),
            keep=False,
        )
        body = ["%s = arith.mulf %x, %c : f32", "%r = math.tanh %s : f32"]
        new = self.elementwise([part], body, constant=1.5, keep=False)
        return self.emit(
            f"tensor.insert_slice {new.name} into {table.name}[{end}, 0] [{rows}, {columns}] "
            f"[1, 1] : {new.type} into {table.type}",
            table.shape,
            keep=False,
        )

    def add_rows(self, table: Tensor, source: Tensor) -> Tensor:
        """A loop as scatter's: the same row may come twice."""
        trips, factor = self.choose.choice(EXTENTS), self.choose.randrange(7)
        row = tensor((table.shape[1],))

        def slice_of(name, at):
            return (
                f"tensor.extract_slice {name}[{at}, 0] [1, {table.shape[1]}] [1, 1] : "
                f"{table.type} to {row}"
            )

        self.count += 1
        prefix = f"%loop{self.count}"
        identity = "affine_map<(d0) -> (d0)>"
        for name, number in (
            ("0", 0),
            ("1", 1),
            ("n", trips),
            ("f", factor),
            ("r", table.shape[0]),
        ):
            self.lines.append(f"{prefix}_{name} = arith.constant {number} : index")
        return self.emit(
            f"scf.for %i = {prefix}_0 to {prefix}_n step {prefix}_1 iter_args(%now = {table.name}) "
            f"-> ({table.type}) {{\n"
            f"    %m = arith.muli %i, {prefix}_f : index\n"
            f"    %k = arith.remui %m, {prefix}_r : index\n"
            f"    %l = arith.remui %i, {prefix}_r : index\n"
            f"    %old = {slice_of('%now', '%k')}\n"
            f"    %add = {slice_of(source.name, '%l')}\n"
            f"    %e = tensor.empty() : {row}\n"
            f"    %sum = linalg.generic {{indexing_maps = [{identity}, {identity}, {identity}], "
            f'iterator_types = ["parallel"]}} ins(%old, %add : {row}, {row}) outs(%e : {row}) {{\n'
            f"    ^bb0(%x: f32, %y: f32, %o: f32):\n"
            f"      %s = arith.addf %x, %y : f32\n"
            f"      %t = math.tanh %s : f32\n"
            f"      linalg.yield %t : f32\n"
            f"    }} -> {row}\n"
            f"    %next = tensor.insert_slice %sum into %now[%k, 0] [1, {table.shape[1]}] [1, 1] : "
            f"{row} into {table.type}\n"
            f"    scf.yield %next : {table.type}\n  }}",
            table.shape,
            keep=False,
        )

    # ---- operations

    def fresh(self, shape: tuple[int, ...]) -> Tensor:
        self.count += 1
        return Tensor(f"%v{self.count}", shape)

    def emit(self, text: str, shape: tuple[int, ...], keep: bool = True) -> Tensor:
        value = self.fresh(shape)
        self.lines.append(f'{value.name} = {text} loc("op{self.count}")')
        if keep:
            self.values.append(value)
        return value

    def any(self, rank: int = 2) -> Tensor:
        return self.choose.choice([v for v in self.values if len(v.shape) == rank])

    def empty(self, shape: tuple[int, ...]) -> Tensor:
        return self.emit(f"tensor.empty() : {tensor(shape)}", shape, keep=False)

    def filled(self, shape: tuple[int, ...], number: str = "%zero") -> Tensor:
        into = self.empty(shape)
        text = f"linalg.fill ins({number} : f32) outs({into.name} : {into.type}) -> {into.type}"
        return self.emit(text, shape, keep=False)

    def generic(self, shape, maps, iterators, inputs, into, body, result="%r", keep=True):
        dims = ", ".join(f"d{i}" for i in range(len(iterators)))
        texts = ", ".join(f"affine_map<({dims}) -> ({at})>" for at in maps)
        kinds = ", ".join(f'"{kind}"' for kind in iterators)
        names = "%x %y %z".split()[: len(inputs)]
        scalars = ", ".join(f"{name}: f32" for name in [*names, "%o"])
        ins = ", ".join(value.name for value in inputs)
        types = ", ".join(value.type for value in inputs)
        read = f"ins({ins} : {types}) " if inputs else ""
        inside = " ".join([*body, f"linalg.yield {result} : f32"])
        return self.emit(
            f"linalg.generic {{indexing_maps = [{texts}], iterator_types = [{kinds}]}} "
            f"{read}outs({into.name} : {into.type}) {{ ^bb0({scalars}): {inside} }} "
            f"-> {into.type}",
            shape,
            keep,
        )

    def elementwise(self, inputs, body, constant=None, keep=True) -> Tensor:
        shape = inputs[0].shape
        plain = ", ".join(f"d{i}" for i in range(len(shape)))
        if constant is not None:
            body = [f"%c = arith.constant {constant:e} : f32", *body]
        maps = [plain] * (len(inputs) + 1)
        kinds = ["parallel"] * len(shape)
        return self.generic(shape, maps, kinds, inputs, self.empty(shape), body, keep=keep)

    def product(self):
        left = self.any()
        columns = self.choose.choice(EXTENTS)
        right = self.argument((left.shape[1], columns), parameter=True)
        shape = (left.shape[0], columns)
        into = self.filled(shape)
        raw = self.emit(
            f"linalg.matmul ins({left.name}, {right.name} : {left.type}, {right.type}) "
            f"outs({into.name} : {into.type}) -> {into.type}",
            shape,
            keep=False,
        )
        self.elementwise([raw], ["%r = math.tanh %x : f32"])

    def unary(self):
        body = self.choose.choice(
            [
                ["%r = math.tanh %x : f32"],
                ["%n = arith.negf %x : f32", "%e = math.exp %n : f32", "%r = math.tanh %e : f32"],
                ["%r = arith.maximumf %x, %c : f32"],
                ["%r = arith.mulf %x, %c : f32"],
                ["%m = arith.mulf %x, %x : f32", "%r = arith.addf %m, %c : f32"],
            ]
        )
        constant = self.choose.choice([0.0, 0.5, -0.25])
        self.elementwise([self.any(self.rank())], body, constant)

    def rank(self) -> int:
        return self.choose.choice(sorted({len(value.shape) for value in self.values}))

    def binary(self):
        left = self.any(self.rank())
        right = self.choose.choice([v for v in self.values if v.shape == left.shape])
        name = self.choose.choice(["addf", "subf", "mulf", "maximumf", "minimumf"])
        body = [f"%s = arith.{name} %x, %y : f32", "%r = math.tanh %s : f32"]
        self.elementwise([left, right], body)

    def bias(self):
        value = self.any()
        axis = self.choose.randrange(2)
        bias = self.argument((value.shape[axis],), parameter=True)
        body = ["%r = arith.addf %x, %y : f32"]
        maps = ["d0, d1", f"d{axis}", "d0, d1"]
        into = self.empty(value.shape)
        self.generic(value.shape, maps, ["parallel"] * 2, [value, bias], into, body)

    def reduce(self, value: Tensor, axis: int, combine: str, start: Tensor, keep=True) -> Tensor:
        kinds = ["reduction" if i == axis else "parallel" for i in range(2)]
        body = [f"%r = arith.{combine} %x, %o : f32"]
        shape = (value.shape[1 - axis],)
        return self.generic(
            shape, ["d0, d1", f"d{1 - axis}"], kinds, [value], start, body, keep=keep
        )

    def reduction(self):
        value, axis = self.any(), self.choose.randrange(2)
        total = self.reduce(value, axis, "addf", self.filled((value.shape[1 - axis],)), keep=False)
        self.elementwise([total], ["%r = arith.mulf %x, %c : f32"], 1 / value.shape[axis])

    def softmax(self):
        value = self.any()
        rows = (value.shape[0],)
        self.count += 1
        lowest = f"%low{self.count}"
        self.lines.append(f"{lowest} = arith.constant -1.000000e+30 : f32")
        most = self.reduce(value, 1, "maximumf", self.filled(rows, lowest), keep=False)
        maps, kinds = ["d0, d1", "d0", "d0, d1"], ["parallel"] * 2
        body = ["%s = arith.subf %x, %y : f32", "%r = math.exp %s : f32"]
        powers = self.generic(
            value.shape, maps, kinds, [value, most], self.empty(value.shape), body, keep=False
        )
        total = self.reduce(powers, 1, "addf", self.filled(rows), keep=False)
        body = ["%r = arith.divf %x, %y : f32"]
        self.generic(value.shape, maps, kinds, [powers, total], self.empty(value.shape), body)

    def transpose(self):
        value = self.any()
        shape = value.shape[::-1]
        into = self.empty(shape)
        self.generic(shape, ["d1, d0", "d0, d1"], ["parallel"] * 2, [value], into, [], result="%x")

    def slice_(self):
        value = self.any()
        begin = [self.choose.randrange(extent) for extent in value.shape]
        shape = tuple(self.choose.randint(1, extent - at) for extent, at in zip(value.shape, begin))
        self.emit(
            f"tensor.extract_slice {value.name}{begin} {list(shape)} [1, 1] : "
            f"{value.type} to {tensor(shape)}",
            shape,
        )

    def concatenate(self):
        left = self.any()
        axis = self.choose.randrange(2)
        other = [
            v
            for v in self.values
            if len(v.shape) == 2 and v.shape[1 - axis] == left.shape[1 - axis]
        ]
        right = self.choose.choice(other)
        shape = list(left.shape)
        shape[axis] += right.shape[axis]
        into, offset = self.empty(tuple(shape)), [0, 0]
        for value, last in ((left, False), (right, True)):
            into = self.emit(
                f"tensor.insert_slice {value.name} into {into.name}{offset} "
                f"{list(value.shape)} [1, 1] : {value.type} into {into.type}",
                tuple(shape),
                keep=last,
            )
            offset[axis] += value.shape[axis]

    def pad(self):
        value = self.any()
        low, high = ([self.choose.randrange(3) for _ in range(2)] for _ in range(2))
        shape = tuple(a + b + c for a, b, c in zip(low, value.shape, high))
        self.emit(
            f"tensor.pad {value.name} low{low} high{high} {{ ^bb0(%i: index, %j: index): "
            f"tensor.yield %zero : f32 }} : {value.type} to {tensor(shape)}",
            shape,
        )

    def reshape(self):
        value = self.any()
        size = math.prod(value.shape)
        flat = self.emit(
            f"tensor.collapse_shape {value.name} [[0, 1]] : {value.type} into {tensor((size,))}",
            (size,),
        )
        rows = self.choose.choice([n for n in range(1, size + 1) if size % n == 0])
        shape = (rows, size // rows)
        self.emit(
            f"tensor.expand_shape {flat.name} [[0, 1]] output_shape {list(shape)} : "
            f"{flat.type} into {tensor(shape)}",
            shape,
        )

    def gather(self):
        value = self.any()
        rows = self.choose.choice(EXTENTS)
        shape = (rows, value.shape[1])
        into = self.empty(shape)
        factor = self.choose.randrange(7)
        body = [
            "%i = linalg.index 0 : index",
            "%j = linalg.index 1 : index",
            f"%f = arith.constant {factor} : index",
            f"%n = arith.constant {value.shape[0]} : index",
            "%m = arith.muli %i, %f : index",
            "%k = arith.remui %m, %n : index",
            f"%r = tensor.extract {value.name}[%k, %j] : {value.type}",
        ]
        self.generic(shape, ["d0, d1"], ["parallel"] * 2, [], into, body)

    def branch(self):
        """A comparison whose sides meet where it turns: continuous."""
        body = [
            "%p = arith.cmpf ogt, %x, %c : f32",
            "%s = arith.mulf %x, %x : f32",
            "%r = arith.select %p, %s, %c : f32",
        ]
        self.elementwise([self.any(self.rank())], body, 0.0)
