// Two branches that fork from %x and join in %sum. The passes need costs and
// nothing else from the operations: these are arith's.
//
//   baechi-opt examples/fork_join.mlir --baechi-place="msct machine=host:2" \
//       --baechi-partition --baechi-plan-memory

func.func @step(%w: tensor<256x256xf32> {baechi.name = "w", baechi.updated_by = 0 : i64},
                %x: tensor<256x256xf32> {baechi.name = "x"})
    -> (tensor<256x256xf32> {baechi.name = "w"}) {
  %left = arith.addf %x, %x {baechi.name = "left",
      baechi.cost = #baechi.cost<time_ns = {host = 400000}, scratch = 0>} : tensor<256x256xf32>
  // This branch must run on the second device.
  %right = arith.mulf %x, %x {baechi.name = "right", baechi.pin = "host1",
      baechi.cost = #baechi.cost<time_ns = {host = 400000}, scratch = 0>} : tensor<256x256xf32>
  %sum = arith.addf %left, %right {baechi.name = "sum",
      baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<256x256xf32>
  %next = arith.subf %w, %sum {baechi.name = "update",
      baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<256x256xf32>
  return %next : tensor<256x256xf32>
}
