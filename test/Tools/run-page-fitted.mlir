// The page of a step in which values are computed again, and of one whose
// tensors wait in a pool, has the operators of these rewrites.
// RUN: baechi-run %s --machine=host:1@1800KiB --fit-memory=whole --costs=roofline --budget=0 --steps=1 --html=%t.again.html | FileCheck %s --check-prefix=AGAIN
// RUN: %python %S/page_data.py %t.again.html | FileCheck %s --check-prefix=AGAIN-PAGE
// RUN: FileCheck %s --check-prefix=AGAIN-NOTE --input-file=%t.again.html
// AGAIN: 12 operations -> 5 operators
// AGAIN: memory     the step as it is does not fit; 1 operator runs again
// AGAIN-PAGE: 7 operators
// AGAIN-PAGE-NEXT: 7 measured spans
// AGAIN-PAGE-NEXT: 6 operators with a time
// AGAIN-PAGE-NEXT: 6 of them ran
// AGAIN-PAGE: reasons: yes
// AGAIN-NOTE: Memory: the step as it is does not fit; 1 operator runs again

// RUN: baechi-run %s --machine=host:1@1500KiB+pool:2MiB --fit-memory=whole --costs=roofline --budget=0 --steps=1 --html=%t.pool.html | FileCheck %s --check-prefix=POOL
// RUN: %python %S/page_data.py %t.pool.html | FileCheck %s --check-prefix=POOL-PAGE
// POOL: memory     the step as it is does not fit; 1 tensor waits in 'pool0'
// POOL-PAGE: 2 transfers
// POOL-PAGE-NEXT: 2 happened
// POOL-PAGE-NEXT: reasons: yes
func.func @step(%x: tensor<512x64xf32> {baechi.init = {kind="uniform", low=-1.0 : f32, high=1.0 : f32, seed = 1 : i64}}) -> tensor<512x64xf32> {
  %e = tensor.empty() : tensor<512x64xf32>
  %z = arith.constant 0.0 : f32
  %t = tensor.empty() : tensor<512x512xf32>
  %ft = linalg.fill ins(%z : f32) outs(%t : tensor<512x512xf32>) -> tensor<512x512xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<512x64xf32>) -> tensor<512x64xf32>
  %et = tensor.empty() : tensor<64x512xf32>
  %xt = linalg.transpose ins(%x : tensor<512x64xf32>) outs(%et : tensor<64x512xf32>) permutation = [1, 0]
  %a = linalg.matmul ins(%x, %xt : tensor<512x64xf32>, tensor<64x512xf32>) outs(%ft : tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = linalg.matmul ins(%a, %x : tensor<512x512xf32>, tensor<512x64xf32>) outs(%f : tensor<512x64xf32>) -> tensor<512x64xf32>
  %bt = linalg.transpose ins(%b : tensor<512x64xf32>) outs(%et : tensor<64x512xf32>) permutation = [1, 0]
  %c = linalg.matmul ins(%b, %bt : tensor<512x64xf32>, tensor<64x512xf32>) outs(%ft : tensor<512x512xf32>) -> tensor<512x512xf32>
  %d = linalg.matmul ins(%c, %b : tensor<512x512xf32>, tensor<512x64xf32>) outs(%f : tensor<512x64xf32>) -> tensor<512x64xf32>
  %g = linalg.matmul ins(%a, %d : tensor<512x512xf32>, tensor<512x64xf32>) outs(%f : tensor<512x64xf32>) -> tensor<512x64xf32>
  return %g : tensor<512x64xf32>
}
