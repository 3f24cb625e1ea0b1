// Positions that data tell are checked: a result says which were outside.
// RUN: baechi-opt %s --baechi-partition-loops="workers=2 check-positions=true" --split-input-file --verify-diagnostics | FileCheck %s

// What bounds show to be inside is not checked.
// CHECK-LABEL: func.func @known
// CHECK-NOT: baechi.outside
// CHECK-LABEL: func.func @told
// CHECK-SAME: -> (tensor<8xf32>, tensor<1xi64> {baechi.name = "baechi.outside", baechi.outside = [{after = " of dimension 0 of 'arg0', which has 0 to 22", before = "reads position ", {{.*}}lowers = array<i64: 0>, sizes = array<i64: 8>}]})
func.func @known(%x: memref<8xf32>) {
  // expected-remark @+1 {{independent: 2 blocks of 2 workers}}
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>) {
    %0 = memref.load %a[%i] : memref<8xf32>
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %a[%i] : memref<8xf32>
    baechi.yield
  }
  return
}
func.func @told(%x: memref<23xf32>, %k: memref<8xindex>, %y: memref<8xf32>) {
  // expected-remark @+1 {{independent: 2 blocks of 2 workers}}
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<23xf32>, %p = %k : memref<8xindex>, %b = %y : memref<8xf32>) {
    %at = memref.load %p[%i] : memref<8xindex>
    %0 = memref.load %a[%at] : memref<23xf32>
    memref.store %0, %b[%i] : memref<8xf32>
    baechi.yield
  }
  return
}

// -----

func.func @complex(%x: memref<23xcomplex<f32>>, %k: memref<8xindex>, %y: memref<8xcomplex<f32>>) {
  // expected-remark @+1 {{independent: 2 blocks of 2 workers}}
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<23xcomplex<f32>>, %p = %k : memref<8xindex>, %b = %y : memref<8xcomplex<f32>>) {
    %at = memref.load %p[%i] : memref<8xindex>
    // expected-error @+1 {{is of 'complex<f32>', for which positions that data tell are not checked: use integers or floats}}
    %0 = memref.load %a[%at] : memref<23xcomplex<f32>>
    memref.store %0, %b[%i] : memref<8xcomplex<f32>>
    baechi.yield
  }
  return
}

// -----

// Where a loop of the entry surely reads, and does not change the position, it
// is checked once, before the loop, which has it at the array's end then.
// CHECK-LABEL: func.func @rows
// CHECK: scf.for
// CHECK:   %[[P:.*]] = tensor.extract %{{.*}} : tensor<4xindex>
// CHECK:   %[[IN:.*]] = arith.cmpi ult, %[[P]], %c23
// CHECK:   scf.if %[[IN]]
// CHECK:   arith.maxsi %[[P]], %c0
// CHECK:   %[[AT:.*]] = arith.minsi
// CHECK:   scf.for
// CHECK-NOT: scf.if
// CHECK:     tensor.extract %{{.*}}[%[[AT]], %{{.*}}] : tensor<23x4xf32>
func.func @rows(%x: memref<23x4xf32>, %k: memref<8xindex>, %y: memref<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-remark @+1 {{independent: 2 blocks of 2 workers}}
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<23x4xf32>, %p = %k : memref<8xindex>, %b = %y : memref<8x4xf32>) {
    %at = memref.load %p[%i] : memref<8xindex>
    scf.for %n = %c0 to %c4 step %c1 {
      %0 = memref.load %a[%at, %n] : memref<23x4xf32>
      memref.store %0, %b[%i, %n] : memref<8x4xf32>
    }
    baechi.yield
  }
  return
}

// -----

// What may not run, as of a branch or of a loop that may have no turn, is
// checked where it is.
// CHECK-LABEL: func.func @maybe
// CHECK: scf.for
// CHECK:   %[[P:.*]] = tensor.extract %{{.*}} : tensor<4xindex>
// CHECK-NOT: arith.minsi
// CHECK:   scf.for
// CHECK:     scf.if
// CHECK:       %[[IN:.*]] = arith.cmpi ult, %[[P]], %c23
// CHECK:       scf.if %[[IN]]
// CHECK:         tensor.extract %{{.*}}[%[[P]], %{{.*}}] : tensor<23x4xf32>
func.func @maybe(%x: memref<23x4xf32>, %k: memref<8xindex>, %y: memref<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-remark @+1 {{independent: 2 blocks of 2 workers}}
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<23x4xf32>, %p = %k : memref<8xindex>, %b = %y : memref<8x4xf32>) {
    %at = memref.load %p[%i] : memref<8xindex>
    scf.for %n = %c0 to %c4 step %c1 {
      %is = arith.cmpi sgt, %at, %n : index
      scf.if %is {
        %0 = memref.load %a[%at, %n] : memref<23x4xf32>
        memref.store %0, %b[%i, %n] : memref<8x4xf32>
      }
    }
    baechi.yield
  }
  return
}
