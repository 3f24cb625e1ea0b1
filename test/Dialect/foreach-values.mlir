// New values are written: the loop stays where its body has no effects.
// RUN: baechi-opt %s --canonicalize | FileCheck %s
// CHECK-LABEL: func.func @values
// CHECK: baechi.foreach
func.func @values(%k: memref<4xindex>, %v: memref<4xf32>) {
  baechi.foreach unordered (%i = %k : memref<4xindex> in 0 to 6) values(%x = %v : memref<4xf32>) {
    %new = arith.negf %x : f32
    baechi.yield %new : f32
  }
  return
}
