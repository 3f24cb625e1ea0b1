// The whole pipeline for a GPU: its step calls the code that is made for it.

// REQUIRES: ptxas
// RUN: baechi-opt %s --baechi-compile="machine=cuda:1@1MiB target=cuda" | FileCheck %s
// RUN: not baechi-opt %s --baechi-compile="machine=cuda:1@1MiB" 2>&1 | FileCheck %s --check-prefix=HOST

// HOST: error: device 'cuda0' is a GPU; lower with target=cuda, for GPUs and host devices

// CHECK: llvm.func @exp_64__cuda(
// CHECK: llvm.call @baechi_cuda_launch(
// CHECK: llvm.func @baechi_step_cuda0(
// CHECK: llvm.call @exp_64__cuda(
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
