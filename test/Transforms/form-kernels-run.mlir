// Kernels compute what the program computed: a layer with its softmax, and an
// update of its weights from the rows of both.
// DEFINE: %{lower} = --convert-elementwise-to-linalg --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops" \
// DEFINE:   --convert-linalg-to-loops --expand-strided-metadata --lower-affine --convert-scf-to-cf --convert-math-to-libm \
// DEFINE:   --convert-arith-to-llvm --convert-index-to-llvm --finalize-memref-to-llvm --convert-func-to-llvm --convert-cf-to-llvm --reconcile-unrealized-casts
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void --shared-libs=%llvm_lib_dir/libmlir_runner_utils.so,%llvm_lib_dir/libmlir_c_runner_utils.so
// RUN: baechi-opt %s %{lower} | %{run} | FileCheck %s
// RUN: baechi-opt %s --baechi-form-kernels %{lower} | %{run} | FileCheck %s
// RUN: baechi-opt %s --baechi-split="pieces=2 reductions=true forced=true" %{lower} | %{run} | FileCheck %s
// RUN: baechi-opt %s --baechi-split="pieces=3 reductions=true forced=true" --baechi-form-kernels %{lower} | %{run} | FileCheck %s

#full = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

func.func @step(%x: tensor<4x3xf32> {bufferization.writable = false},
                %w: tensor<3x5xf32> {bufferization.writable = false},
                %b: tensor<5xf32> {bufferization.writable = false})
    -> (tensor<4x5xf32>, tensor<3x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e45 = tensor.empty() : tensor<4x5xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %e35 = tensor.empty() : tensor<3x5xf32>
  %f45 = linalg.fill ins(%zero : f32) outs(%e45 : tensor<4x5xf32>) -> tensor<4x5xf32>
  %xw = linalg.matmul ins(%x, %w : tensor<4x3xf32>, tensor<3x5xf32>) outs(%f45 : tensor<4x5xf32>) -> tensor<4x5xf32>
  %bias = linalg.broadcast ins(%b : tensor<5xf32>) outs(%e45 : tensor<4x5xf32>) dimensions = [0]
  %logits = arith.addf %xw, %bias : tensor<4x5xf32>
  %flow = linalg.fill ins(%low : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.reduce ins(%logits : tensor<4x5xf32>) outs(%flow : tensor<4xf32>) dimensions = [1]
      (%in: f32, %acc: f32) {
    %0 = arith.maximumf %in, %acc : f32
    linalg.yield %0 : f32
  }
  %exp = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%logits, %max : tensor<4x5xf32>, tensor<4xf32>) outs(%e45 : tensor<4x5xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %0 = arith.subf %in, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x5xf32>
  %f4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.reduce ins(%exp : tensor<4x5xf32>) outs(%f4 : tensor<4xf32>) dimensions = [1]
      (%in: f32, %acc: f32) {
    %0 = arith.addf %in, %acc : f32
    linalg.yield %0 : f32
  }
  %p = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<4x5xf32>, tensor<4xf32>) outs(%e45 : tensor<4x5xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %0 = arith.divf %in, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x5xf32>
  %g = arith.mulf %p, %logits : tensor<4x5xf32>
  %e34 = tensor.empty() : tensor<3x4xf32>
  %xt = linalg.transpose ins(%x : tensor<4x3xf32>) outs(%e34 : tensor<3x4xf32>) permutation = [1, 0]
  %f35 = linalg.fill ins(%zero : f32) outs(%e35 : tensor<3x5xf32>) -> tensor<3x5xf32>
  %gw = linalg.matmul ins(%xt, %g : tensor<3x4xf32>, tensor<4x5xf32>) outs(%f35 : tensor<3x5xf32>) -> tensor<3x5xf32>
  %next = arith.addf %w, %gw : tensor<3x5xf32>
  return %p, %next : tensor<4x5xf32>, tensor<3x5xf32>
}

func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}

// The values were computed with numpy.
// CHECK: sizes = [4, 5]
// CHECK: {{\[}}[0.2243{{[0-9]*}}, 0.1712{{[0-9]*}}, 0.1534{{[0-9]*}}, 0.2288{{[0-9]*}}, 0.2221{{[0-9]*}}]
// CHECK-NEXT: [0.3126{{[0-9]*}}, 0.1567{{[0-9]*}}, 0.1173{{[0-9]*}}, 0.2159{{[0-9]*}}, 0.1973{{[0-9]*}}]
// CHECK-NEXT: [0.4156{{[0-9]*}}, 0.1369{{[0-9]*}}, 0.0856{{[0-9]*}}, 0.1943{{[0-9]*}}, 0.1673{{[0-9]*}}]
// CHECK-NEXT: [0.5255{{[0-9]*}}, 0.1137{{[0-9]*}}, 0.0594{{[0-9]*}}, 0.1663{{[0-9]*}}, 0.1348{{[0-9]*}}]
// CHECK: sizes = [3, 5]
// CHECK: {{\[}}[2.0491{{[0-9]*}}, 0.4936{{[0-9]*}}, 0.2749{{[0-9]*}}, 0.4789{{[0-9]*}}, 0.2839{{[0-9]*}}]
// CHECK-NEXT: [1.8492{{[0-9]*}}, -0.0901{{[0-9]*}}, 0.2730{{[0-9]*}}, -0.0716{{[0-9]*}}, 0.7199{{[0-9]*}}]
// CHECK-NEXT: [2.9492{{[0-9]*}}, 0.1260{{[0-9]*}}, -1.0287{{[0-9]*}}, 0.8777{{[0-9]*}}, -0.2440{{[0-9]*}}]
func.func private @main() {
  %x = arith.constant dense<[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [1.0, 1.1, 1.2]]> : tensor<4x3xf32>
  %w = arith.constant dense<[[0.5, 0.4, 0.3, 0.2, 0.1], [0.1, -0.2, 0.3, -0.4, 0.5], [1.0, 0.0, -1.0, 0.5, -0.5]]> : tensor<3x5xf32>
  %b = arith.constant dense<[0.1, 0.2, 0.3, 0.4, 0.5]> : tensor<5xf32>
  %p, %next = call @step(%x, %w, %b) : (tensor<4x3xf32>, tensor<3x5xf32>, tensor<5xf32>) -> (tensor<4x5xf32>, tensor<3x5xf32>)
  %0 = bufferization.to_buffer %p : tensor<4x5xf32> to memref<4x5xf32>
  %1 = memref.cast %0 : memref<4x5xf32> to memref<*xf32>
  call @printMemrefF32(%1) : (memref<*xf32>) -> ()
  %2 = bufferization.to_buffer %next : tensor<3x5xf32> to memref<3x5xf32>
  %3 = memref.cast %2 : memref<3x5xf32> to memref<*xf32>
  call @printMemrefF32(%3) : (memref<*xf32>) -> ()
  return
}
