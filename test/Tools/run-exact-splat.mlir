// A sum of products with one number has the bits of that with a tensor of it, which is an argument,
// whole and in pieces, where the number is no more seen; of few terms and of many, and where the
// multiplication folds away.
// DEFINE: %{terms} =
// DEFINE: %{value} =
// DEFINE: %{step} = sed 's/TERMS/%{terms}/g; s/VALUE/%{value}/g' %s > %t.mlir
// DEFINE: %{whole} = baechi-run %t.mlir --costs=roofline --budget=0 --machine=host:1 --steps=1 --splits=exact --outputs=%t.whole.npz
// DEFINE: %{cut} = baechi-run %t.mlir --costs=roofline --budget=0 --machine=host:2 --steps=1 --splits=exact-forced:8 --outputs=%t.cut.npz
// DEFINE: %{same} = %python -c "import sys, zipfile; file = zipfile.ZipFile(sys.argv[1]); a, b, c = (file.read(name)[-256:] for name in file.namelist()); assert a == b == c and any(a)" %t.whole.npz

// REDEFINE: %{terms} = 3000
// REDEFINE: %{value} = 0.3
// RUN: %{step} && %{whole} && %{cut} && %{same}
// RUN: cmp %t.whole.npz %t.cut.npz
// REDEFINE: %{terms} = 40000
// RUN: %{step} && %{whole} && %{cut} && %{same}
// RUN: cmp %t.whole.npz %t.cut.npz
// REDEFINE: %{value} = 1.0
// RUN: %{step} && %{whole} && %{cut} && %{same}
// RUN: cmp %t.whole.npz %t.cut.npz

func.func @step(%w: tensor<TERMSx8xf32>,
                %s: tensor<8xTERMSxf32> {baechi.init = {kind = "constant", value = VALUE : f32}})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %splat = arith.constant dense<VALUE> : tensor<8xTERMSxf32>
  %row = arith.constant dense<VALUE> : tensor<TERMSxf32>
  %r = tensor.empty() : tensor<8xTERMSxf32>
  %rows = linalg.broadcast ins(%row : tensor<TERMSxf32>) outs(%r : tensor<8xTERMSxf32>) dimensions = [0]
  %e0 = tensor.empty() : tensor<8x8xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%splat, %w : tensor<8xTERMSxf32>, tensor<TERMSx8xf32>) outs(%f0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.matmul ins(%s, %w : tensor<8xTERMSxf32>, tensor<TERMSx8xf32>) outs(%f1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%rows, %w : tensor<8xTERMSxf32>, tensor<TERMSx8xf32>) outs(%f2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
