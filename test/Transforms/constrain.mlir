// Pins and groups by patterns of names and locations, honoured by the placer.
// RUN: baechi-opt %s --baechi-constrain="pins=enc/a=host1,@model.py:4:*=host0 groups=input=g,enc/b=g machine=host:2" | FileCheck %s
// RUN: baechi-opt %s --pass-pipeline='builtin.module(baechi-constrain{pins=enc/a=host1,@model.py:4:*=host0 groups=input=g,enc/b=g})' | FileCheck %s
// Devices by number.
// RUN: baechi-opt %s --baechi-constrain="pins=enc/a=dev1,@model.py:4:*=dev0 groups=input=g,enc/b=g machine=host:2" | FileCheck %s
// Others in their place.
// RUN: baechi-opt %s --baechi-constrain="pins=enc/*=host0,sum=host0 groups=sum=h" --baechi-constrain="replace pins=enc/a=host1,@model.py:4:*=host0 groups=input=g,enc/b=g" | FileCheck %s
// Twice is once.
// RUN: baechi-opt %s --baechi-constrain="pins=enc/*=host1" --baechi-constrain="pins=enc/*=host1" -o %t.twice
// RUN: baechi-opt %s --baechi-constrain="pins=enc/*=host1" | diff %t.twice -
// RUN: baechi-opt %s --baechi-constrain="pins=enc/a=host1,enc/b=host0 groups=input=g,enc/b=g" --baechi-place="msct machine=host:2@1MiB" --baechi-verify-placed 2>/dev/null | FileCheck %s --check-prefix=PLACED

// CHECK: @step(%{{.*}}: tensor<64x64xf32> {baechi.group = "g", baechi.name = "input"})
// CHECK: arith.addf {{.*}}baechi.name = "enc/a", baechi.pin = "host1"
// CHECK: arith.mulf {{.*}}baechi.group = "g", baechi.name = "enc/b", baechi.pin = "host0"
// CHECK: arith.subf
// CHECK-NOT: baechi.pin
// CHECK-SAME: baechi.name = "sum"
// CHECK-NOT: baechi.pin

// PLACED: @step(%{{.*}}: tensor<64x64xf32> {baechi.device = "host0"
// PLACED: arith.addf {{.*}}baechi.device = "host1"
// PLACED: arith.mulf {{.*}}baechi.device = "host0"
func.func @step(%x: tensor<64x64xf32> {baechi.name = "input"}) -> tensor<64x64xf32> {
  %a = arith.addf %x, %x {baechi.name = "enc/a", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64x64xf32> loc("model.py":3:1)
  %b = arith.mulf %x, %x {baechi.name = "enc/b", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64x64xf32> loc("model.py":4:1)
  %c = arith.subf %a, %b {baechi.name = "sum", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<64x64xf32> loc("model.py":5:1)
  return %c : tensor<64x64xf32>
}
