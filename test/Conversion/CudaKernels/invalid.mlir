// RUN: baechi-opt %s --split-input-file --allow-unregistered-dialect --baechi-lower-cuda-kernels=stage=launches --verify-diagnostics

// expected-error@+2 {{is a kernel that needs a buffer of unknown size: 'memref<?xf32>'}}
// expected-error@+1 {{kernel 'buffer' cannot be lowered to GPU code}}
func.func private @buffer(%n: tensor<i64>) -> tensor<f32> attributes {baechi.kernel} {
  %read = tensor.extract %n[] : tensor<i64>
  %size = arith.index_cast %read : i64 to index
  %zero = arith.constant 0 : index
  %m = memref.alloca(%size) : memref<?xf32>
  %v = memref.load %m[%zero] : memref<?xf32>
  %r = tensor.from_elements %v : tensor<f32>
  return %r : tensor<f32>
}

// -----

// expected-error@+1 {{kernel 'prints' cannot be lowered to GPU code}}
func.func private @prints(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %v = arith.constant 1 : index
  // expected-error@+1 {{cannot be mapped to launches on a GPU}}
  vector.print %v : index
  return %x : tensor<4xf32>
}

// -----

func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  return %x : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{calls a kernel on tensors; run --baechi-partition}}
  %y = call @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error@+2 {{is a kernel whose result 0 is 'f32'}}
// expected-error@+1 {{kernel 'scalar' cannot be lowered to GPU code}}
func.func private @scalar(%x: tensor<f32>) -> f32 attributes {baechi.kernel} {
  %r = tensor.extract %x[] : tensor<f32>
  return %r : f32
}

// -----

// expected-error@+1 {{kernel 'branches' cannot be lowered to GPU code}}
func.func private @branches(%x: tensor<4xf32>, %b: tensor<i1>) -> (tensor<4xf32>, tensor<f32>) attributes {baechi.kernel} {
  %zero = arith.constant 0 : index
  %c = tensor.extract %b[] : tensor<i1>
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{cannot be mapped to threads of a GPU: it gives values and has work in it}}
  %r:2 = scf.if %c -> (tensor<4xf32>, f32) {
    %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %v = tensor.extract %y[%zero] : tensor<4xf32>
    scf.yield %y, %v : tensor<4xf32>, f32
  } else {
    %y = linalg.negf ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %v = tensor.extract %y[%zero] : tensor<4xf32>
    scf.yield %y, %v : tensor<4xf32>, f32
  }
  %f = tensor.from_elements %r#1 : tensor<f32>
  return %r#0, %f : tensor<4xf32>, tensor<f32>
}

// -----

// expected-error@+1 {{kernel 'repeats' cannot be lowered to GPU code}}
func.func private @repeats(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  // expected-error@+1 {{'scf.while' op cannot be mapped to threads of a GPU}}
  %r = scf.while (%y = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %v = tensor.extract %y[%zero] : tensor<4xf32>
    %c = arith.cmpf olt, %v, %one : f32
    scf.condition(%c) %y : tensor<4xf32>
  } do {
  ^bb0(%y: tensor<4xf32>):
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.exp ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'looks_up' cannot be lowered to GPU code}}
func.func private @looks_up(%x: tensor<4xi32>) -> tensor<4xf32> attributes {baechi.kernel} {
  // expected-error@+1 {{a kernel that reads a table of constants has no GPU code: give the table as an argument of the step}}
  %table = arith.constant dense<[1.0, 2.0, 4.0, 8.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]} ins(%x : tensor<4xi32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: i32, %out: f32):
    %n = arith.index_cast %in : i32 to index
    %v = tensor.extract %table[%n] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
