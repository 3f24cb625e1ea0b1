// Loops print what they parsed.
// RUN: baechi-opt %s | baechi-opt | FileCheck %s
// RUN: baechi-opt %s --mlir-print-op-generic | baechi-opt | FileCheck %s
// RUN: baechi-opt %s --emit-bytecode | baechi-opt | FileCheck %s
// What no effect of the body keeps goes; what it writes stays.
// RUN: baechi-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

#upper = affine_set<(i, j) : (j - i - 1 >= 0)>

// CHECK: #[[SET:.*]] = affine_set<(d0, d1) : (d1 - d0 - 1 >= 0)>
// CHECK-LABEL: func.func @sparse
// CHECK: baechi.foreach unordered reassociate (%[[I:.*]] = %arg0 : memref<20xi32> in 0 to 6, %[[J:.*]] = %arg1 : memref<20xindex> in -1 to %arg6)
// CHECK-SAME: values(%[[R:.*]] = %arg2 : memref<20xf32>)
// CHECK-SAME: arrays(%[[W:.*]] = %arg3 : memref<6x8xf32>, %[[S:.*]] = %arg5 buffered : memref<f32>)
// CHECK: memref.load %[[W]][%[[I]], %[[J]]]
// CHECK: baechi.yield %{{.*}} : f32
// CANONICAL-LABEL: func.func @sparse
// CANONICAL: baechi.foreach
func.func @sparse(%rows: memref<20xi32>, %columns: memref<20xindex>,
                  %ratings: memref<20xf32>, %w: memref<6x8xf32>,
                  %h: memref<8xf32>, %s: memref<f32>, %n: index) {
  baechi.foreach unordered reassociate (
      %i = %rows : memref<20xi32> in 0 to 6,
      %j = %columns : memref<20xindex> in -1 to %n)
      values(%r = %ratings : memref<20xf32>)
      arrays(%a = %w : memref<6x8xf32>, %b = %s buffered : memref<f32>) {
    %0 = memref.load %a[%i, %j] : memref<6x8xf32>
    %1 = arith.addf %0, %r : f32
    memref.store %1, %b[] : memref<f32>
    baechi.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func.func @dense
// CHECK: baechi.foreach ordered (%{{.*}} in %arg1 to %arg1, %{{.*}} in 0 to 8, %{{.*}} in 0 to 1, %{{.*}} in 0 to 1, %{{.*}} in 0 to 1)
// CHECK-SAME: arrays(%{{.*}} = %arg0 : memref<8x8xf32>)
// CHECK-SAME: verdict #baechi.loop_verdict<scheme = disjoint, keys = [1, 0], sums = [0], dependences = [#baechi.dependence<array = 0, from = "a[i] is read", to = "a[i] is written", distances = (1, any, from 2, to -1, -1 to 1)>]>
// CHECK-SAME: attributes {baechi.name = "rows"}
// CHECK: baechi.yield
func.func @dense(%a: memref<8x8xf32>, %n: index) {
  baechi.foreach ordered (%i in %n to %n, %j in 0 to 8, %k in 0 to 1, %l in 0 to 1, %m in 0 to 1)
      arrays(%b = %a : memref<8x8xf32>)
      verdict #baechi.loop_verdict<scheme = disjoint, keys = [1, 0], sums = [0], dependences = [
          #baechi.dependence<array = 0, from = "a[i] is read", to = "a[i] is written",
                             distances = (1, any, from 2, to -1, -1 to 1)>]>
      attributes {baechi.name = "rows"} {
    baechi.yield
  }
  return
}

// CHECK-LABEL: func.func @triangle
// CHECK: baechi.foreach ordered (%{{.*}} in 0 to 8, %{{.*}} in 0 to 8) where #[[SET]]
// CANONICAL-LABEL: func.func @triangle
// CANONICAL-NOT: baechi.foreach
func.func @triangle(%a: memref<8x8xf32>) {
  baechi.foreach ordered (%i in 0 to 8, %j in 0 to 8) where #upper arrays(%b = %a : memref<8x8xf32>) {
    %0 = memref.load %b[%i, %j] : memref<8x8xf32>
    baechi.yield
  }
  return
}

// Verdicts stand anywhere.
// CHECK-LABEL: func.func private @verdicts
func.func private @verdicts() attributes {
  // CHECK-SAME: a = #baechi.loop_verdict<scheme = independent>
  // CHECK-SAME: b = #baechi.loop_verdict<scheme = skewed, form = [1, -1]>
  // CHECK-SAME: c = #baechi.loop_verdict<scheme = serial, dependences = []>
  a = #baechi.loop_verdict<scheme = independent>,
  b = #baechi.loop_verdict<scheme = skewed, form = [1, -1]>,
  c = #baechi.loop_verdict<scheme = serial, dependences = []>}
