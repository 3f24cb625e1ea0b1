// The stock mlir-opt reads the dialect and places with the plugin's passes.
// REQUIRES: stock-mlir-opt
// DEFINE: %{opt} = mlir-opt-22 --load-dialect-plugin=%baechi_plugin --load-pass-plugin=%baechi_plugin

// RUN: %{opt} %s --pass-pipeline="builtin.module(canonicalize,baechi-annotate-costs,baechi-place{placer=msct machine=host:2@1MiB})" -o %t.placed
// RUN: FileCheck %s < %t.placed
// RUN: baechi-opt %s --canonicalize --baechi-annotate-costs --baechi-place="msct machine=host:2@1MiB" | cmp - %t.placed
// RUN: not %{opt} %s --pass-pipeline="builtin.module(baechi-place)" 2>&1 | FileCheck %s --check-prefix=ERROR
// Remarks, too.
// RUN: %{opt} %s --pass-pipeline="builtin.module(baechi-annotate-costs,baechi-place{machine=host:2@1MiB})" --remarks-filter=baechi.place -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Passed] placed | Category:baechi-place | Function=step | Device=host0, Operator=arith.addf
// CHECK: baechi.certificate = #baechi.placement_certificate<placer = "msct"
// CHECK: arith.addf {{.*}} {baechi.cost = #baechi.cost<{{.*}}baechi.device = "host
// ERROR: error:
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %x, %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
