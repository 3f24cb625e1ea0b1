// Serial loops of scf, whatever the verdict.
// RUN: baechi-opt %s --baechi-lower-loops --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @entries
// CHECK: %[[N:.*]] = memref.dim %arg0
// CHECK: scf.for %[[E:.*]] = %c0{{.*}} to %[[N]] step %c1
// CHECK: %[[I:.*]] = memref.load %arg0[%[[E]]] : memref<?xindex>
// CHECK: %[[X:.*]] = memref.load %arg1[%[[E]]] : memref<?xf32>
// CHECK: memref.store %[[X]], %arg2[%[[I]]]
// CHECK: %[[NEW:.*]] = arith.negf %[[X]]
// CHECK: memref.store %[[NEW]], %arg1[%[[E]]]
func.func @entries(%k: memref<?xindex>, %v: memref<?xf32>, %y: memref<6xf32>) {
  baechi.foreach unordered (%i = %k : memref<?xindex> in 0 to 6) values(%x = %v : memref<?xf32>)
      arrays(%a = %y : memref<6xf32>) verdict #baechi.loop_verdict<scheme = disjoint, keys = [0]> {
    memref.store %x, %a[%i] : memref<6xf32>
    %new = arith.negf %x : f32
    baechi.yield %new : f32
  }
  return
}

// -----

// A loop within one, over the keys of a set.
// CHECK-LABEL: func.func @set
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %arg1
// CHECK: %[[ABOVE:.*]] = arith.cmpi sge
// CHECK: %[[EVEN:.*]] = arith.cmpi eq
// CHECK: %[[BOTH:.*]] = arith.andi %[[ABOVE]], %[[EVEN]]
// CHECK: scf.if %[[BOTH]]
// CHECK: scf.for %[[K:.*]] = %{{.*}} to
// CHECK: memref.store %{{.*}}, %arg0[%[[I]], %[[K]]]
func.func @set(%y: memref<6x6xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  baechi.foreach ordered (%i in 0 to 6, %j in 0 to %n)
      where affine_set<(i, j) : (j - i >= 0, j mod 2 == 0)> arrays(%a = %y : memref<6x6xf32>) {
    baechi.foreach ordered (%k in 0 to 6) arrays(%b = %a : memref<6x6xf32>) {
      memref.store %zero, %b[%i, %k] : memref<6x6xf32>
      baechi.yield
    }
    baechi.yield
  }
  return
}

// -----

func.func @affine(%y: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  baechi.foreach ordered (%i in 0 to 6) arrays(%a = %y : memref<6xf32>) {
    // expected-error @+1 {{is of the affine dialect, whose counters are those of its own loops: run --lower-affine first}}
    affine.store %zero, %a[%i] : memref<6xf32>
    baechi.yield
  }
  return
}
