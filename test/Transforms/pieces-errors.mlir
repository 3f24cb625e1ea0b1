// RUN: baechi-opt %s --split-input-file --baechi-compile="machine=host:1" --verify-diagnostics

// Pieces of a tensor follow each other, and are updated by the same pieces.

// expected-error @+1 {{argument 0 is #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>, and the next piece is not behind it; the pieces of a tensor follow each other}}
func.func @step(%w: tensor<2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>}, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = arith.addf %w, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error @+1 {{result 0 is #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 2, size = 2>, and no piece is before it; the pieces of a tensor follow each other}}
func.func @step(%x: tensor<2xf32>) -> (tensor<2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 2, size = 2>}) {
  %0 = math.exp %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error @+1 {{argument 0 of the step is updated by other pieces than the result is in; 'baechi.updated_by' of pieces names them in their order}}
func.func @step(%a: tensor<2xf32> {baechi.updated_by = 1 : i64, baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>},
                %b: tensor<2xf32> {baechi.updated_by = 0 : i64, baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 2, size = 2>})
    -> (tensor<2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>}, tensor<2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 2, size = 2>}) {
  %0 = math.exp %a : tensor<2xf32>
  %1 = math.exp %b : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
