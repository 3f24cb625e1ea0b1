// What cannot become kernels is reported with its place and the mend.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @+1 {{the module has no public function; the function to compile must be its only public one}}
module {
  // expected-note @+1 {{@helper is private}}
  func.func private @helper() {
    return
  }
}

// -----

// expected-error @+1 {{the module has several public functions; make all but one private: @init @step}}
module {
  // expected-note @+1 {{this one is public}}
  func.func @init() {
    return
  }
  // expected-note @+1 {{this one is public}}
  func.func @step() {
    return
  }
}

// -----

// expected-error @+1 {{the step has several blocks; control flow must be structured (scf.if, scf.while)}}
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next
^next:
  return %a : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument 0 has the dynamic shape 'tensor<?xf32>'; import the model with fixed sizes}}
func.func @step(%a: tensor<?xf32>) -> tensor<?xf32> {
  return %a : tensor<?xf32>
}

// -----

// expected-error @+1 {{argument 1 has type 'memref<4xf32>'; tensors of static shape are supported}}
func.func @step(%a: tensor<4xf32>, %b: memref<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument 0 is no tensor; a scalar is a tensor without dimensions}}
func.func @step(%a: f32) {
  return
}

// -----

#left = affine_map<(d0) -> (-d0 + 10, 4)>
func.func @step(%x: tensor<10xf32>) -> tensor<10xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c10 = arith.constant 10 : index
  %r = scf.for %i = %c0 to %c10 step %c4 iter_args(%y = %x) -> (tensor<10xf32>) {
    %n = affine.min #left(%i)
    // expected-error @+1 {{'tensor.extract_slice' op a result has the dynamic shape 'tensor<?xf32>'; in a loop: where its last turn takes what is left of a tensor, peel that off ('mlir-opt --scf-for-loop-peeling --canonicalize'), or take pieces whose size divides the tensor}}
    %s = tensor.extract_slice %y[%i] [%n] [1] : tensor<10xf32> to tensor<?xf32>
    %t = linalg.exp ins(%s : tensor<?xf32>) outs(%s : tensor<?xf32>) -> tensor<?xf32>
    %z = tensor.insert_slice %t into %y[%i] [%n] [1] : tensor<?xf32> into tensor<10xf32>
    scf.yield %z : tensor<10xf32>
  }
  return %r : tensor<10xf32>
}

// -----

func.func @step(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %scalar = tensor.extract %n[] : tensor<i32>
  %size = arith.index_cast %scalar : i32 to index
  // expected-error @+1 {{'tensor.extract_slice' op a result has the dynamic shape 'tensor<?xf32>'; import the model with fixed sizes}}
  %slice = tensor.extract_slice %a[0] [%size] [1] : tensor<4xf32> to tensor<?xf32>
  %zero = arith.constant 0.0 : f32
  %r = tensor.pad %slice low[0] high[%size] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument 0 has type 'tensor<4xcomplex<f32>>', whose elements are not supported; supported are f16, bf16, f32, f64, i1, i8, i16, i32 and i64}}
func.func @step(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  return %a : tensor<4xcomplex<f32>>
}

// -----

func.func private @helper(tensor<4xf32>) -> tensor<4xf32>
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'func.call' op calls @helper, which has no body: define it in this module}}
  %r = call @helper(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func private @helper(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'func.call' op calls another function; inline it first (--inline)}}
  %r = call @helper(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func private @even(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @odd(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @odd(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @even(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'func.call' op calls @even, which calls itself: write a loop (scf.while) instead}}
  %r = call @even(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @step(%a: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{'tensor.bitcast' op cannot become part of a kernel; write it as a linalg.generic with arith.bitcast}}
  %r = tensor.bitcast %a : tensor<4xf32> to tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

func.func @step(%a: tensor<4xf32>, %i: tensor<2x1xi32>) -> tensor<2x1xf32> {
  // expected-error @+1 {{'tensor.gather' op cannot become part of a kernel; write it as a linalg.generic with tensor.extract}}
  %r = tensor.gather %a[%i] gather_dims([0]) : (tensor<4xf32>, tensor<2x1xi32>) -> tensor<2x1xf32>
  return %r : tensor<2x1xf32>
}

// -----

func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tosa.tanh' op cannot become part of a kernel; kernels hold operations of the linalg, tensor, arith, math and scf dialects}}
  %r = tosa.tanh %a : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'arith.addf' op carries 'baechi.pin', which does not survive fusion; set it on the calls of kernels, after --baechi-form-kernels}}
  %r = arith.addf %a, %a {baechi.pin = "gpu0"} : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @step(%a: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %condition = tensor.extract %c[] : tensor<i1>
  // expected-error @+1 {{'scf.if' op leaves a scalar of type 'f32' to other operations; make it a tensor without dimensions}}
  %scalar = scf.if %condition -> f32 {
    %at = arith.constant 0 : index
    %0 = tensor.extract %a[%at] : tensor<4xf32>
    scf.yield %0 : f32
  } else {
    %sum = arith.addf %a, %a : tensor<4xf32>
    %at = arith.constant 1 : index
    %0 = tensor.extract %sum[%at] : tensor<4xf32>
    scf.yield %0 : f32
  }
  %r = tensor.splat %scalar : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @step(%a: tensor<2x0xf32>, %b: tensor<0x3xf32>, %c: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'linalg.matmul' op reduces with an operand of type 'tensor<2x0xf32>'; reductions of tensors without elements are not supported}}
  %r = linalg.matmul ins(%a, %b : tensor<2x0xf32>, tensor<0x3xf32>) outs(%c : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

func.func @step(%a: tensor<2x0xf32>, %start: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'linalg.reduce' op reduces with an operand of type 'tensor<2x0xf32>'}}
  %r = linalg.reduce { arith.addf } ins(%a : tensor<2x0xf32>) outs(%start : tensor<2xf32>) dimensions = [1]
  return %r : tensor<2xf32>
}

// -----

func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'other.op' op cannot become part of a kernel; kernels hold operations of the linalg, tensor, arith, math and scf dialects}}
  %r = "other.op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<3x3xf32>, %v: tensor<3xf32>) -> tensor<3x3xf32> {
  // expected-error@+1 {{'linalg.generic' op writes elements of its result through affine_map<(d0) -> (d0, d0)>, which is not known to reach all of them, and others keep their values of the init; compute what is new for all elements, and select}}
  %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d, d)>], iterator_types = ["parallel"]}
      ins(%v : tensor<3xf32>) outs(%x : tensor<3x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

func.func @step(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %c = arith.constant 7.0 : f32
  // expected-error@+1 {{'tensor.pad' op has a negative width; take a slice of its source (tensor.extract_slice) and pad that}}
  %r = tensor.pad %x low[0, -1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<3x3xf32> to tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 7.0 : f32
  %m = arith.constant -1 : index
  // expected-error@+1 {{'tensor.pad' op has a negative width; take a slice of its source (tensor.extract_slice) and pad that}}
  %r = tensor.pad %x low[%m] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<4xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}
