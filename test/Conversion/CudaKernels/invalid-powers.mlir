// REQUIRES: ptxas
// RUN: baechi-opt %s --baechi-lower-cuda-kernels --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
func.func private @power(%x: tensor<4xf32>, %n: tensor<4xi64>) -> tensor<4xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %n : tensor<4xf32>, tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %exponent: i64, %out: f32):
    // expected-error@+1 {{a power of a whole number that is not known has 32 bits in GPU code: narrow it (arith.trunci), or pin the operator to a host device}}
    %y = math.fpowi %in, %exponent : f32, i64
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
