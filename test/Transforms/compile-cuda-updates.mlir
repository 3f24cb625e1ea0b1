// REQUIRES: ptxas

// Updates are joined where one GPU does them all, unless somebody says where
// they are.
// RUN: baechi-opt %s --baechi-compile="machine=cuda:1@1MiB target=cuda" --mlir-print-ir-after=baechi-cuda-products 2>&1 | FileCheck %s
// RUN: baechi-opt %s --baechi-compile="machine=cuda:2@1MiB target=cuda" --mlir-print-ir-after=baechi-cuda-products 2>&1 | FileCheck %s --check-prefix=APART
// RUN: baechi-opt %s --baechi-compile="machine=cuda:1@1MiB target=cuda pins=second=cuda0" --mlir-print-ir-after=baechi-cuda-products 2>&1 | FileCheck %s --check-prefix=APART

// CHECK: call @[[JOINED:[a-z0-9_]*_x2]](
// CHECK: func.func private @[[JOINED]]({{.*}}baechi.cuda_together
// APART-NOT: cuda_together

#id = affine_map<(d0) -> (d0)>
func.func @step(%a: tensor<24xf32>, %b: tensor<8xf32>, %ga: tensor<24xf32>, %gb: tensor<8xf32>) -> (tensor<24xf32>, tensor<8xf32>) {
  %ea = tensor.empty() : tensor<24xf32>
  %eb = tensor.empty() : tensor<8xf32>
  %a2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %ga : tensor<24xf32>, tensor<24xf32>) outs(%ea : tensor<24xf32>) {
  ^bb0(%p: f32, %g: f32, %out: f32):
    %n = arith.subf %p, %g : f32
    linalg.yield %n : f32
  } -> tensor<24xf32> loc("first")
  %b2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%b, %gb : tensor<8xf32>, tensor<8xf32>) outs(%eb : tensor<8xf32>) {
  ^bb0(%p: f32, %g: f32, %out: f32):
    %n = arith.subf %p, %g : f32
    linalg.yield %n : f32
  } -> tensor<8xf32> loc("second")
  return %a2, %b2 : tensor<24xf32>, tensor<8xf32>
}
