// A program that was annotated, grouped, placed and stripped is the original,
// byte for byte, in its pretty and in its generic form.
// DEFINE: %{print} = --allow-unregistered-dialect --split-input-file
// DEFINE: %{annotate} = %{print} --baechi-annotate-costs --baechi-colocate --baechi-fuse=machine=host:2@1GiB
// DEFINE: %{place} = %{annotate} --baechi-place="metf machine=host:2@1GiB budget=0"

// RUN: baechi-opt %s %{print} -o %t.original
// RUN: baechi-opt %s %{place} -o %t.placed
// RUN: not cmp -s %t.original %t.placed
// RUN: baechi-opt %t.placed %{print} --baechi-strip=keep=baechi.pin -o %t.stripped
// RUN: cmp %t.original %t.stripped
// RUN: baechi-opt %s %{print} --mlir-print-op-generic -o %t.original
// RUN: baechi-opt %t.placed %{print} --baechi-strip=keep=baechi.pin --mlir-print-op-generic -o %t.stripped
// RUN: cmp %t.original %t.stripped

// The strip of the plan alone leaves costs and groups (here --baechi-fuse has
// written the machine, too).
// RUN: baechi-opt %s %{annotate} -o %t.original
// RUN: baechi-opt %t.placed %{print} --baechi-strip="plan keep=baechi.machine" -o %t.stripped
// RUN: cmp %t.original %t.stripped

// Models, one with a pin by a pass, before and after their kernels were formed.
// RUN: baechi-opt %fixtures/mlp_tiny.mlir -o %t.original
// RUN: baechi-opt %fixtures/mlp_tiny.mlir --baechi-constrain="pins=params/0/*=host1 machine=host:2@1GiB" %{place} --baechi-strip -o %t.stripped
// RUN: cmp %t.original %t.stripped
// RUN: baechi-opt %fixtures/transformer_tiny.mlir --baechi-form-kernels -o %t.original
// RUN: baechi-opt %t.original %{place} -o %t.placed
// RUN: baechi-opt %t.placed --baechi-strip -o %t.stripped
// RUN: cmp %t.original %t.stripped

// linalg and scf, with the author's pins, names and updates.
func.func @mixture(%w: tensor<8x8xf32> {baechi.updated_by = 0 : i64, baechi.pin = "host1"}, %x: tensor<8x8xf32> {baechi.name = "x"})
    -> (tensor<8x8xf32> {baechi.name = "next"}, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %empty = tensor.empty() : tensor<8x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %y) -> (tensor<8x8xf32>) {
    %b = arith.addf %a, %x {note = "kept"} : tensor<8x8xf32>
    scf.yield %b : tensor<8x8xf32>
  }
  %n = arith.subf %w, %z : tensor<8x8xf32>
  return %n, %y : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// StableHLO that nobody registered.
func.func @stablehlo(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "stablehlo.dot_general"(%a, %b) <{precision = "highest"}> {frontend = "kept"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "stablehlo.tanh"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "stablehlo.add"(%0, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

func.func @tosa(%a: tensor<1x4x4xf32>, %b: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %a, %b, %z, %z : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4xf32>
  %1 = tosa.tanh %0 : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %1 : tensor<1x4x4xf32>
}

// -----

// Beside the step stands a function of the LLVM dialect.
llvm.func @other(%x: i32 {llvm.noundef}) -> i32 {
  llvm.return %x : i32
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
