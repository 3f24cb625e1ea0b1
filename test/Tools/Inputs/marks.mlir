// Marks of what entries name: whoever is last, they are the same, and so each
// block has a copy.
func.func @marks(%rows: memref<4096xi32> {baechi.name = "rows"},
                 %values: memref<4096xf32> {baechi.name = "values"},
                 %seen: memref<1000xi32> {baechi.name = "seen"},
                 %low: memref<1000xf32> {baechi.name = "low"},
                 %pairs: memref<1000xi8> {baechi.name = "pairs"}) {
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %negative = arith.constant -0.0 : f32
  %byte = arith.constant 0 : i8
  %two = arith.constant 2 : i32
  affine.for %n = 0 to 4096 {
    %row = affine.load %rows[%n] : memref<4096xi32>
    %half = arith.divsi %row, %two : i32
    %h = arith.index_cast %half : i32 to index
    memref.store %one, %seen[%h] : memref<1000xi32>
    %value = affine.load %values[%n] : memref<4096xf32>
    %isLow = arith.cmpf olt, %value, %zero : f32
    scf.if %isLow {
      memref.store %negative, %low[%h] : memref<1000xf32>
    }
    memref.store %byte, %pairs[%h] : memref<1000xi8>
  }
  return
}
