// What is stored in pieces is neither cut nor put together.
// RUN: baechi-opt %s --split-input-file --baechi-split="pieces=4 stored=true" | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-split="pieces=4" | FileCheck %s --check-prefix=WHOLE

// Columns of a state and its next value; there are too few rows.
// CHECK-LABEL: func.func @update(
// CHECK-SAME: tensor<3x250000xf32> {{.*}}baechi.updated_by = 3 : i64}
// CHECK-COUNT-4: linalg.sub {{.*}} -> tensor<3x250000xf32>
// WHOLE-LABEL: func.func @update(
// WHOLE: linalg.sub {{.*}} -> tensor<3x1000000xf32>
func.func @update(%w: tensor<3x1000000xf32> {baechi.updated_by = 0 : i64}, %g: tensor<3x1000000xf32>) -> tensor<3x1000000xf32> {
  %e = tensor.empty() : tensor<3x1000000xf32>
  %n = linalg.sub ins(%w, %g : tensor<3x1000000xf32>, tensor<3x1000000xf32>) outs(%e : tensor<3x1000000xf32>) -> tensor<3x1000000xf32>
  return %n : tensor<3x1000000xf32>
}

// -----

// The next value, which something reads as a whole, is put together all the
// same, and is not made in pieces for its own sake.
// CHECK-LABEL: func.func @read(
// CHECK: linalg.sub {{.*}} -> tensor<3x1000000xf32>
// WHOLE-LABEL: func.func @read(
func.func @read(%w: tensor<3x1000000xf32> {baechi.updated_by = 0 : i64}, %g: tensor<3x1000000xf32>) -> (tensor<3x1000000xf32>, tensor<3x9xf32>) {
  %e = tensor.empty() : tensor<3x1000000xf32>
  %n = linalg.sub ins(%w, %g : tensor<3x1000000xf32>, tensor<3x1000000xf32>) outs(%e : tensor<3x1000000xf32>) -> tensor<3x1000000xf32>
  %p = tensor.extract_slice %n[0, 0] [3, 9] [1, 1] : tensor<3x1000000xf32> to tensor<3x9xf32>
  return %n, %p : tensor<3x1000000xf32>, tensor<3x9xf32>
}

// -----

// A weight that is larger than the batch: each piece of the batch would pack
// all of it, each piece of its columns packs the batch.
// CHECK-LABEL: func.func @packed(
// CHECK-COUNT-4: linalg.matmul ins({{.*}} : tensor<256x1024xf32>, tensor<1024x256xf32>)
func.func @packed(%x: tensor<256x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<256x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x1024xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %y = linalg.matmul ins(%x, %w : tensor<256x1024xf32>, tensor<1024x1024xf32>) outs(%z : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  return %y : tensor<256x1024xf32>
}
