// Buffers begin at multiples of 64 bytes, and what a launch only reads or only
// writes overlaps nothing: four neighbours are one access of 16 bytes. What a
// result may share with an argument is not assumed to be apart.
// RUN: rm -rf %t && mkdir -p %t/bin %t/nvvm/libdevice
// RUN: cp %S/Inputs/fake-tool %t/bin/ptxas && cp %S/Inputs/fake-tool %t/bin/fatbinary
// RUN: llvm-as %S/Inputs/libdevice.ll -o %t/nvvm/libdevice/libdevice.10.bc
// RUN: baechi-opt %s --baechi-lower-cuda-kernels="chips=sm_80 toolkit=%t" | FileCheck %s --check-prefix=HOST
// RUN: FileCheck %s --input-file=%t/kernels.ptx

// HOST: llvm.func @add__cuda(%{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr)

// CHECK-LABEL: .entry add_0(
// CHECK: .param .u64 .ptr .align 64
// CHECK-DAG: ld.global.nc.v4.{{[bf]}}32
// CHECK-DAG: ld.global.nc.v4.{{[bf]}}32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.{{[bf]}}32
// CHECK-NOT: st.global
// CHECK: ret;
func.func private @add(%a: tensor<2048x1024xf32>, %b: tensor<2048x1024xf32>) -> tensor<2048x1024xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<2048x1024xf32>
  %r = linalg.add ins(%a, %b : tensor<2048x1024xf32>, tensor<2048x1024xf32>) outs(%e : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  return %r : tensor<2048x1024xf32>
}

// The result may be the first argument's buffer: that is read by ordinary
// loads.
// CHECK-LABEL: .entry update_0(
// CHECK: ld.global.v4.{{[bf]}}32
// CHECK: ld.global.nc.v4.{{[bf]}}32
// CHECK: ret;
func.func private @update(%a: tensor<2048x1024xf32>, %b: tensor<2048x1024xf32>) -> (tensor<2048x1024xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<2048x1024xf32>
  %r = linalg.sub ins(%a, %b : tensor<2048x1024xf32>, tensor<2048x1024xf32>) outs(%e : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  return %r : tensor<2048x1024xf32>
}
