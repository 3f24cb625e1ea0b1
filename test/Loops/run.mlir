// Raised loops compute what the program computed: ratings factorised, a
// triangle summed in two ways, a step.
// DEFINE: %{lower} = --lower-affine --baechi-lower-loops --convert-vector-to-scf --convert-scf-to-cf --expand-strided-metadata --lower-affine \
// DEFINE:   --convert-vector-to-llvm --convert-arith-to-llvm --convert-index-to-llvm --finalize-memref-to-llvm --convert-func-to-llvm --convert-cf-to-llvm --reconcile-unrealized-casts
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void --shared-libs=%llvm_lib_dir/libmlir_runner_utils.so,%llvm_lib_dir/libmlir_c_runner_utils.so
// RUN: baechi-opt %s %{lower} | %{run} > %t.as-it-is
// RUN: baechi-opt %s --baechi-raise-loops %{lower} | %{run} > %t.raised
// RUN: cmp %t.as-it-is %t.raised
// RUN: FileCheck %s < %t.raised
// RUN: baechi-opt %s --baechi-raise-loops | FileCheck %s --check-prefix=RAISED

// RAISED-LABEL: func.func @factorise
// RAISED: baechi.foreach {{.*}} values(
func.func @factorise(%rows: memref<8xi32>, %columns: memref<8xindex>, %ratings: memref<8xf32>,
                     %w: memref<4x2xf32>, %h: memref<3x2xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  scf.for %e = %c1 to %n step %c1 {
    %row = memref.load %rows[%e] : memref<8xi32>
    %j = memref.load %columns[%e] : memref<8xindex>
    %i = arith.index_cast %row : i32 to index
    %sum = scf.for %k = %c0 to %c2 step %c1 iter_args(%s = %zero) -> f32 {
      %a = memref.load %w[%i, %k] : memref<4x2xf32>
      %b = memref.load %h[%j, %k] : memref<3x2xf32>
      %ab = arith.mulf %a, %b : f32
      %t = arith.addf %s, %ab : f32
      scf.yield %t : f32
    }
    %r = memref.load %ratings[%e] : memref<8xf32>
    %error = arith.subf %r, %sum : f32
    scf.for %k = %c0 to %c2 step %c1 {
      %a = memref.load %w[%i, %k] : memref<4x2xf32>
      %b = memref.load %h[%j, %k] : memref<3x2xf32>
      %da = arith.mulf %error, %b : f32
      %a1 = arith.addf %a, %da : f32
      memref.store %a1, %w[%i, %k] : memref<4x2xf32>
      %db = arith.mulf %error, %a : f32
      %b1 = arith.addf %b, %db : f32
      memref.store %b1, %h[%j, %k] : memref<3x2xf32>
    }
    memref.store %error, %ratings[%e] : memref<8xf32>
  }
  return
}

// RAISED-LABEL: func.func @triangle
// RAISED: baechi.foreach {{.*}} where
func.func @triangle(%x: memref<8x8xf32>, %n: index) -> f32 {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = affine_map<(d0) -> (d0 + 1)>(%i) to 8 {
      %0 = affine.load %x[%i, %j] : memref<8x8xf32>
      affine.store %0, %x[%j, %i] : memref<8x8xf32>
    }
  }
  %sum = affine.for %i = 0 to %n step 3 iter_args(%s = %zero) -> f32 {
    %1 = affine.load %x[%i, 0] : memref<8x8xf32>
    %2 = arith.addf %s, %1 : f32
    affine.yield %2 : f32
  }
  return %sum : f32
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %half = arith.constant 0.25 : f32
  %rows = memref.alloca() : memref<8xi32>
  %columns = memref.alloca() : memref<8xindex>
  %ratings = memref.alloca() : memref<8xf32>
  %w = memref.alloca() : memref<4x2xf32>
  %h = memref.alloca() : memref<3x2xf32>
  %x = memref.alloca() : memref<8x8xf32>
  scf.for %e = %c0 to %c8 step %c1 {
    %i = arith.remui %e, %c4 : index
    %j = arith.remui %e, %c3 : index
    %i32 = arith.index_cast %i : index to i32
    %f = arith.sitofp %i32 : i32 to f32
    memref.store %i32, %rows[%e] : memref<8xi32>
    memref.store %j, %columns[%e] : memref<8xindex>
    memref.store %f, %ratings[%e] : memref<8xf32>
    scf.for %k = %c0 to %c8 step %c1 {
      %ee = arith.muli %e, %e : index
      %ek = arith.addi %ee, %k : index
      %ek32 = arith.index_cast %ek : index to i32
      %g = arith.sitofp %ek32 : i32 to f32
      memref.store %g, %x[%e, %k] : memref<8x8xf32>
    }
  }
  scf.for %k = %c0 to %c2 step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %half, %w[%i, %k] : memref<4x2xf32>
    }
    scf.for %j = %c0 to %c3 step %c1 {
      memref.store %half, %h[%j, %k] : memref<3x2xf32>
    }
  }
  call @factorise(%rows, %columns, %ratings, %w, %h, %c7)
      : (memref<8xi32>, memref<8xindex>, memref<8xf32>, memref<4x2xf32>, memref<3x2xf32>, index) -> ()
  %sum = call @triangle(%x, %c8) : (memref<8x8xf32>, index) -> f32
  %v = vector.load %ratings[%c0] : memref<8xf32>, vector<8xf32>
  %u = vector.load %w[%c3, %c0] : memref<4x2xf32>, vector<2xf32>
  // CHECK: ( 0, 0.875, 1.875, 2.875, -0.234375, 0.326172, 0.607422, 3 )
  // CHECK-NEXT: ( 0.96875, 0.96875 )
  // CHECK-NEXT: 9
  vector.print %v : vector<8xf32>
  vector.print %u : vector<2xf32>
  vector.print %sum : f32
  return
}
