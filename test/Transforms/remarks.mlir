// Reasons as remarks: silent unless asked for.
// DEFINE: %{place} = --baechi-constrain="pins=pinned=host1 groups=grou*=mine" --baechi-colocate --baechi-place="machine=host:2@100KiB budget=2000e"
// RUN: baechi-opt %s %{place} -o %t.silent 2>&1 | count 0
// RUN: baechi-opt %s %{place} --remarks-filter="baechi-.*" -o %t.told 2>&1 | FileCheck %s
// RUN: cmp %t.silent %t.told
// Each kind by itself, and as a file.
// RUN: baechi-opt %s %{place} --remarks-filter-missed="baechi.place" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: baechi-opt %s %{place} --remarks-filter="baechi-.*" --remark-format=yaml --remarks-output-file=%t.yaml -o /dev/null
// RUN: FileCheck %s --check-prefix=YAML < %t.yaml
// RUN: baechi-opt %s --baechi-fuse="machine=host:2" --remarks-filter="baechi-fuse" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FUSE

// CHECK: remarks.mlir:[[#]]:[[#]]: remark: [Passed] pinned | Category:baechi-constrain | Function=step | Operator=pinned, Reason="asked for by pins=pinned=host1", To=host1
// CHECK: [Passed] grouped | Category:baechi-constrain | Function=step | Operator=group1, Reason="asked for by groups=grou*=mine", To=mine
// CHECK: [Passed] grouped | Category:baechi-colocate | Function=step | Group=w, Operator=w, Reason="its next value is computed by 'update'"
// CHECK: [Passed] grouped | Category:baechi-colocate | Function=step | Group=mine, Operator=group1, Reason="the program's own group"
// CHECK: [Passed] grouped | Category:baechi-colocate | Function=step | Group=w, Operator=update, Reason="it computes the next value of 'w'"
// CHECK: [Analysis] grouping | Category:baechi-place | Function=step | OperatorsAfter={{[0-9]+}}, OperatorsBefore=6, Step=colocate
// CHECK: [Passed] search | Category:baechi-place | Function=step | MakespanNs={{[0-9]+}}, Moved={{[0-9]+}}, Placer=msct, PlacerMakespanNs={{[0-9]+}}, Winner=
// CHECK: [Passed] placed | Category:baechi-place | Function=step | Device=host1, Operator=pinned, StartNs={{[0-9]+}}, TimeNs=10000, Why="It is pinned to host1.
// CHECK: [Missed] refused | Category:baechi-place | Function=step | Device=host0, Operator=pinned, Reason="it is pinned to host1"

// MISSED-NOT: [Passed]
// MISSED: [Missed] refused
// MISSED-NOT: [Passed]

// YAML: --- !Passed
// YAML: Pass: {{.*}}baechi-constrain
// YAML: Name: pinned
// YAML: --- !Missed

// FUSE: [Passed] grouped | Category:baechi-fuse | Function=step | Group={{.*}}, Members={{[0-9]+}}, Operator={{.*}}, Reason="apart, a transfer would be waited for"

func.func @step(%w: tensor<1024xf32> {baechi.name = "w", baechi.updated_by = 0 : i64}) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %0 = arith.addf %w, %w {baechi.name = "pinned", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<1024xf32>
  %1 = arith.mulf %0, %0 {baechi.name = "group1", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<1024xf32>
  %2 = arith.subf %0, %w {baechi.name = "group2", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<1024xf32>
  %3 = arith.addf %1, %2 {baechi.name = "sum", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<1024xf32>
  %4 = arith.addf %w, %3 {baechi.name = "update", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<1024xf32>
  return %4, %3 : tensor<1024xf32>, tensor<1024xf32>
}
