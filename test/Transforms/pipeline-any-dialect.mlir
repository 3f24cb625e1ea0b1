// The placement passes ask only for costs: here arith operations.
// RUN: baechi-opt %s --baechi-colocate --baechi-place="msct machine=host:2@1MiB" --baechi-verify-placed | FileCheck %s --check-prefix=PLACED
// RUN: baechi-opt %s --baechi-place="msct machine=host:2@1MiB" --baechi-partition --baechi-verify-partitioned --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s --check-prefix=PLANNED

// PLACED: baechi.certificate = #baechi.placement_certificate<placer = "msct"
// PLACED-COUNT-6: baechi.device = "host

// Each device has its part and its memory; the branches meet.
// PLANNED: module @host0 attributes {baechi.arena = #baechi.arena<bytes =
// PLANNED: baechi.send
// PLANNED: module @host1 attributes {baechi.arena = #baechi.arena<bytes =
// PLANNED: baechi.recv
// PLANNED: baechi.await
func.func @step(%w: tensor<64x64xf32> {baechi.updated_by = 0 : i64}, %x: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  %b = arith.mulf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  %c = arith.addf %a, %a {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  %d = arith.mulf %b, %b {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  %e = arith.addf %c, %d {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 64>} : tensor<64x64xf32>
  %n = arith.subf %w, %e {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  return %n, %e : tensor<64x64xf32>, tensor<64x64xf32>
}
