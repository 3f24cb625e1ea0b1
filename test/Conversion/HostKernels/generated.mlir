// RUN: baechi-opt %s --baechi-lower-kernels | FileCheck %s
// RUN: baechi-opt %s --baechi-lower-kernels | FileCheck %s --check-prefix=NONE

// Nothing is allocated and nothing is called.
// NONE-NOT: malloc
// NONE-NOT: llvm.call @

#map = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// Arguments, result, scratch; no pointer overlaps another.
// CHECK-LABEL: llvm.func @baechi.kernel.bias_tanh(
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias})
// CHECK-SAME: baechi.kernel_scratch = 0 : i64
// Each operation rounds, whatever it is fused with; tanh is a polynomial.
// CHECK-NOT: fastmath
// CHECK: llvm.fadd {{.*}} : f32
// CHECK-NOT: llvm.call
// CHECK: llvm.return
func.func private @bias_tanh(%x: tensor<5x37xf32>, %b: tensor<37xf32>) -> tensor<5x37xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<5x37xf32>
  %r = linalg.generic {indexing_maps = [#map, #col, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<5x37xf32>, tensor<37xf32>) outs(%e : tensor<5x37xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<5x37xf32>
  return %r : tensor<5x37xf32>
}

// What may be one buffer is not noalias; its loop says that it is parallel.
// CHECK-LABEL: llvm.func @baechi.kernel.update(
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.align = 64 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias})
// CHECK: llvm.load {{.*}} {access_groups = [#[[GROUP:.*]]]}
// CHECK: llvm.store {{.*}} {access_groups = [#[[GROUP]]]}
// CHECK: llvm.br {{.*}} {loop_annotation = #
func.func private @update(%p: tensor<100xf32>, %g: tensor<100xf32>) -> (tensor<100xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<100xf32>
  %r = linalg.sub ins(%p, %g : tensor<100xf32>, tensor<100xf32>) outs(%e : tensor<100xf32>) -> tensor<100xf32>
  return %r : tensor<100xf32>
}

// A small buffer of a kernel's own lies on the stack, once, outside its loops;
// an i1 is a byte.
// CHECK-LABEL: llvm.func @baechi.kernel.rows(
// CHECK-SAME: baechi.kernel_scratch = 0 : i64
// CHECK: llvm.alloca
// CHECK-NOT: llvm.alloca
// CHECK: llvm.zext %{{.*}} : i1 to i8
// CHECK: llvm.store %{{.*}} : i8, !llvm.ptr
func.func private @rows(%x: tensor<4x16xf32>) -> tensor<4x16xi1> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xi1>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%out = %e) -> tensor<4x16xi1> {
    %row = tensor.extract_slice %x[%i, 0] [1, 16] [1, 1] : tensor<4x16xf32> to tensor<16xf32>
    %be = tensor.empty() : tensor<16xf32>
    %b = linalg.exp ins(%row : tensor<16xf32>) outs(%be : tensor<16xf32>) -> tensor<16xf32>
    %slot = tensor.extract_slice %out[%i, 0] [1, 16] [1, 1] : tensor<4x16xi1> to tensor<16xi1>
    %c = linalg.generic {indexing_maps = [affine_map<(d0) -> (15 - d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%b : tensor<16xf32>) outs(%slot : tensor<16xi1>) {
    ^bb0(%in: f32, %o: i1):
      %p = arith.cmpf ogt, %in, %zero : f32
      linalg.yield %p : i1
    } -> tensor<16xi1>
    %next = tensor.insert_slice %c into %out[%i, 0] [1, 16] [1, 1] : tensor<16xi1> into tensor<4x16xi1>
    scf.yield %next : tensor<4x16xi1>
  }
  return %r : tensor<4x16xi1>
}
