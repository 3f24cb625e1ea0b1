// Loops that cannot run in blocks, and functions that cannot be steps.
// RUN: baechi-opt %s --baechi-partition-loops --split-input-file --verify-diagnostics
// RUN: not baechi-opt %s --baechi-partition-loops=fallback=serial --split-input-file 2>&1 | FileCheck %s
// RUN: not baechi-opt %s --baechi-partition-loops=workers=0 --split-input-file 2>&1 | FileCheck %s --check-prefix=WORKERS
// RUN: not baechi-opt %s --baechi-partition-loops=fallback=none --split-input-file 2>&1 | FileCheck %s --check-prefix=FALLBACK
// WORKERS: error: workers is 0: give a number of at least 1
// FALLBACK: error: fallback is 'none': give refuse or serial

// CHECK: remark: runs on one device: serial, no more: arg0[i - 1] is read, arg0[i] is written
func.func @serial(%x: memref<9xf32>) {
  // expected-error @+1 {{cannot run in blocks: serial, no more: arg0[i - 1] is read, arg0[i] is written; if any order of the entries is right, say so (unordered); or ask for fallback=serial}}
  baechi.foreach ordered (%i in 1 to 9) arrays(%a = %x : memref<9xf32>) {
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %0 = memref.load %a[%before] : memref<9xf32>
    memref.store %0, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

// CHECK: remark: runs on one device: key 'i' has bounds that are not known before the run: give numbers
func.func @open(%x: memref<9xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{key 'i' has bounds that are not known before the run: give numbers}}
  baechi.foreach ordered (%i in 0 to %n) arrays(%a = %x : memref<9xf32>) {
    memref.store %zero, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

// CHECK: remark: runs on one device: key 'i' has no values
func.func @none(%x: memref<9xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{key 'i' has no values}}
  baechi.foreach ordered (%i in 3 to 3) arrays(%a = %x : memref<9xf32>) {
    memref.store %zero, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

// CHECK: remark: runs on one device: it is within another operation
func.func @within(%x: memref<9xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %t = %c0 to %c9 step %c1 {
    // expected-error @+1 {{it is within another operation: blocks are of loops that are the function's own; make the loop around it one of its keys}}
    baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
      memref.store %zero, %a[%i] : memref<9xf32>
      baechi.yield
    }
  }
  return
}

// -----

// CHECK: remark: runs on one device: independent, but blocks cannot cut 'arg0': arg0[i] is written, arg0[-i + 17] is written
func.func @uncut(%x: memref<18xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{independent, but blocks cannot cut 'arg0': arg0[i] is written, arg0[-i + 17] is written; a cut is along one sum of the scheme's keys, which all its accesses have, and all writes with the same number: give it in parts, an array for each such sum}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<18xf32>) {
    %c17 = arith.constant 17 : index
    %back = arith.subi %c17, %i : index
    memref.store %zero, %a[%i] : memref<18xf32>
    memref.store %zero, %a[%back] : memref<18xf32>
    baechi.yield
  }
  return
}

// -----

// One time after another, and no second sum: each entry depends on all of the
// time before.
// CHECK: remark: runs on one device: it is one after the other in i, those of one value at once, and blocks need a second sum of keys
func.func @timed(%x: memref<9x9xf32>) {
  // expected-error @+1 {{it is one after the other in i, those of one value at once, and blocks need a second sum of keys in which no entry comes before one that it depends on: read fewer elements of what is written, at keys and numbers}}
  baechi.foreach ordered (%i in 1 to 9, %j in 0 to 9) arrays(%a = %x : memref<9x9xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %zero = arith.constant 0.0 : f32
    %above = arith.subi %i, %c1 : index
    %sum = scf.for %k = %c0 to %c9 step %c1 iter_args(%s = %zero) -> f32 {
      %0 = memref.load %a[%above, %k] : memref<9x9xf32>
      %1 = arith.addf %s, %0 : f32
      scf.yield %1 : f32
    }
    memref.store %sum, %a[%i, %j] : memref<9x9xf32>
    baechi.yield
  }
  return
}

// -----

// CHECK: remark: runs on one device: it uses other memory than its arrays, or calls functions (--inline)
func.func private @f(f32) -> f32
func.func @calls(%x: memref<9xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{it uses other memory than its arrays, or calls functions (--inline)}}
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    %0 = func.call @f(%zero) : (f32) -> f32
    memref.store %0, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

// expected-error @+1 {{argument 0 has type 'memref<?xf32>', and devices keep arrays of fixed sizes without a layout: give the sizes as numbers}}
func.func @sizes(%x: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<?xf32>) {
    memref.store %zero, %a[%i] : memref<?xf32>
    baechi.yield
  }
  return
}

// -----

// expected-error @+1 {{has several blocks; control flow must be structured (scf.if, scf.for)}}
func.func @flow(%x: memref<9xf32>) {
  %zero = arith.constant 0.0 : f32
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    memref.store %zero, %a[%i] : memref<9xf32>
    baechi.yield
  }
  cf.br ^end
^end:
  return
}

// -----

// expected-error @+1 {{holds loops over keys and is called: inline it first (--inline)}}
func.func private @called(%x: memref<9xf32>) {
  %zero = arith.constant 0.0 : f32
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    memref.store %zero, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}
func.func @calls(%x: memref<9xf32>) {
  func.call @called(%x) : (memref<9xf32>) -> ()
  return
}

// -----

func.func @affine(%x: memref<9xf32>) {
  %zero = arith.constant 0.0 : f32
  baechi.foreach ordered (%i in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    // expected-error @+1 {{run --lower-affine first}}
    affine.store %zero, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

func.func @form(%x: memref<8x9xf32>) {
  // expected-remark @+1 {{independent: 4 blocks of 4 workers}}
  baechi.foreach ordered (%i in 0 to 8, %j in 0 to 9) arrays(%a = %x : memref<8x9xf32>) {
    %one = vector.load %a[%i, %j] : memref<8x9xf32>, vector<1xf32>
    // expected-error @-1 {{has no form over tensors: loops run on devices with loads and stores of memref, linalg, scf.for and scf.if, subviews and copies (--lower-affine, --convert-vector-to-scf and --inline come first)}}
    vector.store %one, %a[%i, %j] : memref<8x9xf32>, vector<1xf32>
    baechi.yield
  }
  return
}

// -----

func.func @mixed(%x: memref<8xf32>, %t: tensor<f32>) {
  // expected-remark @+1 {{independent: 4 blocks of 4 workers}}
  baechi.foreach ordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>) {
    %n = memref.alloca(%i) : memref<?xf32>
    // expected-error @-1 {{is of no fixed size, or has a layout: give it the sizes as numbers}}
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %a[%i] : memref<8xf32>
    baechi.yield
  }
  return
}


// -----

func.func @dim(%x: memref<8xf32>) {
  // expected-remark @+1 {{independent: 4 blocks of 4 workers}}
  baechi.foreach ordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>) {
    %zero = arith.constant 0.0 : f32
    // expected-error @+1 {{is of no fixed size: give the sizes as numbers}}
    %part = memref.subview %a[%i] [%i] [1] : memref<8xf32> to memref<?xf32, strided<[1], offset: ?>>
    memref.store %zero, %a[%i] : memref<8xf32>
    baechi.yield
  }
  return
}

// -----

func.func @other(%x: memref<8xf32>, %y: memref<2x4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %line = memref.collapse_shape %y [[0, 1]] : memref<2x4xf32> into memref<8xf32>
  // expected-error @-1 {{has no form over tensors}}
  // expected-remark @+1 {{independent: 4 blocks of 4 workers}}
  baechi.foreach ordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>) {
    memref.store %zero, %a[%i] : memref<8xf32>
    baechi.yield
  }
  return
}

// -----

func.func @unknown(%x: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{independent: 4 blocks of 4 workers}}
  baechi.foreach ordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>) {
    %own = memref.alloca() : memref<2x2xf32>
    %line = memref.collapse_shape %own [[0, 1]] : memref<2x2xf32> into memref<4xf32>
    // expected-error @-1 {{has no form over tensors}}
    memref.store %zero, %a[%i] : memref<8xf32>
    baechi.yield
  }
  return
}

// -----

func.func @carries(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %own = memref.alloc() : memref<8xf32>
  // expected-remark @+1 {{independent: 4 blocks of 4 workers}}
  baechi.foreach ordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>) {
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %a[%i] : memref<8xf32>
    baechi.yield
  }
  // expected-error @+1 {{has no form over tensors}}
  %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%m = %own) -> (memref<8xf32>) {
    scf.yield %m : memref<8xf32>
  }
  return
}

// -----

memref.global "private" constant @numbers : memref<8xf32> = dense<1.0>
func.func @global(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-remark @+1 {{independent: 4 blocks of 4 workers}}
  baechi.foreach ordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>) {
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %a[%i] : memref<8xf32>
    baechi.yield
  }
  // expected-error @+1 {{has no form over tensors}}
  %n = memref.get_global @numbers : memref<8xf32>
  return
}

// -----

func.func @sparse(%k: memref<9xindex>, %x: memref<9xf32>) {
  %any = memref.cast %k : memref<9xindex> to memref<?xindex>
  // expected-error @+1 {{how many entries it has is not known before the run: give key arrays and values fixed sizes}}
  baechi.foreach ordered (%i = %any : memref<?xindex> in 0 to 9) arrays(%a = %x : memref<9xf32>) {
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %a[%i] : memref<9xf32>
    baechi.yield
  }
  return
}

// -----

// Positions that the array does not have, with the bounds of the keys and
// counters that they are made of: serial loops have them, too.
// CHECK: error: 'memref.load' op arg0[i + 1] is read outside of 'arg0': at positions 1 to 8
func.func @outside(%x: memref<8xf32>, %y: memref<8xf32>) {
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>, %b = %y : memref<8xf32>) {
    %c1 = arith.constant 1 : index
    %next = arith.addi %i, %c1 : index
    // expected-error @+1 {{arg0[i + 1] is read outside of 'arg0': at positions 1 to 8 of dimension 0, which has 0 to 7; change the loop's bounds, or do it only where it is inside (scf.if)}}
    %0 = memref.load %a[%next] : memref<8xf32>
    memref.store %0, %b[%i] : memref<8xf32>
    baechi.yield
  }
  return
}

// -----

func.func @outside_by_counter(%x: memref<8x8xf32>, %y: memref<8xf32>) {
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<8x8xf32>, %b = %y : memref<8xf32>) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c9 = arith.constant 9 : index
    %sum = scf.for %k = %c0 to %c9 step %c2 iter_args(%s = %zero) -> f32 {
      // expected-error @+1 {{outside of 'arg0': at positions 0 to 8 of dimension 1, which has 0 to 7}}
      %0 = memref.load %a[%i, %k] : memref<8x8xf32>
      %1 = arith.addf %s, %0 : f32
      scf.yield %1 : f32
    }
    memref.store %sum, %b[%i] : memref<8xf32>
    baechi.yield
  }
  return
}

// -----

func.func @written_outside(%x: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  baechi.foreach unordered (%i in 0 to 8, %j in 0 to 8) where affine_set<(d0, d1) : (d0 - d1 - 1 >= 0)> arrays(%a = %x : memref<8xf32>) {
    %c2 = arith.constant 2 : index
    %back = arith.subi %j, %c2 : index
    // expected-error @+1 {{arg0[j - 2] is written outside of 'arg0': at positions -2 to 4 of dimension 0, which has 0 to 7}}
    memref.store %zero, %a[%back] : memref<8xf32>
    baechi.yield
  }
  return
}
