// RUN: baechi-opt %s --baechi-lower-cuda-kernels=stage=launches | FileCheck %s

// Kernels whose indices may not be within 32 bits have 64-bit ones on the GPU.

#id1 = affine_map<(d0) -> (d0)>
#cx = affine_map<(n, h, w, o, y, x, i) -> (n, h + y, w + x, i)>
#cw = affine_map<(n, h, w, o, y, x, i) -> (y, x, i, o)>
#cy = affine_map<(n, h, w, o, y, x, i) -> (n, h, w, o)>

// CHECK-LABEL: func.func private @squares(
// CHECK-SAME: wide_indices
func.func private @squares() -> tensor<100000xi64> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<100000xi64>
  %r = linalg.generic {indexing_maps = [#id1], iterator_types = ["parallel"]} outs(%e : tensor<100000xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %m = arith.muli %i, %i : index
    %v = arith.index_cast %m : index to i64
    linalg.yield %v : i64
  } -> tensor<100000xi64>
  return %r : tensor<100000xi64>
}

// CHECK-LABEL: func.func private @small_squares(
// CHECK-SAME: attributes {baechi.kernel, baechi.kernel_scratch = 0 : i64} {
func.func private @small_squares() -> tensor<40000xi64> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<40000xi64>
  %r = linalg.generic {indexing_maps = [#id1], iterator_types = ["parallel"]} outs(%e : tensor<40000xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %m = arith.muli %i, %i : index
    %v = arith.index_cast %m : index to i64
    linalg.yield %v : i64
  } -> tensor<40000xi64>
  return %r : tensor<40000xi64>
}

// Clamped after the cast, which must keep all 64 bits.
// CHECK-LABEL: func.func private @clamped_index(
// CHECK-SAME: wide_indices
func.func private @clamped_index(%g: tensor<8xi64>, %t: tensor<1000xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<8xf32>
  %c0 = arith.constant 0 : index
  %c999 = arith.constant 999 : index
  %r = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%g : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: i64, %o: f32):
    %i = arith.index_cast %x : i64 to index
    %a = arith.maxsi %i, %c0 : index
    %b = arith.minsi %a, %c999 : index
    %v = tensor.extract %t[%b] : tensor<1000xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Clamped before the cast, as the importer writes it: 32 bits are enough.
// CHECK-LABEL: func.func private @clamped_integer(
// CHECK-SAME: attributes {baechi.kernel, baechi.kernel_scratch = 0 : i64} {
func.func private @clamped_integer(%g: tensor<8xi64>, %t: tensor<1000xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<8xf32>
  %c0 = arith.constant 0 : i64
  %c999 = arith.constant 999 : i64
  %r = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%g : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: i64, %o: f32):
    %a = arith.maxsi %x, %c0 : i64
    %b = arith.minsi %a, %c999 : i64
    %i = arith.index_cast %b : i64 to index
    %v = tensor.extract %t[%i] : tensor<1000xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// A negative index as an unsigned number.
// CHECK-LABEL: func.func private @unsigned(
// CHECK-SAME: wide_indices
func.func private @unsigned() -> tensor<8xi64> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<8xi64>
  %c1 = arith.constant 1 : index
  %r = linalg.generic {indexing_maps = [#id1], iterator_types = ["parallel"]} outs(%e : tensor<8xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %m = arith.subi %i, %c1 : index
    %v = arith.index_castui %m : index to i64
    linalg.yield %v : i64
  } -> tensor<8xi64>
  return %r : tensor<8xi64>
}

// Sums of counters, as fused row loops have them.
// CHECK-LABEL: func.func private @applied(
// CHECK-SAME: attributes {baechi.kernel, baechi.kernel_scratch = 0 : i64} {
func.func private @applied() -> tensor<40000xi64> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<40000xi64>
  %c5 = arith.constant 5 : index
  %r = linalg.generic {indexing_maps = [#id1], iterator_types = ["parallel"]} outs(%e : tensor<40000xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %m = affine.apply affine_map<(d0)[s0] -> (d0 * 3 + s0)>(%i)[%c5]
    %v = arith.index_cast %m : index to i64
    linalg.yield %v : i64
  } -> tensor<40000xi64>
  return %r : tensor<40000xi64>
}

// CHECK-LABEL: func.func private @applied_wide(
// CHECK-SAME: wide_indices
func.func private @applied_wide() -> tensor<40000xi64> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<40000xi64>
  %c5 = arith.constant 5 : index
  %r = linalg.generic {indexing_maps = [#id1], iterator_types = ["parallel"]} outs(%e : tensor<40000xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %m = affine.apply affine_map<(d0)[s0] -> (d0 * 100000 + s0)>(%i)[%c5]
    %v = arith.index_cast %m : index to i64
    linalg.yield %v : i64
  } -> tensor<40000xi64>
  return %r : tensor<40000xi64>
}

// Counters of loops are within their bounds.
// CHECK-LABEL: func.func private @rows(
// CHECK-SAME: attributes {baechi.kernel, baechi.kernel_scratch = 0 : i64} {
func.func private @rows(%x: tensor<8x100xf32>) -> tensor<8x100xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x100xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%out = %e) -> (tensor<8x100xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 100] [1, 1] : tensor<8x100xf32> to tensor<1x100xf32>
    %next = tensor.insert_slice %row into %out[%i, 0] [1, 100] [1, 1] : tensor<1x100xf32> into tensor<8x100xf32>
    scf.yield %next : tensor<8x100xf32>
  }
  return %r : tensor<8x100xf32>
}

// The image has more than 2^31 elements; the result has fewer.
// CHECK-LABEL: func.func private @large_product(
// CHECK-SAME: wide_indices
func.func private @large_product(%x: tensor<64x224x224x1024xf32>, %w: tensor<3x3x1024x8xf32>) -> tensor<64x222x222x8xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x222x222x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x222x222x8xf32>) -> tensor<64x222x222x8xf32>
  %r = linalg.generic {indexing_maps = [#cx, #cw, #cy], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<64x224x224x1024xf32>, tensor<3x3x1024x8xf32>) outs(%f : tensor<64x222x222x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x222x222x8xf32>
  return %r : tensor<64x222x222x8xf32>
}
