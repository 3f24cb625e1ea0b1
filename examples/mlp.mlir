// Two independent towers and a difference of their outputs, in plain linalg:
// nothing here knows of devices.
//
//   baechi-run examples/mlp.mlir --machine=host:2

func.func @step(
    %x: tensor<256x512xf32> {baechi.name = "x", baechi.init = {kind = "uniform", low = -1.0 : f32, high = 1.0 : f32, seed = 1 : i64}},
    %a: tensor<512x512xf32> {baechi.name = "a", baechi.init = {kind = "uniform", low = -0.1 : f32, high = 0.1 : f32, seed = 2 : i64}},
    %b: tensor<512x512xf32> {baechi.name = "b", baechi.init = {kind = "uniform", low = -0.1 : f32, high = 0.1 : f32, seed = 3 : i64}})
    -> (tensor<256x512xf32> {baechi.name = "difference"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x512xf32>) -> tensor<256x512xf32>
  %a1 = linalg.matmul ins(%x, %a : tensor<256x512xf32>, tensor<512x512xf32>) outs(%init : tensor<256x512xf32>) -> tensor<256x512xf32> loc("tower_a/layer1")
  %a2 = linalg.matmul ins(%a1, %a : tensor<256x512xf32>, tensor<512x512xf32>) outs(%init : tensor<256x512xf32>) -> tensor<256x512xf32> loc("tower_a/layer2")
  %b1 = linalg.matmul ins(%x, %b : tensor<256x512xf32>, tensor<512x512xf32>) outs(%init : tensor<256x512xf32>) -> tensor<256x512xf32> loc("tower_b/layer1")
  %b2 = linalg.matmul ins(%b1, %b : tensor<256x512xf32>, tensor<512x512xf32>) outs(%init : tensor<256x512xf32>) -> tensor<256x512xf32> loc("tower_b/layer2")
  %difference = linalg.sub ins(%a2, %b2 : tensor<256x512xf32>, tensor<256x512xf32>) outs(%empty : tensor<256x512xf32>) -> tensor<256x512xf32> loc("difference")
  return %difference : tensor<256x512xf32>
}
