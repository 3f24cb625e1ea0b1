// RUN: baechi-opt %s --baechi-lower-kernels | FileCheck %s
// Each argument is copied once, straight into the result.

// CHECK-LABEL: llvm.func @baechi.kernel.stack(
// CHECK-SAME: baechi.kernel_scratch = 0 : i64
// CHECK-NOT: malloc
// CHECK-NOT: alloca
func.func private @stack(%a0: tensor<4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>, %a8: tensor<4xf32>, %a9: tensor<4xf32>, %a10: tensor<4xf32>, %a11: tensor<4xf32>, %a12: tensor<4xf32>, %a13: tensor<4xf32>, %a14: tensor<4xf32>, %a15: tensor<4xf32>, %a16: tensor<4xf32>) -> tensor<17x4xf32> attributes {baechi.kernel} {
  %e0 = tensor.empty() : tensor<17x4xf32>
  %e1 = tensor.insert_slice %a0 into %e0[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e2 = tensor.insert_slice %a1 into %e1[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e3 = tensor.insert_slice %a2 into %e2[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e4 = tensor.insert_slice %a3 into %e3[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e5 = tensor.insert_slice %a4 into %e4[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e6 = tensor.insert_slice %a5 into %e5[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e7 = tensor.insert_slice %a6 into %e6[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e8 = tensor.insert_slice %a7 into %e7[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e9 = tensor.insert_slice %a8 into %e8[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e10 = tensor.insert_slice %a9 into %e9[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e11 = tensor.insert_slice %a10 into %e10[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e12 = tensor.insert_slice %a11 into %e11[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e13 = tensor.insert_slice %a12 into %e12[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e14 = tensor.insert_slice %a13 into %e13[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e15 = tensor.insert_slice %a14 into %e14[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e16 = tensor.insert_slice %a15 into %e15[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  %e17 = tensor.insert_slice %a16 into %e16[16, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<17x4xf32>
  return %e17 : tensor<17x4xf32>
}
