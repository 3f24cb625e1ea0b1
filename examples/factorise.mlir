// Matrix factorisation by stochastic gradient descent: a rating changes the
// factors of its user and of its item, so ratings of other users and other
// items may be taken at once, two keys by two.
//   baechi-run examples/factorise.mlir --machine=host:2 --loops=unordered --steps=10
func.func @factorise(%rows: memref<20000xi32> {baechi.name = "rows", baechi.init = {kind = "randint", low = 0 : i64, high = 600 : i64, seed = 1 : i64}},
                     %columns: memref<20000xi32> {baechi.name = "columns", baechi.init = {kind = "randint", low = 0 : i64, high = 300 : i64, seed = 2 : i64}},
                     %ratings: memref<20000xf32> {baechi.name = "ratings", baechi.init = {kind = "uniform", low = -1.0 : f32, high = 1.0 : f32, seed = 3 : i64}},
                     %users: memref<600x8xf32> {baechi.name = "users", baechi.init = {kind = "uniform", low = -0.3 : f32, high = 0.3 : f32, seed = 4 : i64}},
                     %items: memref<300x8xf32> {baechi.name = "items", baechi.init = {kind = "uniform", low = -0.3 : f32, high = 0.3 : f32, seed = 5 : i64}}) {
  %rate = arith.constant 0.05 : f32
  %zero = arith.constant 0.0 : f32
  affine.for %n = 0 to 20000 {
    %row = affine.load %rows[%n] : memref<20000xi32>
    %column = affine.load %columns[%n] : memref<20000xi32>
    %i = arith.index_cast %row : i32 to index
    %j = arith.index_cast %column : i32 to index
    %product = affine.for %k = 0 to 8 iter_args(%sum = %zero) -> f32 {
      %u = memref.load %users[%i, %k] : memref<600x8xf32>
      %v = memref.load %items[%j, %k] : memref<300x8xf32>
      %uv = arith.mulf %u, %v : f32
      %next = arith.addf %sum, %uv : f32
      affine.yield %next : f32
    }
    %rating = affine.load %ratings[%n] : memref<20000xf32>
    %error = arith.subf %rating, %product : f32
    %step = arith.mulf %error, %rate : f32
    affine.for %k = 0 to 8 {
      %u = memref.load %users[%i, %k] : memref<600x8xf32>
      %v = memref.load %items[%j, %k] : memref<300x8xf32>
      %du = arith.mulf %step, %v : f32
      %dv = arith.mulf %step, %u : f32
      %newU = arith.addf %u, %du : f32
      %newV = arith.addf %v, %dv : f32
      memref.store %newU, %users[%i, %k] : memref<600x8xf32>
      memref.store %newV, %items[%j, %k] : memref<300x8xf32>
    }
  }
  return
}
