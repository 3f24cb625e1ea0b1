// RUN: baechi-opt %s --split-input-file --baechi-replicate=replicas=2 --baechi-slice-parameters=slice-bytes=512 | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-replicate=replicas=2 --baechi-slice-parameters=slice-bytes=512 --remarks-filter=baechi-slice-parameters -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: baechi-opt %s --split-input-file --baechi-replicate=replicas=2 --baechi-slice-parameters="slice-bytes=512 factors" --remarks-filter=baechi-slice-parameters -o /dev/null 2>&1 | FileCheck %s --check-prefix=FACTORS
// RUN: baechi-opt %s --split-input-file --baechi-replicate=replicas=2 --baechi-slice-parameters | FileCheck %s --check-prefix=NONE
// RUN: baechi-opt %s --split-input-file --baechi-replicate=replicas=2 --baechi-slice-parameters=slice-bytes=512 --baechi-form-kernels --baechi-pin-replicas=machine=host:2 | FileCheck %s --check-prefix=OWN

// A parameter in two slices, each with its part of the gradient of each
// replica; replicas read a whole of their own. Without a size there is nothing
// to be gained.

// CHECK-LABEL: func.func @sgd
// CHECK-SAME: %[[A:.*]]: tensor<8x16xf32> {baechi.name = "w.piece0", baechi.piece = #baechi.piece<of = "w", {{.*}}, baechi.updated_by = 0 : i64}
// CHECK-SAME: %[[B:.*]]: tensor<8x16xf32> {baechi.name = "w.piece1", {{.*}} baechi.updated_by = 1 : i64}
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[B]] into
// CHECK: linalg.matmul ins(%{{.*}}, %[[FIRST]] :
// CHECK: %[[SECOND:.*]] = tensor.insert_slice %[[B]] into
// CHECK: linalg.matmul ins(%{{.*}}, %[[SECOND]] :
// CHECK-COUNT-4: tensor.extract_slice %{{.*}} {baechi.copied} : tensor<16x16xf32> to tensor<8x16xf32>
// CHECK: return %{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<8x16xf32>
// REMARK: sliced {{.*}} Argument=0, Rows=8, Slices=2
// FACTORS: not-sliced {{.*}}Argument=0, Reason="the factors of its gradient are fewer bytes, and sent in its place"
// NONE-LABEL: func.func @sgd(%{{.*}}: tensor<16x16xf32>
// OWN-LABEL: func.func @sgd(%{{.*}}: tensor<8x16xf32> {{.*}} baechi.pin = "host0"
// OWN-SAME: tensor<8x16xf32> {{.*}} baechi.pin = "host1"
// OWN: call @insert_slice_16x16({{.*}}) {{{.*}}baechi.replica = 0
// OWN: call @insert_slice_16x16({{.*}}) {{{.*}}baechi.replica = 1
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @sgd(%w: tensor<16x16xf32> {baechi.name = "w", baechi.updated_by = 0 : i64}, %x: tensor<4x16xf32> {baechi.name = "x", baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  %e1 = tensor.empty() : tensor<16x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<4x16xf32>, tensor<4x16xf32>) outs(%f1 : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %e2 = tensor.empty() : tensor<16x16xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %g : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e2 : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  return %n : tensor<16x16xf32>
}

// -----

// The gradient's norm is of all of it.

// CHECK-LABEL: func.func @clipped(%{{.*}}: tensor<16x16xf32>
// CHECK-NOT: baechi.copied
// REMARK: not-sliced {{.*}} Reason="what reads all of its gradient, or of what is computed of it, is not elementwise"
#id = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>
func.func @clipped(%w: tensor<16x16xf32> {baechi.name = "w", baechi.updated_by = 0 : i64}, %x: tensor<4x16xf32> {baechi.name = "x", baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  %e1 = tensor.empty() : tensor<16x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<4x16xf32>, tensor<4x16xf32>) outs(%f1 : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %e3 = tensor.empty() : tensor<f32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<f32>) -> tensor<f32>
  %norm = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%g : tensor<16x16xf32>) outs(%f3 : tensor<f32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.mulf %a, %a : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %e2 = tensor.empty() : tensor<16x16xf32>
  %n = linalg.generic {indexing_maps = [#id, #id, #none, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %g, %norm : tensor<16x16xf32>, tensor<16x16xf32>, tensor<f32>) outs(%e2 : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32, %c: f32):
    %q = arith.divf %b, %d : f32
    %s = arith.subf %a, %q : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  return %n : tensor<16x16xf32>
}
