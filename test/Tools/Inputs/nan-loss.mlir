func.func @step(%x: tensor<f32> {baechi.init = {kind = "constant", value = -1.0 : f32}}) -> tensor<f32> {
  %0 = linalg.log ins(%x : tensor<f32>) outs(%x : tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
