// RUN: baechi-opt %s --baechi-lower-kernels --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error@+2 {{has no host implementation 'openblas'; it has: generated}}
// expected-error@+1 {{kernel 'no_contraction' cannot be lowered to host code}}
func.func private @no_contraction(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// The loops that A is contiguous in are not those of B.
// expected-error@+2 {{has no host implementation 'openblas'; it has: generated}}
// expected-error@+1 {{kernel 'no_layout' cannot be lowered to host code}}
func.func private @no_layout(%a: tensor<4x5x6xf32>, %b: tensor<6x7x5xf32>) -> tensor<4x7xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k, l) -> (m, k, l)>, affine_map<(m, n, k, l) -> (l, n, k)>, affine_map<(m, n, k, l) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b : tensor<4x5x6xf32>, tensor<6x7x5xf32>) outs(%f : tensor<4x7xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}

// -----

// Named, though another kernel is fine.
func.func private @fine(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// expected-error@+2 {{is a kernel whose argument 0 is 'tensor<?xf32>'; host code takes tensors of static shape}}
// expected-error@+1 {{kernel 'dynamic' cannot be lowered to host code}}
func.func private @dynamic(%x: tensor<?xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %r = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected-error@+2 {{is a kernel with a value of type 'tensor<?xf32>'; host code needs tensors of static shape}}
// expected-error@+1 {{kernel 'slice' cannot be lowered to host code}}
func.func private @slice(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> attributes {baechi.kernel} {
  %i = tensor.extract %n[] : tensor<i64>
  %j = arith.index_cast %i : i64 to index
  %s = tensor.extract_slice %x[0] [%j] [1] : tensor<4xf32> to tensor<?xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = tensor.insert_slice %s into %e[0] [%j] [1] : tensor<?xf32> into tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32>
// expected-error@+2 {{is a kernel with a call}}
// expected-error@+1 {{kernel 'calls' cannot be lowered to host code}}
func.func private @calls(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %r = call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected-error@+1 {{needs 80000 bytes of scratch but says 64; run baechi-kernel-scratch again}}
func.func private @old_scratch(%x: tensor<100x200xf32>) -> tensor<100x200xf32> attributes {baechi.kernel, baechi.kernel_scratch = 64 : i64} {
  %e = tensor.empty() : tensor<200x100xf32>
  %y = linalg.transpose ins(%x : tensor<100x200xf32>) outs(%e : tensor<200x100xf32>) permutation = [1, 0]
  %z = linalg.exp ins(%y : tensor<200x100xf32>) outs(%e : tensor<200x100xf32>) -> tensor<200x100xf32>
  %re = tensor.empty() : tensor<100x200xf32>
  %r = linalg.transpose ins(%z : tensor<200x100xf32>) outs(%re : tensor<100x200xf32>) permutation = [1, 0]
  return %r : tensor<100x200xf32>
}

// -----

func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{calls a kernel on tensors; run --baechi-partition on the program that calls it, or take the kernels alone}}
  %r = call @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected-error@+2 {{is a kernel without a body}}
// expected-error@+1 {{kernel 'declared' cannot be lowered to host code}}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel}

// -----

// expected-error@+2 {{is a kernel whose result 0 is 'f32'; host code makes tensors of static shape}}
// expected-error@+1 {{kernel 'scalar' cannot be lowered to host code}}
func.func private @scalar(%x: tensor<f32>) -> f32 attributes {baechi.kernel} {
  %r = tensor.extract %x[] : tensor<f32>
  return %r : f32
}

// -----

// expected-error@+2 {{is a kernel that needs a buffer of unknown size: 'memref<?xf32>'}}
// expected-error@+1 {{kernel 'buffer' cannot be lowered to host code}}
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

// expected-error@+1 {{kernel 'foreign' cannot be lowered to host code}}
func.func private @foreign(%x: tensor<f32>) -> tensor<f32> attributes {baechi.kernel} {
  %a = tensor.extract %x[] : tensor<f32>
  // expected-error@+1 {{'other.op' op has no host code}}
  %b = "other.op"(%a) : (f32) -> f32
  %r = tensor.from_elements %b : tensor<f32>
  return %r : tensor<f32>
}

// -----

func.func private @cblas_sgemm()
// expected-error@+1 {{'llvm.func' op is needed by host code, but the module has 'cblas_sgemm' for something else}}
func.func private @product(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}
