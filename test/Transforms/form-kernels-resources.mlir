// Constants that lie in resources: what is not there, or has another size, is
// an error at its place; booleans get their values.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file --verify-diagnostics | FileCheck %s

func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{names the resource 'lost', which has no data here: it must be in the file's 'dialect_resources', under 'builtin'}}
  %c = arith.constant dense_resource<lost> : tensor<4xf32>
  %r = arith.addf %a, %c : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has type 'tensor<4xf32>', which takes 16 bytes; the resource 'short' holds 8}}
  %c = arith.constant dense_resource<short> : tensor<4xf32>
  %r = arith.addf %a, %c : tensor<4xf32>
  return %r : tensor<4xf32>
}

{-#
  dialect_resources: {
    builtin: {
      short: "0x040000000000803F00000040"
    }
  }
#-}

// -----

// CHECK: dense<[true, false, true, true]> : tensor<4xi1>
func.func @step(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense_resource<mask> : tensor<4xi1>
  %r = arith.select %c, %a, %b : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

{-#
  dialect_resources: {
    builtin: {
      mask: "0x0100000001000101"
    }
  }
#-}
