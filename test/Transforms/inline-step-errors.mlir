// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-inline-step --split-input-file --verify-diagnostics

func.func private @sum(%x: tensor<4xf32>) -> tensor<f32> {
  // expected-error @+1 {{'other.reduce' op is unknown and has a region, so nothing can be told of what the module calls: load its dialect, or lower it to linalg before}}
  %0 = "other.reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    "other.return"(%a) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = call @sum(%x) : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
