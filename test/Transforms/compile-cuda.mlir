// The whole pipeline for a GPU: its step calls the code that is made for it.

// REQUIRES: ptxas
// RUN: baechi-opt %s --baechi-compile="machine=cuda:1@1MiB target=cuda" | FileCheck %s
// RUN: baechi-opt %s --baechi-compile="machine=cuda:1@1MiB target=cuda cuda-math=bf16" | FileCheck %s --check-prefix=MATH
// RUN: not baechi-opt %s --baechi-compile="machine=cuda:1@1MiB target=cuda cuda-math=int4" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not baechi-opt %s --baechi-compile="machine=cuda:1@1MiB" 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: baechi-opt %s --baechi-compile="machine=cuda:2@1MiB target=cuda" | FileCheck %s --check-prefix=GPUS
// RUN: echo '{"format": "baechi-machine", "version": 1, "link_model": "sequential", "devices": [{"name": "a", "kind": "cuda", "memory": 1048576}, {"name": "b", "kind": "host", "memory": 1048576}]}' > %t.json
// RUN: baechi-opt %s --baechi-compile="machine=%t.json target=cuda" | FileCheck %s --check-prefix=MIXED

// A product takes a bias where no host device might have to.
// GPUS: llvm.func @matmul_64x64x64_0_bias__cuda(
// MIXED-NOT: _bias

// HOST: error: device 'cuda0' is a GPU; lower with target=cuda, for GPUs and host devices

// MATH: __product(dense<[0, 0, 64, 64, 64, 64, 0, 64, 0, 64, 0, 1, 64, 64, 64, 0, 0, 2, 0, 49152, 0,
// UNKNOWN: unknown math 'int4' of GPUs; known: fp32, tf32, bf16, fp16

// CHECK: llvm.func @exp_64__cuda(
// CHECK: llvm.call @baechi_cuda_launch_accesses(
// CHECK: llvm.func @baechi_step_cuda0(
// CHECK: llvm.call @exp_64__cuda(
func.func @step(%x: tensor<64xf32>, %a: tensor<64x64xf32>, %b: tensor<64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = math.exp %x : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = linalg.matmul ins(%a, %a : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = linalg.matmul ins(%a, %1 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%2, %b : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0, %1, %3 : tensor<64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
