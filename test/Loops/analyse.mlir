// What bodies are made of: views, vectors, loops, numbers from outside, and what
// is not understood.
// RUN: baechi-opt %s --baechi-analyse-loops --split-input-file --verify-diagnostics | FileCheck %s

func.func @nothing(%x: memref<9xf32>) {
  // expected-remark @+1 {{independent: there are no entries}}
  baechi.foreach ordered (%i in 3 to 3) arrays(%a = %x : memref<9xf32>) {
    baechi.yield
  }
  return
}

// -----

// Only what is certain to lie outside is an error.
func.func @outside(%x: memref<9xf32>, %if: i1) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    %next = arith.addi %i, %c1 : index
    scf.if %if {
      memref.store %zero, %a[%next] : memref<9xf32>
    }
    // expected-error @+1 {{'memref.store' op arg0[i + 1] is written: with the keys' bounds that is from 1 to 9, and dimension 0 of 'arg0' has 9 elements: make the bounds of the keys narrower, or the array larger}}
    memref.store %zero, %a[%next] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

// A call may do anything.
func.func private @g()
func.func @calls(%x: memref<9xf32>) {
  // expected-remark @+1 {{serial, no more: other memory is read, other memory is written}}
  baechi.foreach unordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    // expected-note @+2 {{other memory is read here}}
    // expected-note @+1 {{other memory is written here}}
    func.call @g() : () -> ()
    baechi.yield
  }
  return
}

// -----

// So may one that is given the array.
func.func private @g(memref<9xf32>)
func.func @gives(%x: memref<9xf32>) {
  // expected-remark @+1 {{serial, no more: arg0[?] is read, arg0[?] is written, at positions that depend on data}}
  baechi.foreach unordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    // expected-note @+2 {{arg0[?] is read here}}
    // expected-note @+1 {{arg0[?] is written here}}
    func.call @g(%a) : (memref<9xf32>) -> ()
    baechi.yield
  }
  return
}

// -----

// An entry's own memory is no other's.
// CHECK-LABEL: func.func @own
func.func @own(%x: memref<9xf32>) {
  // expected-remark @+1 {{independent}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    %c0 = arith.constant 0 : index
    %own = memref.alloca() : memref<2xf32>
    %0 = memref.load %a[%i] : memref<9xf32>
    memref.store %0, %own[%c0] : memref<2xf32>
    %1 = memref.load %own[%c0] : memref<2xf32>
    memref.store %1, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

// Views: every other row, of which a vector.
// CHECK-LABEL: func.func @views
// CHECK: from = "arg0[2 * i + 1, 0 : +4] is written", to = "arg0[i, 1 : +4] is read", distances = (1 to 4)
func.func @views(%x: memref<20x8xf32>) {
  // expected-remark @+1 {{serial, no more: arg0[i, 1 : +4] is read, arg0[2 * i + 1, 0 : +4] is written}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<20x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %odd = memref.subview %a[1, 0] [10, 8] [2, 1] : memref<20x8xf32> to memref<10x8xf32, strided<[16, 1], offset: 8>>
    // expected-note @+1 {{is read here}}
    %0 = vector.load %a[%i, %c1] : memref<20x8xf32>, vector<4xf32>
    // expected-note @+1 {{is written here}}
    vector.store %0, %odd[%i, %c0] : memref<10x8xf32, strided<[16, 1], offset: 8>>, vector<4xf32>
    baechi.yield
  }
  return
}

// -----

// Numbers from outside cancel out; counters of loops in the body have a range.
// CHECK-LABEL: func.func @tiles
func.func @tiles(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{independent}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<?xf32>) {
    %from = arith.muli %i, %c4 : index
    %to = arith.addi %from, %c4 : index
    scf.for %k = %from to %to step %c1 {
      %at = arith.addi %k, %n : index
      memref.store %zero, %a[%at] : memref<?xf32>
    }
    baechi.yield
  }
  return
}

// -----

// A maximum has no order, nor have sums of floats that say so; two kinds of
// updates have one.
// CHECK-LABEL: func.func @updates
// CHECK: scheme = independent, sums = [0, 1], dependences = [#baechi.dependence<array = 0, from = "arg0 is updated by arith.maximumf"
// CHECK: scheme = serial
func.func @updates(%x: memref<f32>, %y: memref<f32>, %f: memref<9xf32>) {
  // expected-remark @+1 {{independent with sums of 'arg0' and 'arg1'}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<f32>, %b = %y : memref<f32>, %c = %f : memref<9xf32>) {
    %0 = memref.load %c[%i] : memref<9xf32>
    %1 = memref.load %a[] : memref<f32>
    %2 = arith.maximumf %1, %0 : f32
    memref.store %2, %a[] : memref<f32>
    %3 = memref.load %b[] : memref<f32>
    %4 = arith.subf %3, %0 fastmath<reassoc> : f32
    memref.store %4, %b[] : memref<f32>
    baechi.yield
  }
  // expected-remark @+1 {{serial, no more: arg0 is written, by several entries at once}}
  baechi.foreach ordered reassociate (%i in 0 to 9) arrays(%a = %x : memref<f32>, %c = %f : memref<9xf32>) {
    %0 = memref.load %c[%i] : memref<9xf32>
    %1 = memref.load %a[] : memref<f32>
    %2 = arith.maximumf %1, %0 : f32
    // expected-note @+1 {{arg0 is written here}}
    memref.store %2, %a[] : memref<f32>
    %3 = memref.load %a[] : memref<f32>
    %4 = arith.addf %3, %0 : f32
    memref.store %4, %a[] : memref<f32>
    baechi.yield
  }
  return
}

// -----

// No updates: the number that is added is of the array, or it is read between.
// CHECK-LABEL: func.func @no_updates
func.func @no_updates(%x: memref<i32>, %y: memref<9xi32>) {
  // expected-remark @+1 {{serial, no more: arg0 is read, arg0 is written}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<i32>) {
    // expected-note @+1 {{arg0 is read here}}
    %0 = memref.load %a[] : memref<i32>
    %1 = arith.addi %0, %0 : i32
    // expected-note @+1 {{arg0 is written here}}
    memref.store %1, %a[] : memref<i32>
    baechi.yield
  }
  // expected-remark @+1 {{serial, no more: arg0 is read, arg0 is written}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<i32>, %b = %y : memref<9xi32>) {
    // expected-note @+1 {{arg0 is read here}}
    %0 = memref.load %a[] : memref<i32>
    %1 = memref.load %b[%i] : memref<9xi32>
    %2 = arith.subi %1, %0 : i32
    // expected-note @+1 {{arg0 is written here}}
    memref.store %2, %a[] : memref<i32>
    baechi.yield
  }
  return
}

// -----

// Elements that are set to one number: whoever is last, it is the same, and a
// block has a copy. Not where two numbers are set, or one is read.
// CHECK-LABEL: func.func @one_number
func.func @one_number(%rows: memref<64xindex>, %x: memref<9xf32>, %y: memref<9xi8>) {
  %zero = arith.constant -0.0 : f32
  %one = arith.constant 1 : i8
  %two = arith.constant 2 : i8
  // expected-remark @+1 {{independent with copies of 'arg1' and 'arg2'}}
  baechi.foreach ordered (%i in 0 to 64) arrays(%r = %rows : memref<64xindex>, %a = %x : memref<9xf32>, %b = %y : memref<9xi8>) {
    %0 = memref.load %r[%i] : memref<64xindex>
    memref.store %zero, %a[%0] : memref<9xf32>
    memref.store %one, %b[%0] : memref<9xi8>
    baechi.yield
  }
  // expected-remark @+1 {{serial, no more: arg2[?] is written}}
  baechi.foreach ordered (%i in 0 to 64) arrays(%r = %rows : memref<64xindex>, %b = %y : memref<9xi8>) {
    %0 = memref.load %r[%i] : memref<64xindex>
    // expected-note @+1 {{arg2[?] is written here}}
    memref.store %one, %b[%0] : memref<9xi8>
    memref.store %two, %b[%0] : memref<9xi8>
    baechi.yield
  }
  // expected-remark @+1 {{serial, no more: arg2[?] is read, arg2[?] is written}}
  baechi.foreach ordered (%i in 0 to 64) arrays(%r = %rows : memref<64xindex>, %b = %y : memref<9xi8>) {
    %0 = memref.load %r[%i] : memref<64xindex>
    // expected-note @+1 {{arg2[?] is read here}}
    %1 = memref.load %b[%0] : memref<9xi8>
    %2 = arith.index_cast %1 : i8 to index
    // expected-note @+1 {{arg2[?] is written here}}
    memref.store %one, %b[%2] : memref<9xi8>
    baechi.yield
  }
  return
}

// -----

// Integers of a width may wrap: what may is no sum.
// CHECK-LABEL: func.func @wraps
func.func @wraps(%x: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %large = arith.constant 65536 : i32
  // expected-remark @+1 {{serial, no more: arg0[?] is written, by several entries at once}}
  baechi.foreach ordered (%i in 0 to 70000) arrays(%a = %x : memref<?xf32>) {
    %0 = arith.index_cast %i : index to i32
    %value = arith.sitofp %0 : i32 to f32
    %1 = arith.muli %0, %large : i32
    %2 = arith.index_cast %1 : i32 to index
    // expected-note @+1 {{arg0[?] is written here}}
    memref.store %value, %a[%2] : memref<?xf32>
    baechi.yield
  }
  // expected-remark @+1 {{independent}}
  baechi.foreach ordered (%i in 0 to 3000) arrays(%a = %x : memref<?xf32>) {
    %0 = arith.index_cast %i : index to i32
    %1 = arith.muli %0, %large : i32
    %2 = arith.index_cast %1 : i32 to index
    memref.store %zero, %a[%2] : memref<?xf32>
    baechi.yield
  }
  return
}
