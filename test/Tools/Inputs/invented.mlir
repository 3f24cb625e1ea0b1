func.func @step(%x: tensor<8x8xf32>, %i: tensor<8x8xi32>) -> (tensor<8x8xf32>, tensor<8x8xi32>) {
  %0 = linalg.exp ins(%x : tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.add ins(%i, %i : tensor<8x8xi32>, tensor<8x8xi32>) outs(%i : tensor<8x8xi32>) -> tensor<8x8xi32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xi32>
}
