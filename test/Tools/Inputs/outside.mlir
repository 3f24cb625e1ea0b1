// Reads a[31], which there is not.
func.func @step(%a: memref<31xf32> {baechi.name = "a"},
                %b: memref<31xf32> {baechi.name = "b"}) {
  affine.for %i = 0 to 31 {
    %x = affine.load %a[%i + 1] : memref<31xf32>
    affine.store %x, %b[%i] : memref<31xf32>
  }
  return
}
