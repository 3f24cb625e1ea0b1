func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { %e = tensor.empty() : tensor<8xf32>
 %0 = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
 return %0 : tensor<8xf32> }
