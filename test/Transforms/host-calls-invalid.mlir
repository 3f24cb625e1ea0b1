// RUN: baechi-opt %s --baechi-form-kernels --split-input-file --verify-diagnostics

// expected-error@+1 {{'baechi.host_call' needs 'effects', "pure" or "ordered"}}
func.func private @f(tensor<4xf32>) attributes {baechi.host_call = {effects = "none", ns = 1 : i64}}

// -----

// expected-error@+1 {{'baechi.host_call' needs 'effects', "pure" or "ordered"}}
func.func private @f(tensor<4xf32>) attributes {baechi.host_call}

// -----

// expected-error@+1 {{'baechi.host_call' needs 'ns', a non-negative i64, and nothing else}}
func.func private @f(tensor<4xf32>) attributes {baechi.host_call = {effects = "pure", ns = -1 : i64}}

// -----

// expected-error@+1 {{'baechi.host_call' stands on declared functions only}}
func.func private @f(%a: tensor<4xf32>) attributes {baechi.host_call = {effects = "pure", ns = 1 : i64}} {
  return
}

// -----

func.func private @f(tensor<4xf32>) attributes {baechi.host_call = {effects = "ordered", ns = 1 : i64}}
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a) -> tensor<4xf32> {
    // expected-error@+1 {{is a host call in a loop or a branch; host calls are the step's own}}
    func.call @f(%x) : (tensor<4xf32>) -> ()
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func private @f(f32) attributes {baechi.host_call = {effects = "ordered", ns = 1 : i64}}
func.func @step(%a: tensor<f32>) -> tensor<f32> {
  %s = tensor.extract %a[] : tensor<f32>
  // expected-error@+1 {{is a host call with a scalar; make it a tensor without dimensions}}
  call @f(%s) : (f32) -> ()
  return %a : tensor<f32>
}
