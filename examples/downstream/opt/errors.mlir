// RUN: shop-opt --split-input-file --baechi-annotate-costs
// What an operation states wrongly is an error at the operation.

// CHECK: errors.mlir:[[@LINE+2]]:8: error: 'shop.mix' op the time of kind 'host' is negative: -5 ns
func.func @negative(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = shop.mix %x, %x time -5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// CHECK: error: 'shop.mix' op runs on none of the described kinds of devices; describe its own with roofline=: host cuda
func.func @nowhere(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = shop.mix %x, %x time 5 {kind = "tpu"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// CHECK: error: 'shop.view' op is a view with 2 operands and 1 results; a view has one of each
func.func @view(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = shop.view %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
