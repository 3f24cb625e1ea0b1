"""Writes a loop whose body has a chain of so many operations: `sum`, of the position that is
written; `select`, of a position from outside, each used twice; `add`, of what is added to an
element."""

import sys

kind, count = sys.argv[1], int(sys.argv[2])
start = {"sum": "%i", "select": "%n", "add": "%old"}[kind]
step = {
    "sum": "arith.addi {0}, %zero : index",
    "select": "arith.select %if, {0}, {0} : index",
    "add": "arith.addf {0}, %f : f32",
}[kind]
last = "%v0"
print(
    """func.func @step(%x: memref<1000xf32>, %n: index, %if: i1, %f: f32) {
  %zero = arith.constant 0 : index
  baechi.foreach ordered (%i in 0 to 1000) arrays(%a = %x : memref<1000xf32>) {
""",
    end="",
)
if kind == "add":
    print("    %old = memref.load %a[%zero] : memref<1000xf32>")
print(f"    %v0 = {step.format(start)}")
for i in range(1, count):
    print(f"    %v{i} = {step.format(last)}")
    last = f"%v{i}"
if kind == "add":
    print(f"    memref.store {last}, %a[%zero] : memref<1000xf32>")
else:
    print(f"    memref.store %f, %a[{last}] : memref<1000xf32>")
print("    baechi.yield\n  }\n  return\n}")
