// A sweep over a grid, as solvers of triangular systems have it: each element
// needs the one above it and the one before it, so blocks follow each other as
// a wavefront.
//   baechi-run examples/sweep.mlir --machine=host:2 --steps=3
func.func @sweep(%grid: memref<512x512xf32> {baechi.name = "grid", baechi.init = {kind = "uniform", low = 0.0 : f32, high = 1.0 : f32, seed = 1 : i64}},
                 %weights: memref<512x512xf32> {baechi.name = "weights", baechi.init = {kind = "uniform", low = 0.0 : f32, high = 0.5 : f32, seed = 2 : i64}}) {
  affine.for %i = 1 to 512 {
    affine.for %j = 1 to 512 {
      %above = affine.load %grid[%i - 1, %j] : memref<512x512xf32>
      %before = affine.load %grid[%i, %j - 1] : memref<512x512xf32>
      %weight = affine.load %weights[%i, %j] : memref<512x512xf32>
      %sum = arith.addf %above, %before : f32
      %new = arith.mulf %sum, %weight : f32
      affine.store %new, %grid[%i, %j] : memref<512x512xf32>
    }
  }
  return
}
