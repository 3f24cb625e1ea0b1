// The verdicts of known loops: each is the remark, and the distances of what
// depends on what.
// RUN: baechi-opt %s --baechi-analyse-loops --split-input-file --verify-diagnostics | FileCheck %s

// y[i] = f(x[i])
// CHECK-LABEL: func.func @each
// CHECK: verdict #baechi.loop_verdict<scheme = independent> {
func.func @each(%x: memref<100xf32>, %y: memref<100xf32>) {
  // expected-remark @+1 {{independent}}
  baechi.foreach ordered (%i in 0 to 100) arrays(%a = %x : memref<100xf32>, %b = %y : memref<100xf32>) {
    %0 = memref.load %a[%i] : memref<100xf32>
    %1 = math.exp %0 : f32
    memref.store %1, %b[%i] : memref<100xf32>
    baechi.yield
  }
  return
}

// -----

// y[i] = y[i - 1] + x[i]
// CHECK-LABEL: func.func @scan
// CHECK: scheme = serial, dependences = [#baechi.dependence<array = 1, from = "y[i] is written", to = "y[i - 1] is read", distances = (1)>]
func.func @scan(%x: memref<100xf32>, %y: memref<100xf32> {baechi.name = "y"}) {
  %c1 = arith.constant 1 : index
  // expected-remark @+1 {{serial, no more: y[i - 1] is read, y[i] is written; if any order of the entries is right, say so (unordered)}}
  baechi.foreach ordered (%i in 1 to 100) arrays(%a = %x : memref<100xf32>, %b = %y : memref<100xf32>) {
    %before = arith.subi %i, %c1 : index
    // expected-note @+1 {{y[i - 1] is read here}}
    %0 = memref.load %b[%before] : memref<100xf32>
    %1 = memref.load %a[%i] : memref<100xf32>
    %2 = arith.addf %0, %1 : f32
    // expected-note @+1 {{y[i] is written here}}
    memref.store %2, %b[%i] : memref<100xf32>
    baechi.yield
  }
  return
}

// -----

// W[i, :] and H[j, :] updated.
// CHECK-LABEL: func.func @factorise
// CHECK: scheme = disjoint, keys = [0, 1]
// CHECK-SAME: from = "W[i, :] is written", to = "W[i, :] is read", distances = (0, from 1)
// CHECK-SAME: from = "H[j, :] is written", to = "H[j, :] is read", distances = (from 1, 0)
func.func @factorise(%rows: memref<20000xi32>, %columns: memref<20000xi32>,
                     %ratings: memref<20000xf32>,
                     %w: memref<600x8xf32> {baechi.name = "W"},
                     %h: memref<300x8xf32> {baechi.name = "H"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{2D over i and j, no more: W[i, :] is read, W[i, :] is written}}
  baechi.foreach unordered (%i = %rows : memref<20000xi32> in 0 to 600,
                            %j = %columns : memref<20000xi32> in 0 to 300)
      values(%r = %ratings : memref<20000xf32>)
      arrays(%u = %w : memref<600x8xf32>, %v = %h : memref<300x8xf32>) {
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
      // expected-note @+1 {{W[i, :] is read here}}
      %a = memref.load %u[%i, %k] : memref<600x8xf32>
      %b = memref.load %v[%j, %k] : memref<300x8xf32>
      %ab = arith.mulf %a, %b : f32
      %t = arith.addf %s, %ab : f32
      scf.yield %t : f32
    }
    %error = arith.subf %r, %sum : f32
    scf.for %k = %c0 to %c8 step %c1 {
      %a = memref.load %u[%i, %k] : memref<600x8xf32>
      %b = memref.load %v[%j, %k] : memref<300x8xf32>
      %da = arith.mulf %error, %b : f32
      %a1 = arith.addf %a, %da : f32
      // expected-note @+1 {{W[i, :] is written here}}
      memref.store %a1, %u[%i, %k] : memref<600x8xf32>
      %db = arith.mulf %error, %a : f32
      %b1 = arith.addf %b, %db : f32
      memref.store %b1, %v[%j, %k] : memref<300x8xf32>
    }
    baechi.yield
  }
  return
}

// -----

// W[i] and H[j] updated, and a sum added to: blocks have sums of their own.
// CHECK-LABEL: func.func @sums
// CHECK: scheme = disjoint, keys = [0, 1], sums = [2]
func.func @sums(%w: memref<60xf32>, %h: memref<30xf32>, %s: memref<f32>) {
  // expected-remark @+1 {{2D over i and j with sums of 'arg2', no more: arg0[i] is read, arg0[i] is written}}
  baechi.foreach unordered reassociate (%i in 0 to 60, %j in 0 to 30)
      arrays(%u = %w : memref<60xf32>, %v = %h : memref<30xf32>, %t = %s : memref<f32>) {
    // expected-note @+1 {{arg0[i] is read here}}
    %0 = memref.load %u[%i] : memref<60xf32>
    %1 = memref.load %v[%j] : memref<30xf32>
    // expected-note @+1 {{arg0[i] is written here}}
    memref.store %1, %u[%i] : memref<60xf32>
    memref.store %0, %v[%j] : memref<30xf32>
    %2 = memref.load %t[] : memref<f32>
    %3 = arith.addf %2, %0 : f32
    memref.store %3, %t[] : memref<f32>
    baechi.yield
  }
  return
}

// -----

// The sum is read, too.
// CHECK-LABEL: func.func @read_sums
// CHECK: scheme = serial
func.func @read_sums(%w: memref<60xf32>, %h: memref<30xf32>, %s: memref<f32>) {
  // expected-remark @+1 {{serial, no more: arg2 is read, arg2 is written; buffer 'arg2' to let its writes be seen late}}
  baechi.foreach unordered reassociate (%i in 0 to 60, %j in 0 to 30)
      arrays(%u = %w : memref<60xf32>, %v = %h : memref<30xf32>, %t = %s : memref<f32>) {
    %0 = memref.load %u[%i] : memref<60xf32>
    %1 = memref.load %v[%j] : memref<30xf32>
    memref.store %1, %u[%i] : memref<60xf32>
    // expected-note @+1 {{arg2 is read here}}
    %2 = memref.load %t[] : memref<f32>
    %3 = arith.addf %2, %0 : f32
    // expected-note @+1 {{arg2 is written here}}
    memref.store %3, %t[] : memref<f32>
    memref.store %2, %v[%j] : memref<30xf32>
    baechi.yield
  }
  return
}

// -----

// The same, buffered.
// CHECK-LABEL: func.func @buffered_sums
// CHECK: scheme = disjoint, keys = [0, 1], dependences
func.func @buffered_sums(%w: memref<60xf32>, %h: memref<30xf32>, %s: memref<f32>) {
  // expected-remark @+1 {{2D over i and j, no more: arg0[i] is read, arg0[i] is written}}
  baechi.foreach unordered (%i in 0 to 60, %j in 0 to 30)
      arrays(%u = %w : memref<60xf32>, %v = %h : memref<30xf32>, %t = %s buffered : memref<f32>) {
    // expected-note @+1 {{arg0[i] is read here}}
    %0 = memref.load %u[%i] : memref<60xf32>
    // expected-note @+1 {{arg0[i] is written here}}
    memref.store %0, %u[%i] : memref<60xf32>
    %2 = memref.load %t[] : memref<f32>
    %3 = arith.addf %2, %0 : f32
    memref.store %3, %t[] : memref<f32>
    memref.store %2, %v[%j] : memref<30xf32>
    baechi.yield
  }
  return
}

// -----

// a[i, j] of its upper and left neighbours, in order.
// CHECK-LABEL: func.func @wavefront
// CHECK: scheme = wavefront, keys = [0, 1]
// CHECK-SAME: distances = (1, 0)
// CHECK-SAME: distances = (0, 1)
func.func @wavefront(%m: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  // expected-remark @+1 {{wavefront over i and j, no more}}
  baechi.foreach ordered (%i in 1 to 64, %j in 1 to 64) arrays(%a = %m : memref<64x64xf32>) {
    %up = arith.subi %i, %c1 : index
    %left = arith.subi %j, %c1 : index
    %0 = memref.load %a[%up, %j] : memref<64x64xf32>
    // expected-note @+1 {{arg0[i, j - 1] is read here}}
    %1 = memref.load %a[%i, %left] : memref<64x64xf32>
    %2 = arith.addf %0, %1 : f32
    // expected-note @+1 {{arg0[i, j] is written here}}
    memref.store %2, %a[%i, %j] : memref<64x64xf32>
    baechi.yield
  }
  return
}

// -----

// a[i, j] of a[i - 1, j - 1]: diagonals do not meet.
// CHECK-LABEL: func.func @diagonal
// CHECK: scheme = skewed, form = [1, -1]
// CHECK-SAME: distances = (1, 1)
func.func @diagonal(%m: memref<64x64xf32>) {
  // expected-remark @+1 {{1D over i - j, no more}}
  baechi.foreach ordered (%i in 1 to 64, %j in 1 to 64) arrays(%a = %m : memref<64x64xf32>) {
    // expected-note @+1 {{is read here}}
    %0 = affine.load %a[%i - 1, %j - 1] : memref<64x64xf32>
    // expected-note @+1 {{is written here}}
    affine.store %0, %a[%i, %j] : memref<64x64xf32>
    baechi.yield
  }
  return
}

// -----

// a[i, j] of a[i - 1, j + 1]
// CHECK-LABEL: func.func @other_diagonal
// CHECK: scheme = skewed, form = [1, 1]
// CHECK-SAME: distances = (1, -1)
func.func @other_diagonal(%m: memref<64x64xf32>) {
  // expected-remark @+1 {{1D over i + j, no more}}
  baechi.foreach ordered (%i in 1 to 64, %j in 0 to 63) arrays(%a = %m : memref<64x64xf32>) {
    // expected-note @+1 {{is read here}}
    %0 = affine.load %a[%i - 1, %j + 1] : memref<64x64xf32>
    // expected-note @+1 {{is written here}}
    affine.store %0, %a[%i, %j] : memref<64x64xf32>
    baechi.yield
  }
  return
}

// -----

// a[i, j] of the three above.
// CHECK-LABEL: func.func @timed
// CHECK: scheme = timed, form = [1, 0]
// CHECK-SAME: distances = (1, 0)
// CHECK-SAME: distances = (1, 1)
// CHECK-SAME: distances = (1, -1)
func.func @timed(%m: memref<64x64xf32>) {
  // expected-remark @+1 {{one after the other in i, those of one value at once, no more}}
  baechi.foreach ordered (%i in 1 to 64, %j in 1 to 63) arrays(%a = %m : memref<64x64xf32>) {
    %0 = affine.load %a[%i - 1, %j] : memref<64x64xf32>
    // expected-note @+1 {{is read here}}
    %1 = affine.load %a[%i - 1, %j - 1] : memref<64x64xf32>
    %2 = affine.load %a[%i - 1, %j + 1] : memref<64x64xf32>
    %3 = arith.addf %0, %1 : f32
    %4 = arith.addf %3, %2 : f32
    // expected-note @+1 {{is written here}}
    affine.store %4, %a[%i, %j] : memref<64x64xf32>
    baechi.yield
  }
  return
}

// -----

// a[2 * i] = a[2 * i + 1]: even and odd.
// CHECK-LABEL: func.func @even
// CHECK: scheme = independent>
func.func @even(%m: memref<200xf32>) {
  // expected-remark @+1 {{independent}}
  baechi.foreach ordered (%i in 0 to 100) arrays(%a = %m : memref<200xf32>) {
    %0 = affine.load %a[2 * %i + 1] : memref<200xf32>
    affine.store %0, %a[2 * %i] : memref<200xf32>
    baechi.yield
  }
  return
}

// -----

// a[i + 100] = a[i], below 100.
// CHECK-LABEL: func.func @halves
// CHECK: scheme = independent>
func.func @halves(%m: memref<200xf32>) {
  %c100 = arith.constant 100 : index
  // expected-remark @+1 {{independent}}
  baechi.foreach ordered (%i in 0 to 100) arrays(%a = %m : memref<200xf32>) {
    %far = arith.addi %i, %c100 : index
    %0 = memref.load %a[%i] : memref<200xf32>
    memref.store %0, %a[%far] : memref<200xf32>
    baechi.yield
  }
  return
}

// -----

// The same with a bound that is not known.
// CHECK-LABEL: func.func @halves_of_any
// CHECK: scheme = independent>
func.func @halves_of_any(%m: memref<?xf32>, %n: index) {
  // expected-remark @+1 {{independent}}
  baechi.foreach ordered (%i in 0 to %n) arrays(%a = %m : memref<?xf32>) {
    %far = arith.addi %i, %n : index
    %0 = memref.load %a[%i] : memref<?xf32>
    memref.store %0, %a[%far] : memref<?xf32>
    baechi.yield
  }
  return
}

// -----

// a[99 - i] = a[i]: 0 and 99, 1 and 98, ...
// CHECK-LABEL: func.func @mirrored
// CHECK: scheme = serial
// CHECK-SAME: from = "arg0[i] is read", to = "arg0[-i + 99] is written", distances = (from 1)
func.func @mirrored(%m: memref<100xf32>) {
  // expected-remark @+1 {{serial, no more: arg0[i] is read, arg0[-i + 99] is written}}
  baechi.foreach ordered (%i in 0 to 100) arrays(%a = %m : memref<100xf32>) {
    // expected-note @+1 {{is read here}}
    %0 = affine.load %a[%i] : memref<100xf32>
    // expected-note @+1 {{is written here}}
    affine.store %0, %a[99 - %i] : memref<100xf32>
    baechi.yield
  }
  return
}

// -----

// r[target] += p[source] over edges.
// CHECK-LABEL: func.func @edges
// CHECK: scheme = disjoint, keys = [1], dependences
// CHECK-SAME: from = "arg3[j] is added to", to = "arg3[j] is added to", distances = (from 1, 0)
func.func @edges(%source: memref<500xi32>, %target: memref<500xi32>,
                 %p: memref<100xf32>, %r: memref<100xf32>) {
  // expected-remark @+1 {{1D over j, no more: arg3[j] is added to, by several entries at once}}
  baechi.foreach ordered (%i = %source : memref<500xi32> in 0 to 100,
                          %j = %target : memref<500xi32> in 0 to 100)
      arrays(%a = %p : memref<100xf32>, %b = %r : memref<100xf32>) {
    %0 = memref.load %a[%i] : memref<100xf32>
    %1 = memref.load %b[%j] : memref<100xf32>
    %2 = arith.addf %1, %0 : f32
    // expected-note @+1 {{arg3[j] is added to here}}
    memref.store %2, %b[%j] : memref<100xf32>
    baechi.yield
  }
  return
}

// -----

// A[i], B[j], C[k] updated.
// CHECK-LABEL: func.func @tensor
// CHECK: scheme = disjoint, keys = [2, 1, 0]
func.func @tensor(%x: memref<10xf32>, %y: memref<20xf32>, %z: memref<30xf32>) {
  // expected-remark @+1 {{3D over k, j and i, no more}}
  baechi.foreach unordered (%i in 0 to 10, %j in 0 to 20, %k in 0 to 30)
      arrays(%a = %x : memref<10xf32>, %b = %y : memref<20xf32>, %c = %z : memref<30xf32>) {
    %0 = memref.load %a[%i] : memref<10xf32>
    %1 = memref.load %b[%j] : memref<20xf32>
    // expected-note @+1 {{arg2[k] is read here}}
    %2 = memref.load %c[%k] : memref<30xf32>
    memref.store %1, %a[%i] : memref<10xf32>
    memref.store %2, %b[%j] : memref<20xf32>
    // expected-note @+1 {{arg2[k] is written here}}
    memref.store %0, %c[%k] : memref<30xf32>
    baechi.yield
  }
  return
}

// -----

// w[x] = f(w[x]), where x is of the data.
// CHECK-LABEL: func.func @regress
// CHECK: scheme = serial
func.func @regress(%index: memref<100xi32>, %weights: memref<50xf32>) {
  // expected-remark @+1 {{serial, no more: arg1[?] is read, arg1[?] is written, at positions that depend on data; buffer 'arg1' to let its writes be seen late}}
  baechi.foreach unordered (%i in 0 to 100)
      arrays(%x = %index : memref<100xi32>, %w = %weights : memref<50xf32>) {
    %0 = memref.load %x[%i] : memref<100xi32>
    %at = arith.index_cast %0 : i32 to index
    // expected-note @+1 {{arg1[?] is read here}}
    %1 = memref.load %w[%at] : memref<50xf32>
    %2 = math.exp %1 : f32
    // expected-note @+1 {{arg1[?] is written here}}
    memref.store %2, %w[%at] : memref<50xf32>
    baechi.yield
  }
  return
}

// -----

// w[x] += f: its sums have an order, or are buffered.
func.func @gradients(%index: memref<100xi32>, %weights: memref<50xf32>) {
  // expected-remark @+1 {{serial, no more: arg1[?] is added to, by several entries at once, at positions that depend on data; allow its sums another order (reassociate), or buffer 'arg1'}}
  baechi.foreach unordered (%i in 0 to 100)
      arrays(%x = %index : memref<100xi32>, %w = %weights : memref<50xf32>) {
    %0 = memref.load %x[%i] : memref<100xi32>
    %at = arith.index_cast %0 : i32 to index
    %3 = memref.load %w[%at] : memref<50xf32>
    %f = arith.constant 2.0 : f32
    %4 = arith.addf %3, %f : f32
    // expected-note @+1 {{is added to here}}
    memref.store %4, %w[%at] : memref<50xf32>
    baechi.yield
  }
  return
}

// -----

// CHECK-LABEL: func.func @buffered_gradients
// CHECK: scheme = independent>
func.func @buffered_gradients(%index: memref<100xi32>, %weights: memref<50xf32>) {
  // expected-remark @+1 {{independent}}
  baechi.foreach unordered (%i in 0 to 100)
      arrays(%x = %index : memref<100xi32>, %w = %weights buffered : memref<50xf32>) {
    %0 = memref.load %x[%i] : memref<100xi32>
    %at = arith.index_cast %0 : i32 to index
    %1 = memref.load %w[%at] : memref<50xf32>
    %2 = math.exp %1 : f32
    memref.store %2, %w[%at] : memref<50xf32>
    baechi.yield
  }
  return
}

// -----

// Writes only, at positions of the data: which is last depends on the order.
// CHECK-LABEL: func.func @scatter
// CHECK: scheme = serial
func.func @scatter(%index: memref<100xindex>, %y: memref<50xf32>) {
  // expected-remark @+1 {{serial, no more: arg1[?] is written, by several entries at once, at positions that depend on data; buffer 'arg1'}}
  baechi.foreach unordered (%i in 0 to 100)
      arrays(%x = %index : memref<100xindex>, %b = %y : memref<50xf32>) {
    %at = memref.load %x[%i] : memref<100xindex>
    %n = arith.index_cast %i : index to i32
    %0 = arith.sitofp %n : i32 to f32
    // expected-note @+1 {{is written here}}
    memref.store %0, %b[%at] : memref<50xf32>
    baechi.yield
  }
  return
}

// -----

// Indices do not tell what is touched where places of a layout meet.
// CHECK-LABEL: func.func @places_that_meet
// CHECK: scheme = serial
func.func @places_that_meet(%a: memref<10x10xf32, strided<[1, 1]>>) {
  // expected-remark @+1 {{serial, no more: arg0[?, ?] is read, arg0[?, ?] is written, at positions that depend on data}}
  baechi.foreach unordered (%i in 0 to 9)
      arrays(%x = %a : memref<10x10xf32, strided<[1, 1]>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-note @+2 {{is read here}}
    // expected-note @+1 {{is written here}}
    %0 = memref.load %x[%i, %c0] : memref<10x10xf32, strided<[1, 1]>>
    memref.store %0, %x[%i, %c1] : memref<10x10xf32, strided<[1, 1]>>
    baechi.yield
  }
  return
}

// -----

// Rows that are further apart than they are long do not meet.
// CHECK-LABEL: func.func @rows_apart
// CHECK: scheme = independent
func.func @rows_apart(%a: memref<10x10xf32, strided<[16, 1], offset: 3>>) {
  // expected-remark @+1 {{independent}}
  baechi.foreach unordered (%i in 0 to 9)
      arrays(%x = %a : memref<10x10xf32, strided<[16, 1], offset: 3>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = memref.load %x[%i, %c0] : memref<10x10xf32, strided<[16, 1], offset: 3>>
    memref.store %0, %x[%i, %c1] : memref<10x10xf32, strided<[16, 1], offset: 3>>
    baechi.yield
  }
  return
}
