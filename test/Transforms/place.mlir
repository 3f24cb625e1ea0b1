// A diamond of two long branches: worth two devices where links are fast.
// RUN: baechi-opt %s --baechi-place="msct machine=host:2@1MiB" | FileCheck %s --check-prefixes=CHECK,MSCT
// RUN: baechi-opt %s --baechi-place="metf machine=host:2@1MiB" | FileCheck %s --check-prefixes=CHECK,METF
// RUN: baechi-opt %s --baechi-place="machine=host:2@1MiB mtopo" | FileCheck %s --check-prefixes=CHECK,MTOPO
// RUN: baechi-opt %s --pass-pipeline='builtin.module(baechi-place{placer=metf machine=host:2@1MiB grouping=none})' | FileCheck %s --check-prefixes=CHECK,METF
// RUN: baechi-opt %s --baechi-place="machine=host:2@1MiB grouping=colocate+fuse" | FileCheck %s --check-prefixes=CHECK,MSCT
// RUN: baechi-opt %s --baechi-place="single machine=host:2@1MiB budget=0" | FileCheck %s --check-prefix=SINGLE
// The same command gives the same text.
// RUN: baechi-opt %s --baechi-place="msct machine=host:2@1MiB" -o %t.first
// RUN: baechi-opt %s --baechi-place="msct machine=host:2@1MiB" | diff %t.first -

// CHECK: baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>]
// MSCT: placer = "msct"
// METF: placer = "metf"
// MTOPO: placer = "mtopo"
// Every operator has a device and a start.
// CHECK: arith.addf {{.*}}baechi.device = "[[FIRST:host[01]]]"{{.*}}baechi.start = {{[0-9]+}} : i64
// CHECK: arith.mulf {{.*}}baechi.device = "host{{[01]}}"{{.*}}baechi.start = {{[0-9]+}} : i64
// CHECK: arith.subf {{.*}}baechi.device = "host{{[01]}}"{{.*}}baechi.start = {{[0-9]+}} : i64

// SINGLE-NOT: baechi.sends
// SINGLE-NOT: baechi.device = "host1"
func.func @step(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64x64xf32>
  %b = arith.mulf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64x64xf32>
  %c = arith.subf %a, %b {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
