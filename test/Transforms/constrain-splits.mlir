// Cuts by patterns of names and locations, for --baechi-split.
// RUN: baechi-opt %s --baechi-constrain="splits=x=0:2,enc/*=1:3,@model.py:5:*=whole" | FileCheck %s
// A pattern that names operators and arguments means the operators; one piece is for operators.
// RUN: baechi-opt %s --baechi-constrain="splits=enc/*=0:2" | FileCheck %s --check-prefix=OPERATORS
// RUN: baechi-opt %s --baechi-constrain="splits=x=whole" | FileCheck %s --check-prefix=ARGUMENT
// Twice is once; others in their place.
// RUN: baechi-opt %s --baechi-constrain="splits=x=0:2" --baechi-constrain="splits=x=0:2" | FileCheck %s --check-prefix=TWICE
// RUN: baechi-opt %s --baechi-constrain="splits=x=0:3,enc/a=0:4" --baechi-constrain="replace splits=x=0:2" | FileCheck %s --check-prefix=TWICE
// What is asked for is cut, what is to be whole is not.
// RUN: baechi-opt %s --baechi-constrain="splits=x=0:2,head=whole" --baechi-split --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: baechi-opt %s --baechi-constrain="splits=x=0:2,enc/*=0:2" --baechi-split | FileCheck %s --check-prefix=SAME
// The whole pipeline, whose operators have names by locations.
// RUN: sed 's/{baechi.name = "[a-z/]*"}//' %s > %t.mlir
// RUN: baechi-opt %t.mlir --baechi-compile="machine=host:2 split=@model.py:4:*=0:2" --mlir-print-ir-after=baechi-split -o %t.ir 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: baechi-opt %t.mlir --baechi-compile="machine=host:2 splits=canonical:2" -o %t.ir
// RUN: not baechi-opt %t.mlir --baechi-compile="splits=any" 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not baechi-opt %t.mlir --baechi-compile="splits=some" 2>&1 | FileCheck %s --check-prefix=MODE
// MACHINE: splits=any cuts one piece a device, and the pipeline has no machine: machine ''
// MODE: --splits is auto, none, exact, any, canonical:N, micro:N, forced:N or exact-forced:N

// CHECK: @step(%{{.*}}: tensor<5x6xf32> {baechi.name = "x", baechi.split = #baechi.split<dim = 0, sizes = [3, 2]>}
// CHECK-SAME: {baechi.name = "enc/w"})
// CHECK: arith.addf {{.*}}baechi.name = "enc/a", baechi.split = #baechi.split<dim = 1, sizes = [2, 2, 2]>
// CHECK: math.exp {{.*}}baechi.name = "head", baechi.split = #baechi.split<dim = 0, sizes = [5]>

// OPERATORS: {baechi.name = "x"}, {{.*}}{baechi.name = "enc/w"})
// OPERATORS: arith.addf {{.*}}sizes = [3, 2]

// ARGUMENT-NOT: baechi.split

// TWICE: {baechi.name = "x", baechi.split = #baechi.split<dim = 0, sizes = [3, 2]>}
// TWICE-NOT: baechi.split

// CUT: model.py:5:1: remark: [Missed] not-split | {{.*}}Reason="it asks for one piece"
// CUT-COUNT-2: arith.addf
// CUT: math.exp {{.*}}tensor<5x6xf32>
// CUT-NOT: math.exp

// SAME-COUNT-2: arith.addf
// SAME-COUNT-2: math.exp
func.func @step(%x: tensor<5x6xf32> {baechi.name = "x"}, %w: tensor<5x6xf32> {baechi.name = "enc/w"}) -> tensor<5x6xf32> {
  %a = arith.addf %x, %w {baechi.name = "enc/a"} : tensor<5x6xf32> loc("model.py":4:1)
  %b = math.exp %a {baechi.name = "head"} : tensor<5x6xf32> loc("model.py":5:1)
  return %b : tensor<5x6xf32>
}
