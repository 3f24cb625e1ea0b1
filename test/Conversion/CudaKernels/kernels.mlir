// RUN: baechi-opt %s --baechi-lower-cuda-kernels=stage=launches | FileCheck %s
// RUN: baechi-opt %s --baechi-lower-cuda-kernels=stage=launches | FileCheck %s --check-prefix=NONE
// RUN: baechi-opt %s --baechi-cuda-scratch | FileCheck %s --check-prefix=SCRATCH

// One kernel of each kind. (unittests/Conversion/CudaKernelsTest.cpp compares
// what they compute with the host's kernels.)

// No atomic operation, and nothing is allocated.
// NONE-NOT: atomic
// NONE-NOT: memref.alloc

#id1 = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
#none = affine_map<(d0, d1) -> ()>

// What is put together is one launch, of blocks for each part: 6 rows of 1000,
// 500 and 1500 elements.
// SCRATCH-LABEL: func.func private @columns(
// SCRATCH-SAME: baechi.cuda_blocks = 72 : i64
// CHECK-LABEL: func.func private @columns(
// CHECK-COUNT-1: gpu.launch
// CHECK: arith.cmpi ult
// CHECK: memref.store
// CHECK: arith.cmpi ult
// CHECK: memref.store
// CHECK: arith.cmpi ult
// CHECK: memref.store
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @columns(%a: tensor<6x1000xf32>, %b: tensor<6x500xf32>, %c: tensor<6x1500xf32>) -> tensor<6x3000xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<6x3000xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [6, 1000] [1, 1] : tensor<6x1000xf32> into tensor<6x3000xf32>
  %1 = tensor.insert_slice %b into %0[0, 1000] [6, 500] [1, 1] : tensor<6x500xf32> into tensor<6x3000xf32>
  %2 = tensor.insert_slice %c into %1[0, 1500] [6, 1500] [1, 1] : tensor<6x1500xf32> into tensor<6x3000xf32>
  return %2 : tensor<6x3000xf32>
}

// What lies upon each other is written in its order.
// CHECK-LABEL: func.func private @over(
// CHECK-COUNT-2: gpu.launch
// CHECK: return
func.func private @over(%a: tensor<6x20xf32>, %b: tensor<6x20xf32>) -> tensor<6x30xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<6x30xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [6, 20] [1, 1] : tensor<6x20xf32> into tensor<6x30xf32>
  %1 = tensor.insert_slice %b into %0[0, 10] [6, 20] [1, 1] : tensor<6x20xf32> into tensor<6x30xf32>
  return %1 : tensor<6x30xf32>
}

// One thread an element.
// CHECK-LABEL: func.func private @bias_tanh(
// CHECK-SAME: baechi.kernel_scratch = 0 : i64
// CHECK: gpu.launch
// CHECK: math.tanh
// CHECK: memref.store
func.func private @bias_tanh(%x: tensor<5x37xf32>, %b: tensor<37xf32>) -> tensor<5x37xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<5x37xf32>
  %r = linalg.generic {indexing_maps = [#id2, #col, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<5x37xf32>, tensor<37xf32>) outs(%e : tensor<5x37xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<5x37xf32>
  return %r : tensor<5x37xf32>
}

// CHECK-LABEL: func.func private @update(
// CHECK: gpu.launch
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @update(%p: tensor<1000xf32>, %g: tensor<1000xf32>) -> (tensor<1000xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<1000xf32>
  %r = linalg.sub ins(%p, %g : tensor<1000xf32>, tensor<1000xf32>) outs(%e : tensor<1000xf32>) -> tensor<1000xf32>
  return %r : tensor<1000xf32>
}

// Four neighbours a thread: all loads, then all stores.
// CHECK-LABEL: func.func private @large(
// CHECK: gpu.launch
// CHECK-COUNT-4: memref.load
// CHECK-COUNT-4: memref.store
// CHECK-NOT: memref.store
// CHECK: return
func.func private @large(%x: tensor<1024x512xf32>) -> tensor<1024x512xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<1024x512xf32>
  %r = linalg.exp ins(%x : tensor<1024x512xf32>) outs(%e : tensor<1024x512xf32>) -> tensor<1024x512xf32>
  return %r : tensor<1024x512xf32>
}

// Tiles: both sides along rows, four tiles for 40 x 33.
// CHECK-LABEL: func.func private @transpose(
// CHECK: %[[TILES:.*]] = arith.constant 4 : index
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[TILES]], {{.*}} workgroup(%{{.*}} : memref<32x33xf32, #gpu.address_space<workgroup>>)
// CHECK: memref.load %{{.*}} : memref<40x33xf32>
// CHECK: memref.store %{{.*}} : memref<32x33xf32>
// CHECK: gpu.barrier
// CHECK: memref.load %{{.*}} : memref<32x33xf32>
// CHECK: memref.store %{{.*}} : memref<33x40xf32>
func.func private @transpose(%x: tensor<40x33xf32>) -> tensor<33x40xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<33x40xf32>
  %r = linalg.transpose ins(%x : tensor<40x33xf32>) outs(%e : tensor<33x40xf32>) permutation = [1, 0]
  return %r : tensor<33x40xf32>
}

// One operand across its rows, the other one along, in several tables.
// CHECK-LABEL: func.func private @transposed_sum(
// CHECK: memref.store %{{.*}} : memref<32x33xi32>
// CHECK: gpu.barrier
// CHECK: arith.addf
func.func private @transposed_sum(%x: tensor<3x40x5x33xi32>, %y: tensor<33x3x5x40xf32>) -> tensor<33x3x5x40xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<33x3x5x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (b, d, c, a)>, affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<3x40x5x33xi32>, tensor<33x3x5x40xf32>) outs(%e : tensor<33x3x5x40xf32>) {
  ^bb0(%a: i32, %b: f32, %out: f32):
    %f = arith.sitofp %a : i32 to f32
    %s = arith.addf %f, %b : f32
    linalg.yield %s : f32
  } -> tensor<33x3x5x40xf32>
  return %r : tensor<33x3x5x40xf32>
}

// A block a row; a tree, whose steps between warps go through shared memory and
// those within a warp from register to register. The fill is no launch of its
// own.
// CHECK-LABEL: func.func private @row_sums(
// CHECK: %[[ROWS:.*]] = arith.constant 300 : index
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[ROWS]],{{.*}} workgroup(%{{.*}} : memref<256xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-3: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-5: nvvm.shfl.sync down
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}} : memref<300xf32>
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @row_sums(%x: tensor<300x1000xf32>) -> tensor<300xf32> attributes {baechi.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<300xf32>) -> tensor<300xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<300x1000xf32>) outs(%f : tensor<300xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<300xf32>
  return %r : tensor<300xf32>
}

// Few long sums: parts by many blocks into the scratch, then their sum.
// SCRATCH-LABEL: func.func private @column_sums(
// SCRATCH-SAME: baechi.kernel_scratch = {{[1-9][0-9]*}} : i64
// CHECK-LABEL: func.func private @column_sums(
// CHECK: memref.view %{{.*}} : memref<{{.*}}xi8> to memref<[[PARTS:[0-9]+]]x64xf32>
// CHECK: gpu.launch
// CHECK: memref.store %{{.*}} : memref<[[PARTS]]x64xf32>
// CHECK: gpu.launch
// CHECK: memref.load %{{.*}} : memref<[[PARTS]]x64xf32>
// CHECK: memref.store %{{.*}} : memref<64xf32>
func.func private @column_sums(%x: tensor<4096x64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [#t, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4096x64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// CHECK-LABEL: func.func private @maximum(
// CHECK-COUNT-2: gpu.launch
// CHECK: memref.store %{{.*}} : memref<f32>
func.func private @maximum(%x: tensor<999x1001xf32>) -> tensor<f32> attributes {baechi.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#id2, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<999x1001xf32>) outs(%f : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// The position of a maximum: parts in order, then a tree of neighbours, all of
// them in a warp. (The element of 50 is one of 16 lanes' four.)
// CHECK-LABEL: func.func private @argmax(
// CHECK: gpu.launch
// CHECK-NOT: workgroup
// CHECK: scf.for
// CHECK: arith.cmpf ogt
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-8: nvvm.shfl.sync down
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}} : memref<7xi32>
func.func private @argmax(%x: tensor<7x50xf32>) -> (tensor<7xf32>, tensor<7xi32>) attributes {baechi.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %i0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<7xf32>
  %ei = tensor.empty() : tensor<7xi32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %fi = linalg.fill ins(%i0 : i32) outs(%ei : tensor<7xi32>) -> tensor<7xi32>
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<7x50xf32>) outs(%f, %fi : tensor<7xf32>, tensor<7xi32>) {
  ^bb0(%in: f32, %out: f32, %at: i32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %more = arith.cmpf ogt, %in, %out : f32
    %v = arith.select %more, %in, %out : f32
    %w = arith.select %more, %k, %at : i32
    linalg.yield %v, %w : f32, i32
  } -> (tensor<7xf32>, tensor<7xi32>)
  return %r#0, %r#1 : tensor<7xf32>, tensor<7xi32>
}

// As JAX writes it: the first of the largest, or of those that are no numbers.
// CHECK-LABEL: func.func private @argmax_of_ties(
// CHECK: gpu.launch {{.*}} workgroup(
// CHECK: gpu.barrier
// CHECK: return
func.func private @argmax_of_ties(%x: tensor<7x301xf32>) -> (tensor<7xf32>, tensor<7xi32>) attributes {baechi.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %i0 = arith.constant 0 : i32
  %many = arith.constant 16.0 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %neg = arith.constant 11.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %ei = tensor.empty() : tensor<7xi32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %fi = linalg.fill ins(%i0 : i32) outs(%ei : tensor<7xi32>) -> tensor<7xi32>
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<7x301xf32>) outs(%f, %fi : tensor<7xf32>, tensor<7xi32>) {
  ^bb0(%in: f32, %out: f32, %at: i32):
    %s = arith.mulf %in, %many : f32
    %v = math.floor %s : f32
    %bad = arith.cmpf oeq, %v, %neg : f32
    %t = arith.select %bad, %nan, %v : f32
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %more = arith.cmpf ogt, %out, %t : f32
    %no = arith.cmpf une, %out, %out : f32
    %keep = arith.ori %more, %no : i1
    %equal = arith.cmpf oeq, %out, %t : f32
    %before = arith.cmpi slt, %at, %k : i32
    %tie = arith.andi %equal, %before : i1
    %keepi = arith.ori %keep, %tie : i1
    %w = arith.select %keep, %out, %t : f32
    %wi = arith.select %keepi, %at, %k : i32
    linalg.yield %w, %wi : f32, i32
  } -> (tensor<7xf32>, tensor<7xi32>)
  return %r#0, %r#1 : tensor<7xf32>, tensor<7xi32>
}

// What is no number is left out.
// CHECK-LABEL: func.func private @argmin_of_numbers(
// CHECK: gpu.launch {{.*}} workgroup(
// CHECK: gpu.barrier
// CHECK: return
func.func private @argmin_of_numbers(%x: tensor<7x301xf32>) -> (tensor<7xf32>, tensor<7xi32>) attributes {baechi.kernel} {
  %z = arith.constant 0x7F800000 : f32
  %i0 = arith.constant 0 : i32
  %many = arith.constant 16.0 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %neg = arith.constant -12.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %ei = tensor.empty() : tensor<7xi32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %fi = linalg.fill ins(%i0 : i32) outs(%ei : tensor<7xi32>) -> tensor<7xi32>
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<7x301xf32>) outs(%f, %fi : tensor<7xf32>, tensor<7xi32>) {
  ^bb0(%in: f32, %out: f32, %at: i32):
    %s = arith.mulf %in, %many : f32
    %v = math.floor %s : f32
    %bad = arith.cmpf oeq, %v, %neg : f32
    %t = arith.select %bad, %nan, %v : f32
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %less = arith.cmpf olt, %t, %out : f32
    %w = arith.select %less, %t, %out : f32
    %wi = arith.select %less, %k, %at : i32
    linalg.yield %w, %wi : f32, i32
  } -> (tensor<7xf32>, tensor<7xi32>)
  return %r#0, %r#1 : tensor<7xf32>, tensor<7xi32>
}

// Rows and columns, in the loops' order, not the memory's.
// CHECK-LABEL: func.func private @argmax_of_both(
// CHECK: gpu.launch {{.*}} workgroup(
// CHECK: gpu.barrier
// CHECK: return
func.func private @argmax_of_both(%x: tensor<300x7xf32>) -> (tensor<f32>, tensor<i32>) attributes {baechi.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %i0 = arith.constant 0 : i32
  %many = arith.constant 16.0 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %neg = arith.constant -12.0 : f32
  %e = tensor.empty() : tensor<f32>
  %ei = tensor.empty() : tensor<i32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %fi = linalg.fill ins(%i0 : i32) outs(%ei : tensor<i32>) -> tensor<i32>
  %r:2 = linalg.generic {indexing_maps = [#t, #none, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<300x7xf32>) outs(%f, %fi : tensor<f32>, tensor<i32>) {
  ^bb0(%in: f32, %out: f32, %at: i32):
    %s = arith.mulf %in, %many : f32
    %v = math.floor %s : f32
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.constant 7 : index
    %row = arith.muli %j, %n : index
    %number = arith.addi %row, %i : index
    %k = arith.index_cast %number : index to i32
    %more = arith.cmpf ogt, %v, %out : f32
    %w = arith.select %more, %v, %out : f32
    %wi = arith.select %more, %k, %at : i32
    linalg.yield %w, %wi : f32, i32
  } -> (tensor<f32>, tensor<i32>)
  return %r#0, %r#1 : tensor<f32>, tensor<i32>
}

// Which differs from the one before: not of parts.
// CHECK-LABEL: func.func private @last_change(
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @last_change(%x: tensor<7x301xf32>) -> (tensor<7xf32>, tensor<7xi32>) attributes {baechi.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %i0 = arith.constant 0 : i32
  %many = arith.constant 16.0 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %neg = arith.constant -12.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %ei = tensor.empty() : tensor<7xi32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %fi = linalg.fill ins(%i0 : i32) outs(%ei : tensor<7xi32>) -> tensor<7xi32>
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<7x301xf32>) outs(%f, %fi : tensor<7xf32>, tensor<7xi32>) {
  ^bb0(%in: f32, %out: f32, %at: i32):
    %s = arith.mulf %in, %many : f32
    %v = math.floor %s : f32
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %other = arith.cmpf une, %v, %out : f32
    %w = arith.select %other, %v, %out : f32
    %wi = arith.select %other, %k, %at : i32
    linalg.yield %w, %wi : f32, i32
  } -> (tensor<7xf32>, tensor<7xi32>)
  return %r#0, %r#1 : tensor<7xf32>, tensor<7xi32>
}

// A block a row, one launch; the row stays in shared memory.
// CHECK-LABEL: func.func private @softmax(
// CHECK: %[[ROWS:.*]] = arith.constant 8 : index
// CHECK: gpu.launch blocks({{.*}} in (%{{.*}} = %{{.*}},{{.*}} workgroup({{.*}}memref<1x100xf32, #gpu.address_space<workgroup>>
// CHECK: arith.maximumf
// CHECK: gpu.barrier
// CHECK: math.exp
// CHECK: gpu.barrier
// CHECK: arith.divf
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @softmax(%x: tensor<8x100xf32>) -> tensor<8x100xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x100xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%out = %e) -> tensor<8x100xf32> {
    %row = tensor.extract_slice %x[%i, 0] [1, 100] [1, 1] : tensor<8x100xf32> to tensor<1x100xf32>
    %me = tensor.empty() : tensor<1xf32>
    %mf = linalg.fill ins(%ninf : f32) outs(%me : tensor<1xf32>) -> tensor<1xf32>
    %m = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
        ins(%row : tensor<1x100xf32>) outs(%mf : tensor<1xf32>) {
    ^bb0(%v: f32, %a: f32):
      %0 = arith.maximumf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1xf32>
    %ee = tensor.empty() : tensor<1x100xf32>
    %ex = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
        ins(%row, %m : tensor<1x100xf32>, tensor<1xf32>) outs(%ee : tensor<1x100xf32>) {
    ^bb0(%v: f32, %a: f32, %o: f32):
      %0 = arith.subf %v, %a : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    } -> tensor<1x100xf32>
    %sf = linalg.fill ins(%zero : f32) outs(%me : tensor<1xf32>) -> tensor<1xf32>
    %sum = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
        ins(%ex : tensor<1x100xf32>) outs(%sf : tensor<1xf32>) {
    ^bb0(%v: f32, %a: f32):
      %0 = arith.addf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1xf32>
    %slot = tensor.extract_slice %out[%i, 0] [1, 100] [1, 1] : tensor<8x100xf32> to tensor<1x100xf32>
    %d = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
        ins(%ex, %sum : tensor<1x100xf32>, tensor<1xf32>) outs(%slot : tensor<1x100xf32>) {
    ^bb0(%v: f32, %a: f32, %o: f32):
      %0 = arith.divf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1x100xf32>
    %ins = tensor.insert_slice %d into %out[%i, 0] [1, 100] [1, 1] : tensor<1x100xf32> into tensor<8x100xf32>
    scf.yield %ins : tensor<8x100xf32>
  }
  return %r : tensor<8x100xf32>
}

// Short rows are a warp's: four in a block, the last block has one.
// CHECK-LABEL: func.func private @short_softmax(
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant 151 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 128 : index
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]], {{.*}}) threads({{.*}}) in (%{{.*}} = %[[THREADS]], {{.*}} workgroup({{.*}}xi8, #gpu.address_space<workgroup>>
// CHECK: arith.constant 601 : index
// CHECK: arith.cmpi ult
// CHECK: arith.maximumf
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: gpu.barrier
// CHECK: math.exp
// CHECK-NOT: gpu.barrier
// CHECK: arith.divf
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @short_softmax(%x: tensor<601x20xf32>) -> tensor<601x20xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 601 : index
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<601x20xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%out = %e) -> tensor<601x20xf32> {
    %row = tensor.extract_slice %x[%i, 0] [1, 20] [1, 1] : tensor<601x20xf32> to tensor<1x20xf32>
    %me = tensor.empty() : tensor<1xf32>
    %mf = linalg.fill ins(%ninf : f32) outs(%me : tensor<1xf32>) -> tensor<1xf32>
    %m = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
        ins(%row : tensor<1x20xf32>) outs(%mf : tensor<1xf32>) {
    ^bb0(%v: f32, %a: f32):
      %0 = arith.maximumf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1xf32>
    %ee = tensor.empty() : tensor<1x20xf32>
    %ex = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
        ins(%row, %m : tensor<1x20xf32>, tensor<1xf32>) outs(%ee : tensor<1x20xf32>) {
    ^bb0(%v: f32, %a: f32, %o: f32):
      %0 = arith.subf %v, %a : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    } -> tensor<1x20xf32>
    %sf = linalg.fill ins(%zero : f32) outs(%me : tensor<1xf32>) -> tensor<1xf32>
    %sum = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
        ins(%ex : tensor<1x20xf32>) outs(%sf : tensor<1xf32>) {
    ^bb0(%v: f32, %a: f32):
      %0 = arith.addf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1xf32>
    %slot = tensor.extract_slice %out[%i, 0] [1, 20] [1, 1] : tensor<601x20xf32> to tensor<1x20xf32>
    %d = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
        ins(%ex, %sum : tensor<1x20xf32>, tensor<1xf32>) outs(%slot : tensor<1x20xf32>) {
    ^bb0(%v: f32, %a: f32, %o: f32):
      %0 = arith.divf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1x20xf32>
    %ins = tensor.insert_slice %d into %out[%i, 0] [1, 20] [1, 1] : tensor<1x20xf32> into tensor<601x20xf32>
    scf.yield %ins : tensor<601x20xf32>
  }
  return %r : tensor<601x20xf32>
}

// The position of a maximum within a row, by the threads of a warp.
// CHECK-LABEL: func.func private @row_argmax(
// CHECK: gpu.launch
// CHECK-NOT: workgroup
// CHECK: arith.cmpf ogt
// CHECK: nvvm.shfl.sync down
// CHECK: arith.cmpf ogt
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @row_argmax(%x: tensor<601x30xf32>) -> (tensor<601xf32>, tensor<601xi32>) attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 601 : index
  %ninf = arith.constant 0xFF800000 : f32
  %i0 = arith.constant 0 : i32
  %many = arith.constant 16.0 : f32
  %e = tensor.empty() : tensor<601xf32>
  %ei = tensor.empty() : tensor<601xi32>
  %r:2 = scf.for %i = %c0 to %rows step %c1 iter_args(%out = %e, %outi = %ei) -> (tensor<601xf32>, tensor<601xi32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 30] [1, 1] : tensor<601x30xf32> to tensor<1x30xf32>
    %slot = tensor.extract_slice %out[%i] [1] [1] : tensor<601xf32> to tensor<1xf32>
    %sloti = tensor.extract_slice %outi[%i] [1] [1] : tensor<601xi32> to tensor<1xi32>
    %f = linalg.fill ins(%ninf : f32) outs(%slot : tensor<1xf32>) -> tensor<1xf32>
    %fi = linalg.fill ins(%i0 : i32) outs(%sloti : tensor<1xi32>) -> tensor<1xi32>
    %m:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]}
        ins(%row : tensor<1x30xf32>) outs(%f, %fi : tensor<1xf32>, tensor<1xi32>) {
    ^bb0(%in: f32, %held: f32, %at: i32):
      %s = arith.mulf %in, %many : f32
      %v = math.floor %s : f32
      %j = linalg.index 1 : index
      %k = arith.index_cast %j : index to i32
      %more = arith.cmpf ogt, %v, %held : f32
      %w = arith.select %more, %v, %held : f32
      %wi = arith.select %more, %k, %at : i32
      linalg.yield %w, %wi : f32, i32
    } -> (tensor<1xf32>, tensor<1xi32>)
    %ins = tensor.insert_slice %m#0 into %out[%i] [1] [1] : tensor<1xf32> into tensor<601xf32>
    %insi = tensor.insert_slice %m#1 into %outi[%i] [1] [1] : tensor<1xi32> into tensor<601xi32>
    scf.yield %ins, %insi : tensor<601xf32>, tensor<601xi32>
  }
  return %r#0, %r#1 : tensor<601xf32>, tensor<601xi32>
}

// CHECK-LABEL: func.func private @gather(
// CHECK: gpu.launch
// CHECK: %[[ROW:.*]] = arith.index_cast
// CHECK: memref.load %{{.*}}[%[[ROW]], %{{.*}}] : memref<11x6xf32>
func.func private @gather(%table: tensor<11x6xf32>, %ids: tensor<4xi32>) -> tensor<4x6xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%id: i32, %o: f32):
    %row = arith.index_cast %id : i32 to index
    %col = linalg.index 1 : index
    %v = tensor.extract %table[%row, %col] : tensor<11x6xf32>
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// The rows may be the same: a thread a column, which takes them in order.
// CHECK-LABEL: func.func private @scatter_add(
// CHECK: gpu.launch
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 64 : index
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]], {{.*}}) threads({{.*}}) in (%{{.*}} = %[[THREADS]],
// CHECK: arith.cmpi ult
// CHECK: scf.for
// CHECK: memref.load %{{.*}} : memref<4xi32>
// CHECK-NOT: gpu.barrier
// CHECK: arith.addf
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @scatter_add(%into: tensor<11x70xf32>, %ids: tensor<4xi32>, %rows: tensor<4x70xf32>) -> tensor<11x70xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%out = %into) -> tensor<11x70xf32> {
    %id = tensor.extract %ids[%i] : tensor<4xi32>
    %at = arith.index_cast %id : i32 to index
    %new = tensor.extract_slice %rows[%i, 0] [1, 70] [1, 1] : tensor<4x70xf32> to tensor<1x70xf32>
    %old = tensor.extract_slice %out[%at, 0] [1, 70] [1, 1] : tensor<11x70xf32> to tensor<1x70xf32>
    %sum = linalg.add ins(%old, %new : tensor<1x70xf32>, tensor<1x70xf32>) outs(%old : tensor<1x70xf32>) -> tensor<1x70xf32>
    %ins = tensor.insert_slice %sum into %out[%at, 0] [1, 70] [1, 1] : tensor<1x70xf32> into tensor<11x70xf32>
    scf.yield %ins : tensor<11x70xf32>
  }
  return %r : tensor<11x70xf32>
}

// Many rows: an owner runs the iterations of its own ones, with a buffer of its
// own.
// CHECK-LABEL: func.func private @scatter_owners(
// CHECK-SAME: baechi.kernel_scratch = 2560 : i64
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant 16 : index
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]], {{.*}})
// CHECK: scf.for
// CHECK: %[[ROW:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[OWNER:.*]] = arith.remui %[[ROW]], %{{.*}} : index
// CHECK: arith.cmpi eq, %{{.*}}, %[[OWNER]] : index
// CHECK: scf.if
// CHECK: memref.view %{{.*}} : memref<2560xi8> to memref<1x70xf32>
// CHECK: arith.addf
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @scatter_owners(%into: tensor<11x70xf32>, %ids: tensor<70xi32>, %rows: tensor<70x70xf32>) -> tensor<11x70xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c70 = arith.constant 70 : index
  %r = scf.for %i = %c0 to %c70 step %c1 iter_args(%out = %into) -> tensor<11x70xf32> {
    %id = tensor.extract %ids[%i] : tensor<70xi32>
    %at = arith.index_cast %id : i32 to index
    %new = tensor.extract_slice %rows[%i, 0] [1, 70] [1, 1] : tensor<70x70xf32> to tensor<1x70xf32>
    %old = tensor.extract_slice %out[%at, 0] [1, 70] [1, 1] : tensor<11x70xf32> to tensor<1x70xf32>
    %e = tensor.empty() : tensor<1x70xf32>
    %sum = linalg.add ins(%old, %new : tensor<1x70xf32>, tensor<1x70xf32>) outs(%e : tensor<1x70xf32>) -> tensor<1x70xf32>
    %ins = tensor.insert_slice %sum into %out[%at, 0] [1, 70] [1, 1] : tensor<1x70xf32> into tensor<11x70xf32>
    scf.yield %ins : tensor<11x70xf32>
  }
  return %r : tensor<11x70xf32>
}

// An iteration reads the row before the one that it changes: no owners.
// CHECK-LABEL: func.func private @scatter_two_rows(
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant 2 : index
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]], {{.*}})
// CHECK: scf.for
// CHECK-NOT: arith.remui
// CHECK: return
func.func private @scatter_two_rows(%into: tensor<11x70xf32>, %ids: tensor<70xi32>) -> tensor<11x70xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c70 = arith.constant 70 : index
  %r = scf.for %i = %c0 to %c70 step %c1 iter_args(%out = %into) -> tensor<11x70xf32> {
    %id = tensor.extract %ids[%i] : tensor<70xi32>
    %at = arith.index_cast %id : i32 to index
    %other = arith.subi %c10, %at : index
    %new = tensor.extract_slice %out[%other, 0] [1, 70] [1, 1] : tensor<11x70xf32> to tensor<1x70xf32>
    %old = tensor.extract_slice %out[%at, 0] [1, 70] [1, 1] : tensor<11x70xf32> to tensor<1x70xf32>
    %e = tensor.empty() : tensor<1x70xf32>
    %sum = linalg.add ins(%old, %new : tensor<1x70xf32>, tensor<1x70xf32>) outs(%e : tensor<1x70xf32>) -> tensor<1x70xf32>
    %ins = tensor.insert_slice %sum into %out[%at, 0] [1, 70] [1, 1] : tensor<1x70xf32> into tensor<11x70xf32>
    scf.yield %ins : tensor<11x70xf32>
  }
  return %r : tensor<11x70xf32>
}

// What a row depends on of another column: one block.
// CHECK-LABEL: func.func private @scatter_reversed(
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: memref.load %{{.*}} : memref<4xi32>
// CHECK: gpu.barrier
// CHECK: arith.addf
// CHECK: gpu.barrier
// CHECK: return
func.func private @scatter_reversed(%into: tensor<11x70xf32>, %ids: tensor<4xi32>) -> tensor<11x70xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%out = %into) -> tensor<11x70xf32> {
    %id = tensor.extract %ids[%i] : tensor<4xi32>
    %at = arith.index_cast %id : i32 to index
    %left = tensor.extract_slice %out[%at, 0] [1, 60] [1, 1] : tensor<11x70xf32> to tensor<1x60xf32>
    %right = tensor.extract_slice %out[%i, 10] [1, 60] [1, 1] : tensor<11x70xf32> to tensor<1x60xf32>
    %e = tensor.empty() : tensor<1x60xf32>
    %sum = linalg.add ins(%left, %right : tensor<1x60xf32>, tensor<1x60xf32>) outs(%e : tensor<1x60xf32>) -> tensor<1x60xf32>
    %ins = tensor.insert_slice %sum into %out[%at, 0] [1, 60] [1, 1] : tensor<1x60xf32> into tensor<11x70xf32>
    scf.yield %ins : tensor<11x70xf32>
  }
  return %r : tensor<11x70xf32>
}

// Windows of two lines, with a buffer of their own.
// CHECK-LABEL: func.func private @scatter_lines(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @scatter_lines(%into: tensor<11x70xf32>, %ids: tensor<4xi32>, %rows: tensor<4x2x70xf32>) -> tensor<11x70xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %last = arith.constant 9 : i32
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%out = %into) -> tensor<11x70xf32> {
    %id = tensor.extract %ids[%i] : tensor<4xi32>
    %inside = arith.cmpi ule, %id, %last : i32
    %some = arith.minui %id, %last : i32
    %at = arith.index_cast %some : i32 to index
    %new = tensor.extract_slice %rows[%i, 0, 0] [1, 2, 70] [1, 1, 1] : tensor<4x2x70xf32> to tensor<2x70xf32>
    %old = tensor.extract_slice %out[%at, 0] [2, 70] [1, 1] : tensor<11x70xf32> to tensor<2x70xf32>
    %e = tensor.empty() : tensor<2x70xf32>
    %sum = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
        ins(%old, %new : tensor<2x70xf32>, tensor<2x70xf32>) outs(%e : tensor<2x70xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.addf %a, %b : f32
      %w = arith.select %inside, %s, %a : f32
      linalg.yield %w : f32
    } -> tensor<2x70xf32>
    %ins = tensor.insert_slice %sum into %out[%at, 0] [2, 70] [1, 1] : tensor<2x70xf32> into tensor<11x70xf32>
    scf.yield %ins : tensor<11x70xf32>
  }
  return %r : tensor<11x70xf32>
}

// CHECK-LABEL: func.func private @pad_slice_concat(
// CHECK: gpu.launch
// CHECK: memref.store %{{.*}} : memref<8x11xf32>
func.func private @pad_slice_concat(%x: tensor<6x9xf32>, %y: tensor<4x5xf32>) -> tensor<8x11xf32> attributes {baechi.kernel} {
  %z = arith.constant 0.0 : f32
  %s = tensor.extract_slice %x[1, 2] [4, 6] [1, 1] : tensor<6x9xf32> to tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x11xf32>
  %a = tensor.insert_slice %s into %e[0, 0] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<4x11xf32>
  %b = tensor.insert_slice %y into %a[0, 6] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x11xf32>
  %p = tensor.pad %b low[1, 0] high[3, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x11xf32> to tensor<8x11xf32>
  return %p : tensor<8x11xf32>
}

// CHECK-LABEL: func.func private @compare_count(
// CHECK: memref.store %{{.*}} : memref<9x20xi1>
// CHECK: arith.addi
// CHECK: arith.maxsi
func.func private @compare_count(%x: tensor<9x20xf32>) -> (tensor<9x20xi1>, tensor<9xi32>, tensor<9xi64>) attributes {baechi.kernel} {
  %z = arith.constant 0.0 : f32
  %i0 = arith.constant 0 : i32
  %l0 = arith.constant 5 : i64
  %e = tensor.empty() : tensor<9x20xi1>
  %m = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<9x20xf32>) outs(%e : tensor<9x20xi1>) {
  ^bb0(%in: f32, %out: i1):
    %c = arith.cmpf ogt, %in, %z : f32
    linalg.yield %c : i1
  } -> tensor<9x20xi1>
  %ei = tensor.empty() : tensor<9xi32>
  %fi = linalg.fill ins(%i0 : i32) outs(%ei : tensor<9xi32>) -> tensor<9xi32>
  %el = tensor.empty() : tensor<9xi64>
  %fl = linalg.fill ins(%l0 : i64) outs(%el : tensor<9xi64>) -> tensor<9xi64>
  %n:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%m : tensor<9x20xi1>) outs(%fi, %fl : tensor<9xi32>, tensor<9xi64>) {
  ^bb0(%in: i1, %out: i32, %wide: i64):
    %v = arith.extui %in : i1 to i32
    %w = arith.extui %in : i1 to i64
    %s = arith.addi %out, %v : i32
    %l = arith.maxsi %wide, %w : i64
    linalg.yield %s, %l : i32, i64
  } -> (tensor<9xi32>, tensor<9xi64>)
  return %m, %n#0, %n#1 : tensor<9x20xi1>, tensor<9xi32>, tensor<9xi64>
}

// A product of nothing is its start, which no library is called for.
// CHECK-LABEL: func.func private @product_of_nothing(
// CHECK-NOT: baechi_cuda_multiply
// CHECK: gpu.launch
// CHECK: return
func.func private @product_of_nothing(%a: tensor<4x0xf32>, %b: tensor<0x5xf32>) -> tensor<4x5xf32> attributes {baechi.kernel} {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%two : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// Results without elements need no launch, whatever their rank.
// CHECK-LABEL: func.func private @empty_product(
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @empty_product(%a: tensor<4x7xf32>, %b: tensor<7x0xf32>) -> tensor<4x0xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x0xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x0xf32>) -> tensor<4x0xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x7xf32>, tensor<7x0xf32>) outs(%f : tensor<4x0xf32>) -> tensor<4x0xf32>
  return %r : tensor<4x0xf32>
}

// CHECK-LABEL: func.func private @empty_and_not(
// CHECK-COUNT-1: gpu.launch
// CHECK: return
func.func private @empty_and_not(%a: tensor<5x0xf32>, %b: tensor<5x3xf32>) -> (tensor<5x0xf32>, tensor<5x3xf32>) attributes {baechi.kernel} {
  %e0 = tensor.empty() : tensor<5x0xf32>
  %e = tensor.empty() : tensor<5x3xf32>
  %c = linalg.add ins(%a, %a : tensor<5x0xf32>, tensor<5x0xf32>) outs(%e0 : tensor<5x0xf32>) -> tensor<5x0xf32>
  %r = linalg.add ins(%b, %b : tensor<5x3xf32>, tensor<5x3xf32>) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  return %c, %r : tensor<5x0xf32>, tensor<5x3xf32>
}

// Within rows likewise.
// CHECK-LABEL: func.func private @empty_sums_of_rows(
func.func private @empty_sums_of_rows(%t: tensor<0x8xf32>, %x: tensor<6xf32>) -> tensor<6xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %r = scf.for %row = %c0 to %c6 step %c1 iter_args(%all = %e) -> tensor<6xf32> {
    %v = tensor.extract %x[%row] : tensor<6xf32>
    %e0 = tensor.empty() : tensor<0xf32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<0xf32>) -> tensor<0xf32>
    %s0 = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
        ins(%t : tensor<0x8xf32>) outs(%f0 : tensor<0xf32>) {
    ^bb0(%in: f32, %out: f32):
      %sum = arith.addf %in, %out : f32
      %more = arith.addf %sum, %v : f32
      linalg.yield %more : f32
    } -> tensor<0xf32>
    %e1 = tensor.empty() : tensor<f32>
    %f1 = linalg.fill ins(%v : f32) outs(%e1 : tensor<f32>) -> tensor<f32>
    %s1 = linalg.generic {indexing_maps = [#id1, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
        ins(%s0 : tensor<0xf32>) outs(%f1 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %sum = arith.addf %in, %out : f32
      linalg.yield %sum : f32
    } -> tensor<f32>
    %y = tensor.extract %s1[] : tensor<f32>
    %next = tensor.insert %y into %all[%row] : tensor<6xf32>
    scf.yield %next : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}

// So many results that the sums of their threads do not fit into shared memory:
// the last ones lie in the scratch.
// SCRATCH-LABEL: func.func private @many_sums(
// SCRATCH-SAME: baechi.kernel_scratch = {{[1-9][0-9]*}} : i64
// CHECK-LABEL: func.func private @many_sums(
// CHECK: memref.view %{{.*}} : memref<{{[0-9]+}}xi8> to memref<256xi64>
// CHECK: return
func.func private @many_sums(%x: tensor<300xi64>) -> (tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) attributes {baechi.kernel} {
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<i64>
  %f0 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f1 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f2 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f3 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f4 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f5 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f6 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f7 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f8 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f9 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f10 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f11 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f12 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f13 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f14 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f15 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f16 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f17 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f18 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f19 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f20 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f21 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f22 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f23 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f24 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %f25 = linalg.fill ins(%none : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %r:26 = linalg.generic {indexing_maps = [#id1, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<300xi64>) outs(%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9, %f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17, %f18, %f19, %f20, %f21, %f22, %f23, %f24, %f25 : tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) {
  ^bb0(%in: i64, %h0: i64, %h1: i64, %h2: i64, %h3: i64, %h4: i64, %h5: i64, %h6: i64, %h7: i64, %h8: i64, %h9: i64, %h10: i64, %h11: i64, %h12: i64, %h13: i64, %h14: i64, %h15: i64, %h16: i64, %h17: i64, %h18: i64, %h19: i64, %h20: i64, %h21: i64, %h22: i64, %h23: i64, %h24: i64, %h25: i64):
    %c0 = arith.constant 0 : i64
    %t0 = arith.xori %in, %c0 : i64
    %s0 = arith.addi %h0, %t0 : i64
    %c1 = arith.constant 1 : i64
    %t1 = arith.xori %in, %c1 : i64
    %s1 = arith.addi %h1, %t1 : i64
    %c2 = arith.constant 2 : i64
    %t2 = arith.xori %in, %c2 : i64
    %s2 = arith.addi %h2, %t2 : i64
    %c3 = arith.constant 3 : i64
    %t3 = arith.xori %in, %c3 : i64
    %s3 = arith.addi %h3, %t3 : i64
    %c4 = arith.constant 4 : i64
    %t4 = arith.xori %in, %c4 : i64
    %s4 = arith.addi %h4, %t4 : i64
    %c5 = arith.constant 5 : i64
    %t5 = arith.xori %in, %c5 : i64
    %s5 = arith.addi %h5, %t5 : i64
    %c6 = arith.constant 6 : i64
    %t6 = arith.xori %in, %c6 : i64
    %s6 = arith.addi %h6, %t6 : i64
    %c7 = arith.constant 7 : i64
    %t7 = arith.xori %in, %c7 : i64
    %s7 = arith.addi %h7, %t7 : i64
    %c8 = arith.constant 8 : i64
    %t8 = arith.xori %in, %c8 : i64
    %s8 = arith.addi %h8, %t8 : i64
    %c9 = arith.constant 9 : i64
    %t9 = arith.xori %in, %c9 : i64
    %s9 = arith.addi %h9, %t9 : i64
    %c10 = arith.constant 10 : i64
    %t10 = arith.xori %in, %c10 : i64
    %s10 = arith.addi %h10, %t10 : i64
    %c11 = arith.constant 11 : i64
    %t11 = arith.xori %in, %c11 : i64
    %s11 = arith.addi %h11, %t11 : i64
    %c12 = arith.constant 12 : i64
    %t12 = arith.xori %in, %c12 : i64
    %s12 = arith.addi %h12, %t12 : i64
    %c13 = arith.constant 13 : i64
    %t13 = arith.xori %in, %c13 : i64
    %s13 = arith.addi %h13, %t13 : i64
    %c14 = arith.constant 14 : i64
    %t14 = arith.xori %in, %c14 : i64
    %s14 = arith.addi %h14, %t14 : i64
    %c15 = arith.constant 15 : i64
    %t15 = arith.xori %in, %c15 : i64
    %s15 = arith.addi %h15, %t15 : i64
    %c16 = arith.constant 16 : i64
    %t16 = arith.xori %in, %c16 : i64
    %s16 = arith.addi %h16, %t16 : i64
    %c17 = arith.constant 17 : i64
    %t17 = arith.xori %in, %c17 : i64
    %s17 = arith.addi %h17, %t17 : i64
    %c18 = arith.constant 18 : i64
    %t18 = arith.xori %in, %c18 : i64
    %s18 = arith.addi %h18, %t18 : i64
    %c19 = arith.constant 19 : i64
    %t19 = arith.xori %in, %c19 : i64
    %s19 = arith.addi %h19, %t19 : i64
    %c20 = arith.constant 20 : i64
    %t20 = arith.xori %in, %c20 : i64
    %s20 = arith.addi %h20, %t20 : i64
    %c21 = arith.constant 21 : i64
    %t21 = arith.xori %in, %c21 : i64
    %s21 = arith.addi %h21, %t21 : i64
    %c22 = arith.constant 22 : i64
    %t22 = arith.xori %in, %c22 : i64
    %s22 = arith.addi %h22, %t22 : i64
    %c23 = arith.constant 23 : i64
    %t23 = arith.xori %in, %c23 : i64
    %s23 = arith.addi %h23, %t23 : i64
    %c24 = arith.constant 24 : i64
    %t24 = arith.xori %in, %c24 : i64
    %s24 = arith.addi %h24, %t24 : i64
    %c25 = arith.constant 25 : i64
    %t25 = arith.xori %in, %c25 : i64
    %s25 = arith.addi %h25, %t25 : i64
    linalg.yield %s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7, %s8, %s9, %s10, %s11, %s12, %s13, %s14, %s15, %s16, %s17, %s18, %s19, %s20, %s21, %s22, %s23, %s24, %s25 : i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64
  } -> (tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7, %r#8, %r#9, %r#10, %r#11, %r#12, %r#13, %r#14, %r#15, %r#16, %r#17, %r#18, %r#19, %r#20, %r#21, %r#22, %r#23, %r#24, %r#25 : tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>
}

// A row's buffer and the sums of 1024 threads would take more than 48 KiB of
// shared memory: half the threads do.
// CHECK-LABEL: func.func private @sums_of_three_types(
// CHECK: %[[T:.*]] = arith.constant 512 : index
// CHECK: gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %[[T]],
func.func private @sums_of_three_types(%t: tensor<3x8000xf32>, %q: tensor<3x8000xi64>) -> (tensor<3x8000xf32>, tensor<f32>) attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<3x8000xf32>
  %es = tensor.empty() : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %zero64 = arith.constant 0.0 : f64
  %none = arith.constant 0 : i64
  %r:2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%all = %e, %run = %zero) -> (tensor<3x8000xf32>, f32) {
    %x = tensor.extract_slice %t[%k, 0] [1, 8000] [1, 1] : tensor<3x8000xf32> to tensor<8000xf32>
    %y = tensor.extract_slice %q[%k, 0] [1, 8000] [1, 1] : tensor<3x8000xi64> to tensor<8000xi64>
    %ec = tensor.empty() : tensor<8000xf32>
    %c = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
        ins(%x : tensor<8000xf32>) outs(%ec : tensor<8000xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %a, %run : f32
      linalg.yield %v : f32
    } -> tensor<8000xf32>
    %e1 = tensor.empty() : tensor<f32>
    %e2 = tensor.empty() : tensor<f64>
    %e3 = tensor.empty() : tensor<i64>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<f32>) -> tensor<f32>
    %f2 = linalg.fill ins(%zero64 : f64) outs(%e2 : tensor<f64>) -> tensor<f64>
    %f3 = linalg.fill ins(%none : i64) outs(%e3 : tensor<i64>) -> tensor<i64>
    %s1 = linalg.generic {indexing_maps = [#id1, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
        ins(%c : tensor<8000xf32>) outs(%f1 : tensor<f32>) {
    ^bb0(%a: f32, %h: f32):
      %v = arith.addf %a, %h : f32
      linalg.yield %v : f32
    } -> tensor<f32>
    %s2 = linalg.generic {indexing_maps = [#id1, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
        ins(%c : tensor<8000xf32>) outs(%f2 : tensor<f64>) {
    ^bb0(%a: f32, %h: f64):
      %w = arith.extf %a : f32 to f64
      %v = arith.addf %w, %h : f64
      linalg.yield %v : f64
    } -> tensor<f64>
    %s3 = linalg.generic {indexing_maps = [#id1, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
        ins(%y : tensor<8000xi64>) outs(%f3 : tensor<i64>) {
    ^bb0(%a: i64, %h: i64):
      %v = arith.maxsi %a, %h : i64
      linalg.yield %v : i64
    } -> tensor<i64>
    %v1 = tensor.extract %s1[] : tensor<f32>
    %v2 = tensor.extract %s2[] : tensor<f64>
    %v3 = tensor.extract %s3[] : tensor<i64>
    %g2 = arith.truncf %v2 : f64 to f32
    %g3 = arith.sitofp %v3 : i64 to f32
    %n1 = arith.addf %v1, %g2 : f32
    %n2 = arith.addf %n1, %g3 : f32
    %d = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
        ins(%c : tensor<8000xf32>) outs(%ec : tensor<8000xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.subf %a, %n2 : f32
      linalg.yield %v : f32
    } -> tensor<8000xf32>
    %next = tensor.insert_slice %d into %all[%k, 0] [1, 8000] [1, 1] : tensor<8000xf32> into tensor<3x8000xf32>
    scf.yield %next, %n2 : tensor<3x8000xf32>, f32
  }
  %last = tensor.insert %r#1 into %es[] : tensor<f32>
  return %r#0, %last : tensor<3x8000xf32>, tensor<f32>
}

// CHECK-LABEL: func.func private @max_pool(
// CHECK: gpu.launch
// CHECK: arith.maximumf
func.func private @max_pool(%x: tensor<2x9x9x5xf32>) -> tensor<2x4x4x5xf32> attributes {baechi.kernel} {
  %ninf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x4x4x5xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %f = linalg.fill ins(%ninf : f32) outs(%e : tensor<2x4x4x5xf32>) -> tensor<2x4x4x5xf32>
  %r = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<2x9x9x5xf32>, tensor<3x3xf32>) outs(%f : tensor<2x4x4x5xf32>) -> tensor<2x4x4x5xf32>
  return %r : tensor<2x4x4x5xf32>
}

// A bias that is shorter than the product's rows is none of the library's.
// CHECK-LABEL: func.func private @gemm_no_bias(
// CHECK-NOT: baechi_cuda_multiply
// CHECK: return
func.func private @gemm_no_bias(%a: tensor<12x7xf32>, %b: tensor<7x3x9xf32>, %bias: tensor<9xf32>) -> tensor<12x3x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x3x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x3x9xf32>) -> tensor<12x3x9xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, h, n, k) -> (m, k)>, affine_map<(m, h, n, k) -> (k, h, n)>, affine_map<(m, h, n, k) -> (m, h, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<12x7xf32>, tensor<7x3x9xf32>) outs(%f : tensor<12x3x9xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<12x3x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, h, n) -> (n)>, affine_map<(m, h, n) -> (m, h, n)>, affine_map<(m, h, n) -> (m, h, n)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%bias, %p : tensor<9xf32>, tensor<12x3x9xf32>) outs(%e : tensor<12x3x9xf32>) {
  ^bb0(%v: f32, %in: f32, %out: f32):
    %s = arith.addf %v, %in : f32
    linalg.yield %s : f32
  } -> tensor<12x3x9xf32>
  return %r : tensor<12x3x9xf32>
}

// The library's batches lie behind their first matrix: none that runs backwards.
// CHECK-LABEL: func.func private @gemm_backwards(
// CHECK-NOT: baechi_cuda_multiply
// CHECK: return
func.func private @gemm_backwards(%a: tensor<4x12x7xf32>, %b: tensor<4x7x9xf32>) -> tensor<4x12x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x12x9xf32>) -> tensor<4x12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (3 - b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x12x7xf32>, tensor<4x7x9xf32>) outs(%f : tensor<4x12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x12x9xf32>
  return %r : tensor<4x12x9xf32>
}

// CHECK-LABEL: func.func private @gemm(
// CHECK-SAME: %[[A:.*]]: !llvm.ptr, %[[B:.*]]: !llvm.ptr, %[[C:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-NOT: gpu.launch
// CHECK: %[[PRODUCT:.*]] = llvm.mlir.addressof @gemm__product
// CHECK: llvm.call @baechi_cuda_multiply(%[[PRODUCT]], %[[A]], %[[B]], %[[C]],
func.func private @gemm(%a: tensor<12x7xf32>, %b: tensor<9x7xf32>) -> tensor<12x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%a, %b : tensor<12x7xf32>, tensor<9x7xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// The result starts from an argument: nothing to copy when they are one buffer.
// CHECK-LABEL: func.func private @gemm_add(
// CHECK: %[[DIFFER:.*]] = llvm.icmp "ne"
// CHECK: scf.if %[[DIFFER]]
// CHECK: gpu.launch
// CHECK: llvm.call @baechi_cuda_multiply
func.func private @gemm_add(%c: tensor<12x9xf32>, %a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> (tensor<12x9xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%c : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// The library adds the bias to each row.
// CHECK-LABEL: func.func private @gemm_bias(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[BIAS:.*]]: !llvm.ptr, %[[C:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-NOT: gpu.launch
// CHECK: llvm.call @baechi_cuda_multiply(%{{.*}}, %{{.*}}, %{{.*}}, %[[C]], %[[BIAS]],
func.func private @gemm_bias(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>, %bias: tensor<9xf32>) -> tensor<3x4x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %p = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [#col, #id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%bias, %p : tensor<9xf32>, tensor<12x9xf32>) outs(%e : tensor<12x9xf32>) {
  ^bb0(%v: f32, %in: f32, %out: f32):
    %s = arith.addf %v, %in : f32
    linalg.yield %s : f32
  } -> tensor<12x9xf32>
  %r3 = tensor.expand_shape %r [[0, 1], [2]] output_shape [3, 4, 9] : tensor<12x9xf32> into tensor<3x4x9xf32>
  return %r3 : tensor<3x4x9xf32>
}

// One call for the batch.
// CHECK-LABEL: func.func private @batched(
// CHECK: llvm.call @baechi_cuda_multiply
// CHECK-NOT: llvm.call @baechi_cuda_multiply
// CHECK: return
func.func private @batched(%a: tensor<3x12x7xf32>, %b: tensor<3x7x9xf32>) -> tensor<3x12x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x12x9xf32>) -> tensor<3x12x9xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<3x12x7xf32>, tensor<3x7x9xf32>) outs(%f : tensor<3x12x9xf32>) -> tensor<3x12x9xf32>
  return %r : tensor<3x12x9xf32>
}

// Short types are added up in single precision.
// CHECK-LABEL: func.func private @short(
// CHECK: llvm.call @baechi_cuda_multiply
func.func private @short(%a: tensor<12x7xbf16>, %b: tensor<7x9xbf16>) -> tensor<12x9xbf16> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<12x9xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<12x9xbf16>) -> tensor<12x9xbf16>
  %r = linalg.matmul ins(%a, %b : tensor<12x7xbf16>, tensor<7x9xbf16>) outs(%f : tensor<12x9xbf16>) -> tensor<12x9xbf16>
  return %r : tensor<12x9xbf16>
}

// CHECK-LABEL: func.func private @half_to_single(
// CHECK: gpu.launch
// CHECK: llvm.call @baechi_cuda_multiply
func.func private @half_to_single(%a: tensor<12x7xf16>, %b: tensor<7x9xf16>) -> tensor<12x9xf32> attributes {baechi.kernel} {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<12x7xf16>, tensor<7x9xf16>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

#fx = affine_map<(n, h, w, o, i, y, x) -> (n, h + y, w + x, i)>
#fw = affine_map<(n, h, w, o, i, y, x) -> (y, x, i, o)>
#fy = affine_map<(n, h, w, o, i, y, x) -> (n, h, w, o)>
// Tiles: operands through shared memory, sums in registers.
// CHECK-LABEL: func.func private @conv(
// CHECK: gpu.launch {{.*}} workgroup({{.*}}) private(
// CHECK: math.fma
// CHECK: return
func.func private @conv(%x: tensor<2x10x10x3xf32>, %w: tensor<3x3x3x20xf32>) -> tensor<2x8x8x20xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x8x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x8x20xf32>) -> tensor<2x8x8x20xf32>
  %r = linalg.generic {indexing_maps = [#fx, #fw, #fy], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x10x10x3xf32>, tensor<3x3x3x20xf32>) outs(%f : tensor<2x8x8x20xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x8x8x20xf32>
  return %r : tensor<2x8x8x20xf32>
}

#cx = affine_map<(n, h, w, i, o, y, x) -> (n, h + y, w + x, i)>
#cy = affine_map<(n, h, w, i, o, y, x) -> (n, h, w, o)>
#cw = affine_map<(n, h, w, i, o, y, x) -> (y, x, i, o)>
// Few outputs, long sums: parts by many blocks, then their sum.
// SCRATCH-LABEL: func.func private @conv_weight_gradient(
// SCRATCH-SAME: baechi.kernel_scratch = {{[1-9][0-9]*}} : i64
// CHECK-LABEL: func.func private @conv_weight_gradient(
// CHECK-COUNT-2: gpu.launch
func.func private @conv_weight_gradient(%x: tensor<4x18x18x3xf32>, %dy: tensor<4x16x16x20xf32>) -> tensor<3x3x3x20xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x3x3x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x3x3x20xf32>) -> tensor<3x3x3x20xf32>
  %r = linalg.generic {indexing_maps = [#cx, #cy, #cw], iterator_types = ["reduction", "reduction", "reduction", "parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %dy : tensor<4x18x18x3xf32>, tensor<4x16x16x20xf32>) outs(%f : tensor<3x3x3x20xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x3x3x20xf32>
  return %r : tensor<3x3x3x20xf32>
}

#gx = affine_map<(n, h, w, i, o, y, x) -> (n, h + y, w + x, o)>
#gw = affine_map<(n, h, w, i, o, y, x) -> (y, x, i, o)>
#gi = affine_map<(n, h, w, i, o, y, x) -> (n, h, w, i)>
// CHECK-LABEL: func.func private @conv_input_gradient(
// CHECK: gpu.launch
// CHECK: math.fma
func.func private @conv_input_gradient(%dy: tensor<2x12x12x20xf32>, %w: tensor<3x3x3x20xf32>) -> tensor<2x10x10x3xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x10x10x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x10x10x3xf32>) -> tensor<2x10x10x3xf32>
  %r = linalg.generic {indexing_maps = [#gx, #gw, #gi], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%dy, %w : tensor<2x12x12x20xf32>, tensor<3x3x3x20xf32>) outs(%f : tensor<2x10x10x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x10x10x3xf32>
  return %r : tensor<2x10x10x3xf32>
}
