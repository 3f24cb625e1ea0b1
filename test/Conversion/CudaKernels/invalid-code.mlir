// REQUIRES: ptxas
// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-lower-cuda-kernels --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
func.func private @unknown(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    // expected-error@+1 {{has no GPU code}}
    %y = "unknown.function"(%in) : (f32) -> f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
