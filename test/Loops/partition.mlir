// Steps of blocks over tensors.
// RUN: baechi-opt %s --baechi-partition-loops=workers=2 --split-input-file --verify-diagnostics | FileCheck %s
// RUN: baechi-opt %s --baechi-partition-loops=workers=2 --split-input-file --mlir-print-debuginfo 2>/dev/null | FileCheck %s --check-prefix=NAMES

// Strips of what is read beside a block's part are of the piece from the
// beginning; nobody writes it.
// CHECK-LABEL: func.func @halo
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32> {baechi.name = "x"}, %[[Y:.*]]: tensor<8x4xf32> {baechi.name = "y", baechi.updated_by = 0 : i64})
// CHECK-SAME: -> (tensor<8x4xf32> {baechi.name = "y"}) attributes {baechi.implementation = "exact"}
// CHECK: tensor.extract_slice %[[X]][0, 0] [6, 4]
// CHECK: %[[REST:.*]] = tensor.extract_slice %[[X]][3, 0] [5, 4]
// CHECK: tensor.insert_slice %[[REST]] into %{{.*}}[0, 0] [5, 4] {{.*}} into tensor<6x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<4x4xf32>)
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<4x4xf32>)
// NAMES: #[[BLOCK:.*]] = loc("block/0/1"
func.func @halo(%x: memref<8x4xf32> {baechi.name = "x"}, %y: memref<8x4xf32> {baechi.name = "y"}) {
  // expected-remark @+1 {{independent: 2 blocks of 2 workers; i at 1, 4, 8}}
  baechi.foreach ordered (%i in 1 to 8, %j in 0 to 4) arrays(%a = %x : memref<8x4xf32>, %b = %y : memref<8x4xf32>) {
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %0 = memref.load %a[%before, %j] : memref<8x4xf32>
    %1 = memref.load %a[%i, %j] : memref<8x4xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %b[%i, %j] : memref<8x4xf32>
    baechi.yield
  }
  return
}

// -----

// What a neighbour has changed is a tensor of its own.
// CHECK-LABEL: func.func @wave
// CHECK: %[[FIRST:.*]] = scf.for {{.*}} -> (tensor<5x8xf32>)
// CHECK: %[[SECOND:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]]) -> (tensor<5x8xf32>)
// CHECK: %[[ROW:.*]] = tensor.extract_slice %[[FIRST]][4, 0] [1, 8]
// CHECK: %[[STRIP:.*]] = scf.for
// CHECK: %[[NEW:.*]] = tensor.insert_slice %[[STRIP]] into %{{.*}}[0, 0] [1, 8] {{.*}} into tensor<5x8xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[NEW]]) -> (tensor<5x8xf32>)
func.func @wave(%x: memref<8x8xf32>) {
  // expected-remark @+1 {{wavefront over i and j: 4 blocks of 2 workers; i at 1, 4, 8; j at 1, 4, 8}}
  baechi.foreach ordered (%i in 1 to 8, %j in 1 to 8) arrays(%a = %x : memref<8x8xf32>) {
    %c1 = arith.constant 1 : index
    %above = arith.subi %i, %c1 : index
    %before = arith.subi %j, %c1 : index
    %0 = memref.load %a[%above, %j] : memref<8x8xf32>
    %1 = memref.load %a[%i, %before] : memref<8x8xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %a[%i, %j] : memref<8x8xf32>
    baechi.yield
  }
  return
}

// -----

// Two keys rotate; numbers are tensors, and what the body allocates is its own.
// CHECK-LABEL: func.func @rotate
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<i64>) -> (tensor<i64>, tensor<4x2xf32>, tensor<4xf32>)
// CHECK: tensor.extract %[[N]][]
// CHECK-COUNT-4: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<2x2xf32>, tensor<2xf32>)
// NAMES: loc("block/0/0-1"
func.func @rotate(%u: memref<4x2xf32>, %v: memref<4xf32>, %n: index) -> index {
  // expected-remark @+1 {{2D over i and j: 4 blocks of 2 workers; i at 0, 2, 4; j at 0, 2, 4}}
  baechi.foreach unordered (%i in 0 to 4, %j in 0 to 4) arrays(%a = %u : memref<4x2xf32>, %b = %v : memref<4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %row = memref.alloca() : memref<2xf32>
    %line = memref.subview %a[%i, 0] [1, 2] [1, 1] : memref<4x2xf32> to memref<2xf32, strided<[1], offset: ?>>
    memref.copy %line, %row : memref<2xf32, strided<[1], offset: ?>> to memref<2xf32>
    %0 = memref.load %row[%c0] : memref<2xf32>
    %1 = memref.load %b[%j] : memref<4xf32>
    %2 = arith.subf %1, %0 : f32
    memref.store %2, %b[%j] : memref<4xf32>
    memref.store %1, %line[%c1] : memref<2xf32, strided<[1], offset: ?>>
    baechi.yield
  }
  return %n : index
}

// -----

// Each block sums up for itself.
// CHECK-LABEL: func.func @sum
// CHECK: %[[LEAST:.*]] = arith.constant -2147483648 : i32
// CHECK: %[[OWN:.*]] = linalg.fill ins(%[[LEAST]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[OWN]])
// CHECK: linalg.generic
// CHECK: arith.maxsi
func.func @sum(%x: memref<8xi32>, %s: memref<i32>) {
  // expected-remark @+1 {{independent with sums of 'arg1': 2 blocks of 2 workers; i at 0, 4, 8}}
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<8xi32>, %b = %s : memref<i32>) {
    %0 = memref.load %a[%i] : memref<8xi32>
    %1 = memref.load %b[] : memref<i32>
    %2 = arith.maxsi %1, %0 : i32
    memref.store %2, %b[] : memref<i32>
    baechi.yield
  }
  return
}

// -----

// Copies of what is buffered change, and the changes are added up.
// CHECK-LABEL: func.func @buffered
// CHECK: %[[ONE:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %arg1)
// CHECK: %[[TWO:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %arg1)
// CHECK: linalg.generic {{.*}} ins(%[[ONE]], %arg1
// CHECK: arith.subf
// CHECK: arith.addf
func.func @buffered(%x: memref<8xf32>, %s: memref<1xf32>) {
  // expected-remark @+1 {{independent: 2 blocks of 2 workers; i at 0, 4, 8}}
  baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>, %b = %s buffered : memref<1xf32>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %a[%i] : memref<8xf32>
    %1 = memref.load %b[%c0] : memref<1xf32>
    %2 = arith.mulf %1, %0 : f32
    memref.store %2, %b[%c0] : memref<1xf32>
    baechi.yield
  }
  return
}

// -----

// Along diagonals, of a set; a loop around entries is bounded by the sum.
// CHECK-LABEL: func.func @diagonal
// CHECK: scf.for %[[LINE:.*]] = %{{.*}} iter_args(%{{.*}}) -> (tensor<11x6xf32>)
// CHECK: tensor.insert_slice {{.*}} into tensor<11x6xf32>
// CHECK: scf.for
// CHECK: %[[FROM:.*]] = arith.maxsi
// CHECK: %[[TO:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]]
// CHECK: scf.if
// CHECK: scf.yield
// CHECK: else
func.func @diagonal(%x: memref<6x6xf32>) {
  // expected-remark @+1 {{1D over i - j: 2 blocks of 2 workers; i - j at -4, 0, 5}}
  baechi.foreach ordered (%i in 1 to 6, %j in 1 to 6) where affine_set<(i, j) : (i + j - 3 >= 0)> arrays(%a = %x : memref<6x6xf32>) {
    %c1 = arith.constant 1 : index
    %above = arith.subi %i, %c1 : index
    %before = arith.subi %j, %c1 : index
    %0 = memref.load %a[%above, %before] : memref<6x6xf32>
    memref.store %0, %a[%i, %j] : memref<6x6xf32>
    baechi.yield
  }
  return
}

// -----

// Entries are sorted by their blocks; each worker has new values of its own,
// which go back to their entries.
// CHECK-LABEL: func.func @entries
// CHECK-SAME: %[[K:.*]]: tensor<9xi32>, %[[V:.*]]: tensor<9xf32>
// CHECK: %[[COUNTS:.*]] = scf.for
// CHECK: %[[STARTS:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[COUNTS]])
// CHECK: %[[ORDER:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[STARTS]])
// CHECK: %[[KEYS:.*]] = scf.for
// CHECK: tensor.extract %[[ORDER]]#0
// CHECK: %[[VALUES:.*]] = scf.for
// CHECK: %[[FROM:.*]] = tensor.extract %[[STARTS]]
// CHECK: scf.for {{.*}} -> (tensor<9xf32>, tensor<3xf32>)
// CHECK: tensor.extract %[[KEYS]]
// CHECK: tensor.extract %[[VALUES]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[V]])
// NAMES: loc("block/0/1"
func.func @entries(%k: memref<9xi32>, %v: memref<9xf32>, %x: memref<6xf32>) {
  // expected-remark @+1 {{independent: 2 blocks of 2 workers; i at 0, 3, 6}}
  baechi.foreach ordered (%i = %k : memref<9xi32> in 0 to 6) values(%r = %v : memref<9xf32>) arrays(%a = %x : memref<6xf32>) {
    %0 = memref.load %a[%i] : memref<6xf32>
    %1 = arith.mulf %0, %r : f32
    memref.store %1, %a[%i] : memref<6xf32>
    baechi.yield %0 : f32
  }
  return
}

// -----

// A stencil over time in place: which rows a block touches moves with time, and
// it takes them from whoever had them last.
// CHECK-LABEL: func.func @stencil
// CHECK: %[[ROWS:.*]] = tensor.extract_slice %arg0[0] [13] [1]
// CHECK: %[[PIECE:.*]] = tensor.insert_slice %[[ROWS]] into %{{.*}}[0] [13] [1] {{.*}} into tensor<14xf32>
// CHECK: %[[FIRST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[PIECE]]) -> (tensor<14xf32>)
// CHECK: %[[OWN:.*]] = tensor.extract_slice %[[FIRST]][9] [3] [1]
// CHECK: %[[STRIP:.*]] = scf.for
// CHECK: tensor.extract_slice %[[OWN]]
// CHECK: tensor.insert_slice %[[STRIP]] into %{{.*}}[0] [3] [1] {{.*}} into tensor<14xf32>
// NAMES: loc("strip/arg0/
func.func @stencil(%x: memref<20xf32>) {
  // expected-remark @+1 {{4 blocks of 2 workers; i at 0, 3, 6; i + j at 1,}}
  baechi.foreach ordered (%i in 0 to 6, %j in 1 to 19) arrays(%a = %x : memref<20xf32>) {
    %c1 = arith.constant 1 : index
    %before = arith.subi %j, %c1 : index
    %after = arith.addi %j, %c1 : index
    %0 = memref.load %a[%before] : memref<20xf32>
    %1 = memref.load %a[%after] : memref<20xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %a[%j] : memref<20xf32>
    baechi.yield
  }
  return
}

// -----

// Against the key.
// CHECK-LABEL: func.func @falling
// CHECK: scf.for
func.func @falling(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-remark @+1 {{independent: 2 blocks of 2 workers; i at 0, 4, 8}}
  baechi.foreach ordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>, %b = %y : memref<8xf32>) {
    %c7 = arith.constant 7 : index
    %back = arith.subi %c7, %i : index
    %0 = memref.load %a[%i] : memref<8xf32>
    memref.store %0, %b[%back] : memref<8xf32>
    baechi.yield
  }
  return
}

// -----

// No position is outside: what bounds keys together counts, what is only done
// where it is inside, and of counters the last value that a step reaches.
// CHECK-LABEL: func.func @inside
// CHECK: return
func.func @inside(%x: memref<8xf32>, %y: memref<8x8xf32>) {
  // expected-remark @+1 {{2 blocks of 2 workers}}
  baechi.foreach unordered (%i in 0 to 8, %j in 0 to 8) where affine_set<(d0, d1) : (d0 - d1 - 1 >= 0)> arrays(%a = %x : memref<8xf32>, %b = %y : memref<8x8xf32>) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %next = arith.addi %j, %c1 : index
    %0 = memref.load %a[%next] : memref<8xf32>
    %after = arith.addi %i, %c1 : index
    %has = arith.cmpi slt, %after, %c8 : index
    %1 = scf.if %has -> f32 {
      %2 = memref.load %a[%after] : memref<8xf32>
      scf.yield %2 : f32
    } else {
      scf.yield %zero : f32
    }
    %sum = scf.for %k = %c0 to %c8 step %c2 iter_args(%s = %1) -> f32 {
      %more = arith.addi %k, %c1 : index
      %3 = memref.load %a[%more] : memref<8xf32>
      %4 = arith.addf %s, %3 : f32
      scf.yield %4 : f32
    }
    %5 = arith.addf %sum, %0 : f32
    memref.store %5, %b[%i, %j] : memref<8x8xf32>
    baechi.yield
  }
  return
}
