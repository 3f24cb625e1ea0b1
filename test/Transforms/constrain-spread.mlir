// RUN: baechi-opt %s --baechi-constrain="splits=up*=0:2" | FileCheck %s

// What a transposed convolution makes of its operand has its name, and is cut
// with what reads it.
// CHECK: tensor.insert_slice {{.*}} {baechi.name = "up"} :
// CHECK: arith.addf {{.*}} {baechi.name = "up", baechi.split = #baechi.split<dim = 0, sizes = [3, 3]>}
func.func @step(%x: tensor<3xf32>, %zeros: tensor<6xf32>) -> tensor<6xf32> {
  %a = tensor.insert_slice %x into %zeros[1] [3] [2] {baechi.name = "up"} : tensor<3xf32> into tensor<6xf32>
  %b = arith.addf %a, %a {baechi.name = "up"} : tensor<6xf32>
  return %b : tensor<6xf32>
}
