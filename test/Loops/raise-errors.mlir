// What is not raised says why, and stays.
// RUN: baechi-opt %s --baechi-raise-loops --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @while
func.func @while(%a: memref<i1>) {
  // expected-remark @+1 {{not raised: how often it runs is not known before: count with 'scf.for'}}
  scf.while : () -> () {
    %0 = memref.load %a[] : memref<i1>
    scf.condition(%0)
  } do {
    scf.yield
  }
  return
}

// -----

// CHECK-LABEL: func.func @step
// CHECK: scf.for
func.func @step(%a: memref<9xf32>, %s: index) {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{not raised: its step is no positive number}}
  scf.for %i = %c0 to %c9 step %s {
    memref.store %zero, %a[%i] : memref<9xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @counter
// CHECK: scf.for
func.func @counter(%a: memref<9xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  // expected-remark @+1 {{not raised: its counter is no index within 2^40}}
  scf.for %i = %c0 to %c9 step %c1 : i32 {
    %0 = arith.index_cast %i : i32 to index
    memref.store %i, %a[%0] : memref<9xi32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @carried
// CHECK: affine.for
func.func @carried(%t: tensor<9xf32>, %x: f32) -> tensor<9xf32> {
  // expected-remark @+1 {{not raised: it carries 'tensor<9xf32>': keep it in memory (a memref)}}
  %0 = affine.for %i = 0 to 9 iter_args(%u = %t) -> tensor<9xf32> {
    %1 = tensor.insert %x into %u[%i] : tensor<9xf32>
    affine.yield %1 : tensor<9xf32>
  }
  return %0 : tensor<9xf32>
}

// -----

// CHECK-LABEL: func.func @call
// CHECK: affine.for
func.func private @g(index)
func.func @call() {
  // expected-remark @+1 {{not raised: what it does to memory is not known}}
  affine.for %i = 0 to 9 {
    // expected-note @+1 {{this may read and write any memory: inline it, or take it out}}
    func.call @g(%i) : (index) -> ()
  }
  return
}

// -----

// CHECK-LABEL: func.func @unranked
// CHECK: affine.for
func.func @unranked(%a: memref<*xf32>, %b: memref<9xindex>) {
  // expected-remark @+1 {{not raised: an array of it has no rank}}
  affine.for %i = 0 to 9 {
    // expected-note @+1 {{this memory has no rank: cast it to one that has}}
    %0 = memref.rank %a : memref<*xf32>
    affine.store %0, %b[%i] : memref<9xindex>
  }
  return
}

// -----

// CHECK-LABEL: func.func @outside
// CHECK: affine.for
func.func @outside(%a: memref<?xf32>, %n: index) {
  // expected-remark @+1 {{not raised: it has affine operations of a number from outside}}
  affine.for %i = 0 to 9 {
    // expected-note @+1 {{an affine operation of a number from outside the loop: run --lower-affine first}}
    %0 = affine.load %a[%i + symbol(%n)] : memref<?xf32>
    affine.store %0, %a[%i] : memref<?xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @overlap
// CHECK: affine.for
// expected-note @+1 {{this is one of the two}}
func.func @overlap(%a: memref<9xf32>) {
  // expected-note @+1 {{this is one of the two}}
  %b = memref.subview %a[0] [4] [2] : memref<9xf32> to memref<4xf32, strided<[2]>>
  // expected-remark @+1 {{not raised: it writes memory that may be another array's, too}}
  affine.for %i = 0 to 4 {
    %0 = affine.load %a[%i] : memref<9xf32>
    affine.store %0, %b[%i] : memref<4xf32, strided<[2]>>
  }
  return
}

// -----

// CHECK-LABEL: func.func @written_keys
// CHECK: baechi.foreach ordered (%{{.*}} in 0 to 9)
func.func @written_keys(%k: memref<9xindex>, %y: memref<9xf32>) {
  %c0 = arith.constant 0 : index
  %x = arith.constant 0.0 : f32
  // expected-remark @+1 {{raised over its counter, not over the keys that it reads: positions that these are in depend on data}}
  affine.for %i = 0 to 9 {
    // expected-note @+1 {{keys are read only, and this array is written}}
    %0 = affine.load %k[%i] : memref<9xindex>
    memref.store %x, %y[%0] : memref<9xf32>
    affine.store %c0, %k[%i] : memref<9xindex>
  }
  return
}

// -----

// CHECK-LABEL: func.func @elsewhere
// CHECK: baechi.foreach ordered (%{{.*}} in 0 to 8)
func.func @elsewhere(%k: memref<9xindex>, %y: memref<9xf32>) {
  %x = arith.constant 0.0 : f32
  // expected-remark @+1 {{raised over its counter}}
  affine.for %i = 0 to 8 {
    %0 = affine.load %k[%i] : memref<9xindex>
    memref.store %x, %y[%0] : memref<9xf32>
    // expected-note @+1 {{it uses the array at other places, too}}
    %1 = affine.load %k[%i + 1] : memref<9xindex>
    memref.store %x, %y[%1] : memref<9xf32>
  }
  return
}

// -----

func.func @conditional(%k: memref<9xindex>, %y: memref<9xf32>, %if: i1) {
  %x = arith.constant 0.0 : f32
  // expected-remark @+1 {{raised over its counter}}
  affine.for %i = 0 to 9 {
    // expected-note @+1 {{no array that each entry uses at this position says how large it may be}}
    %0 = affine.load %k[%i] : memref<9xindex>
    scf.if %if {
      memref.store %x, %y[%0] : memref<9xf32>
    }
  }
  return
}

// -----

func.func @counted(%k: memref<9xindex>, %y: memref<9xindex>) {
  // expected-remark @+1 {{raised over its counter}}
  affine.for %i = 0 to 9 {
    %0 = affine.load %k[%i] : memref<9xindex>
    // expected-note @+1 {{it uses the counter for more than the entry's elements}}
    memref.store %i, %y[%0] : memref<9xindex>
  }
  return
}

// -----

func.func @stepped(%k: memref<9xindex>, %y: memref<9xf32>) {
  %x = arith.constant 0.0 : f32
  // expected-remark @+2 {{raised over its counter}}
  // expected-note @+1 {{its step is not 1}}
  affine.for %i = 0 to 9 step 2 {
    %0 = affine.load %k[%i] : memref<9xindex>
    memref.store %x, %y[%0] : memref<9xf32>
  }
  return
}

// -----

func.func @sometimes(%k: memref<9xindex>, %y: memref<9xf32>, %v: memref<9xf32>, %if: i1) {
  %x = arith.constant 0.0 : f32
  // expected-remark @+1 {{raised over its counter}}
  affine.for %i = 0 to 9 {
    %0 = affine.load %k[%i] : memref<9xindex>
    memref.store %x, %y[%0] : memref<9xf32>
    scf.if %if {
      // expected-note @+1 {{an entry's value is stored once, and always}}
      memref.store %x, %v[%i] : memref<9xf32>
    }
  }
  return
}

// -----

func.func @late(%k: memref<9xindex>, %y: memref<9xf32>, %v: memref<9xf32>) {
  %x = arith.constant 0.0 : f32
  // expected-remark @+1 {{raised over its counter}}
  affine.for %i = 0 to 9 {
    %0 = affine.load %k[%i] : memref<9xindex>
    affine.store %x, %v[%i] : memref<9xf32>
    // expected-note @+1 {{it reads an entry's value after it was stored}}
    %1 = affine.load %v[%i] : memref<9xf32>
    memref.store %1, %y[%0] : memref<9xf32>
  }
  return
}

// -----

// Arguments of a block, other than a function's, may be one array.
// CHECK-LABEL: func.func @block_arguments
// CHECK: affine.for
func.func @block_arguments() {
  %a = memref.alloc() : memref<20xf32>
  cf.br ^bb1(%a, %a : memref<20xf32>, memref<20xf32>)
// expected-note @+1 {{this is one of the two}}
^bb1(%p: memref<20xf32>,
     // expected-note @+1 {{this is one of the two}}
     %q: memref<20xf32>):
  // expected-remark @+1 {{not raised: it writes memory that may be another array's, too}}
  affine.for %i = 0 to 19 {
    %x = affine.load %q[%i] : memref<20xf32>
    affine.store %x, %p[%i + 1] : memref<20xf32>
  }
  return
}
