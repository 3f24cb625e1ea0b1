//===- Passes.td - Passes that lower programs to code -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_PASSES
#define BAECHI_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def KernelScratch : Pass<"baechi-kernel-scratch", "::mlir::ModuleOp"> {
  let summary = "find the scratch bytes of every kernel's host code";
  let description = [{
    Lowers a copy of each kernel far enough to know the buffers of its own, and
    writes `baechi.kernel_scratch`: the bytes that its host code, in the
    implementation that `baechi.implementation` selects, needs while it runs.
    Buffers of up to 16 KiB lie on the stack and do not count. Memory planning
    reads the attribute.

    ```mlir
    func.func private @twice(%x: tensor<100x200xf32>) -> tensor<100x200xf32> attributes {baechi.kernel} {
      %e = tensor.empty() : tensor<200x100xf32>
      %y = linalg.transpose ins(%x : tensor<100x200xf32>) outs(%e : tensor<200x100xf32>) permutation = [1, 0]
      %z = linalg.exp ins(%y : tensor<200x100xf32>) outs(%e : tensor<200x100xf32>) -> tensor<200x100xf32>
      %r = tensor.empty() : tensor<100x200xf32>
      %t = linalg.transpose ins(%z : tensor<200x100xf32>) outs(%r : tensor<100x200xf32>) permutation = [1, 0]
      return %t : tensor<100x200xf32>
    }
    ```
    becomes by `--baechi-kernel-scratch`
    ```mlir
    func.func private @twice(%arg0: tensor<100x200xf32>) -> tensor<100x200xf32> attributes {baechi.kernel, baechi.kernel_scratch = 80000 : i64} {
      %0 = tensor.empty() : tensor<200x100xf32>
      %transposed = linalg.transpose ins(%arg0 : tensor<100x200xf32>) outs(%0 : tensor<200x100xf32>) permutation = [1, 0]
      %1 = linalg.exp ins(%transposed : tensor<200x100xf32>) outs(%0 : tensor<200x100xf32>) -> tensor<200x100xf32>
      %2 = tensor.empty() : tensor<100x200xf32>
      %transposed_0 = linalg.transpose ins(%1 : tensor<200x100xf32>) outs(%2 : tensor<100x200xf32>) permutation = [1, 0]
      return %transposed_0 : tensor<100x200xf32>
    }
    ```
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def LowerKernels : Pass<"baechi-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "lower every kernel to host code";
  let description = [{
    Each kernel NAME becomes an `llvm.func @baechi.kernel.NAME`, a name that no
    library has, that takes a pointer an argument, a pointer a result and a
    pointer to its scratch; it allocates nothing.
    `baechi.implementation` selects "generated", the default, or one of the
    libraries "openblas" and "onednn" for contractions in single precision. What
    is generated is for the vector unit of this host.

    ```mlir
    func.func private @matmul_12x9x7(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<12x9xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
      %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
      return %r : tensor<12x9xf32>
    }
    ```
    becomes by `--baechi-lower-kernels`
    ```mlir
    llvm.func @cblas_sgemm(i32, i32, i32, i32, i32, i32, f32, !llvm.ptr, i32, !llvm.ptr, i32, f32, !llvm.ptr, i32)
    llvm.func @baechi.kernel.matmul_12x9x7(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: !llvm.ptr) attributes {baechi.kernel, baechi.kernel_scratch = 0 : i64, sym_visibility = "private"} {
      %0 = llvm.mlir.constant(0.000000e+00 : f32) : f32
      %1 = llvm.mlir.constant(101 : i32) : i32
      %2 = llvm.mlir.constant(111 : i32) : i32
      %3 = llvm.mlir.constant(12 : i32) : i32
      %4 = llvm.mlir.constant(9 : i32) : i32
      %5 = llvm.mlir.constant(7 : i32) : i32
      %6 = llvm.mlir.constant(1.000000e+00 : f32) : f32
      llvm.call @cblas_sgemm(%1, %2, %2, %3, %4, %5, %6, %arg0, %5, %arg1, %4, %0, %arg2, %4) : (i32, i32, i32, i32, i32, i32, f32, !llvm.ptr, i32, !llvm.ptr, i32, f32, !llvm.ptr, i32) -> ()
      llvm.return
    }
    ```
    A kernel that is still called on tensors is an error: `baechi-lower` lowers
    the callers.
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def CudaProducts : Pass<"baechi-cuda-products", "::mlir::ModuleOp"> {
  let summary = "choose how GPUs compute the kernels that are products";
  let description = [{
    Writes `baechi.cuda_product` on every kernel that GPUs compute by cuBLASLt:
    products of matrices, and batches of them, in single precision, bfloat16 or
    half precision. `math` is for those in single precision; sums always are in
    that. The library's workspace, a part of the kernel's scratch, is as large as
    the product's operands and result, and at most `workspace`. Kernels that
    cuDNN may compute, convolutions and the gradients of their filters, get
    `baechi.cuda_convolution`, unless `convolutions=generated`. With `biases`, the
    calls of a product and of a kernel that only adds a bias to it become one.
    With `updates`, so do the calls of elementwise kernels on small tensors whose
    results the step returns, as an optimizer's updates of parameters: as many
    as a launch has parameters for, and as keep no more memory waiting for the
    last of them than a sixteenth of the step's arguments (64 KiB at least, 4 MiB
    at most).

    ```mlir
    func.func private @matmul(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<12x9xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
      %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
      return %r : tensor<12x9xf32>
    }
    ```
    becomes by `--baechi-cuda-products=math=tf32`
    ```mlir
    func.func private @matmul(%arg0: tensor<12x7xf32>, %arg1: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.cuda_product = #baechi.cuda_product<math = "tf32", workspace = 1020>, baechi.kernel} {
    ...
    ```
  }];
  let options = [
    Option<"math", "math", "std::string", "\"fp32\"",
           "what single-precision factors may be rounded to: fp32 (nothing), "
           "tf32, bf16 or fp16">,
    Option<"workspace", "workspace", "int64_t", "33554432",
           "the most bytes of device memory that the library may use beside a "
           "product's operands; 0: none">,
    Option<"biases", "biases", "bool", "false",
           "join a product and a kernel that only adds a bias to each of its "
           "rows to one kernel; for machines of GPUs alone, since host devices "
           "have no good code for it">,
    Option<"updates", "updates", "bool", "false",
           "join small elementwise kernels of what the step returns, which "
           "become one launch; for machines of one GPU">,
    Option<"convolutions", "convolutions", "std::string", "\"measured\"",
           "what computes convolutions: measured (cuDNN where a profile says "
           "that it is faster), generated or cudnn">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def CudaScratch : Pass<"baechi-cuda-scratch", "::mlir::ModuleOp"> {
  let summary = "find the scratch bytes and blocks of every kernel's GPU code";
  let description = [{
    Lowers a copy of each kernel far enough to know the buffers of its own, and
    writes `baechi.kernel_scratch`: the bytes of device memory that its GPU code
    needs while it runs, `baechi.cuda_blocks`: the blocks of its largest launch, by which steps are predicted that run
    several at once, and `baechi.cuda_commands`: its launches and calls. Buffers that fit into a block's shared memory do not
    count; the parts of sums that many blocks share do, and the workspaces of
    libraries. Where more stands there already, for host code, it stays: the
    kernel may run on either. Costs of operators that call the kernel are raised
    to that scratch.

    ```mlir
    func.func private @twice(%x: tensor<100x200xf32>) -> tensor<100x200xf32> attributes {baechi.kernel} {
      %e = tensor.empty() : tensor<200x100xf32>
      %y = linalg.transpose ins(%x : tensor<100x200xf32>) outs(%e : tensor<200x100xf32>) permutation = [1, 0]
      %z = linalg.exp ins(%y : tensor<200x100xf32>) outs(%e : tensor<200x100xf32>) -> tensor<200x100xf32>
      %r = tensor.empty() : tensor<100x200xf32>
      %t = linalg.transpose ins(%z : tensor<200x100xf32>) outs(%r : tensor<100x200xf32>) permutation = [1, 0]
      return %t : tensor<100x200xf32>
    }
    ```
    becomes by `--baechi-cuda-scratch`
    ```mlir
    func.func private @twice(%arg0: tensor<100x200xf32>) -> tensor<100x200xf32> attributes {baechi.cuda_blocks = 79 : i64, baechi.cuda_commands = 3 : i64, baechi.kernel, baechi.kernel_scratch = 80000 : i64} {
    ...
    ```
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def LowerCudaKernels : Pass<"baechi-lower-cuda-kernels", "::mlir::ModuleOp"> {
  let summary = "lower every kernel to GPU code and a host function";
  let description = [{
    Each kernel NAME becomes an `llvm.func @NAME__cuda` that takes a device
    pointer an argument, a result and its scratch. It puts the kernel's work on
    the current stream by the calls of Baechi/Runtime/CudaAbi.h: products of
    matrices by `baechi_cuda_multiply`, computed as `baechi.cuda_product` says,
    convolutions whose `baechi.cuda_convolution` asks for that by
    `baechi_cuda_convolve`, launches of generated code by
    `baechi_cuda_launch_accesses`, with the bytes behind each parameter that the
    code reads and writes. The generated code of all kernels is one fat
    binary, a constant of the module, made by the CUDA Toolkit's ptxas and
    fatbinary ([cuda-kernels.md](cuda-kernels.md)).

    ```mlir
    func.func private @matmul_12x9x7(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<12x9xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
      %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
      return %r : tensor<12x9xf32>
    }
    ```
    becomes by `--baechi-lower-cuda-kernels=stage=launches`
    ```mlir
    llvm.func @baechi_cuda_multiply(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32)
    ...
    func.func private @matmul_12x9x7(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: !llvm.ptr) attributes {baechi.kernel, baechi.kernel_scratch = 1212 : i64} {
    ...
    ```
    A kernel that is still called on tensors is an error: `baechi-lower` lowers
    the callers.
  }];
  let options = [
    ListOption<"chips", "chips", "std::string",
               "the GPUs to make code for; the first one's PTX is for newer "
               "ones (sm_80,sm_90,sm_100)">,
    Option<"toolkit", "toolkit", "std::string", "\"\"",
           "the CUDA Toolkit's folder; else CUDA_HOME says it, or PATH">,
    Option<"keepKernels", "keep-kernels", "bool", "false",
           "leave the kernels on tensors in the module, for other devices">,
    Option<"stage", "stage", "std::string", "\"code\"",
           "code; launches: gpu.launch on buffers; emulation or "
           "reversed-emulation: host code that runs blocks and threads in turn">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Lower : Pass<"baechi-lower", "::mlir::ModuleOp"> {
  let summary = "lower a planned program to a device's code";
  let description = [{
    Each device's module becomes a function `int32_t (baechi_context *, char *)`
    that calls kernels and the runtime's C interface
    (Baechi/Runtime/Abi.h; of GPUs also CudaAbi.h, and their kernels' names end
    in `__cuda`); the module gets the program's manifest
    (docs/program-format.md) as the string `PREFIX_program`.

    ```mlir
    #machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      func.func private @step(tensor<16xf32>) -> tensor<16xf32>
      module @a attributes {baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>, baechi.device = "a"} {
        func.func private @exp(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
        func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
          %0 = call @exp(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
          return %0 : tensor<16xf32>
        }
      }
    }
    ```
    becomes by `--baechi-lower=prefix=p`
    ```mlir
    ...
    llvm.func @p_step_a(%arg0: !llvm.ptr, %arg1: !llvm.ptr) -> i32 {
    ...
    llvm.call @baechi_operator_begin(%arg0, %2) : (!llvm.ptr, i32) -> ()
    llvm.call @baechi.kernel.exp(%arg1, %1, %arg1) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
    llvm.call @baechi_operator_end(%arg0, %2) : (!llvm.ptr, i32) -> ()
    ...
    llvm.func @baechi_operator_begin(!llvm.ptr, i32)
    llvm.func @baechi.kernel.exp(!llvm.ptr, !llvm.ptr, !llvm.ptr)
    llvm.func @baechi_operator_end(!llvm.ptr, i32)
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "host, or cuda: for GPUs and host devices">,
    Option<"prefix", "prefix", "std::string", "\"baechi\"",
           "what the module's symbols begin with">
  ];
  let dependentDialects = ["::baechi::BaechiDialect", "::mlir::LLVM::LLVMDialect"];
}

def ExportIree : Pass<"baechi-export-iree", "::mlir::ModuleOp"> {
  let summary = "turn a placed program into IREE's input";
  let description = [{
    IREE runs an operation where its operands lie. So the placement is written
    as data movement: a device global for each device of the machine, a
    `flow.tensor.transfer` for each tensor and device that it crosses to, a
    `flow.tensor.barrier` on the local operands of an operator that also reads
    received ones (it keeps independent work concurrent), and arguments and
    results pinned. Every operator's location becomes its name in the placement.
    Kernels stay functions that are called (IREE inlines them), one a device
    where they insert into fresh tensors, which must be pinned. Constants, and
    operators that read no argument and that IREE so computes when it compiles,
    are transferred to every reader. Kernels must not loop over rows:
    `--baechi-form-kernels=row-loops=false`.

    IREE's operations are unregistered here; the pass allows unregistered
    dialects in the context.

    ```mlir
    #machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1000>, <"host1", kind = "host", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      func.func @step(%x: tensor<8xf32> {baechi.device = "host0"}, %y: tensor<8xf32> {baechi.device = "host0"}) -> tensor<8xf32> {
        %a = arith.addf %x, %x {baechi.device = "host1"} : tensor<8xf32>
        %b = arith.subf %y, %a {baechi.device = "host0"} : tensor<8xf32>
        return %b : tensor<8xf32>
      }
    }
    ```
    becomes by `--baechi-export-iree`
    ```mlir
    "util.global"() <{initial_value = #hal.device.alias<"local"[0]> : !hal.device, sym_name = "host0", sym_visibility = "private", type = !hal.device}> : () -> ()
    "util.global"() <{initial_value = #hal.device.alias<"local"[1]> : !hal.device, sym_name = "host1", sym_visibility = "private", type = !hal.device}> : () -> ()
    func.func @step(%arg0: tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}, %arg1: tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}) -> (tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}) {
      %0 = "flow.tensor.transfer"(%arg0) <{operandSegmentSizes = array<i32: 1, 0>, target = #hal.device.affinity<@host1>}> : (tensor<8xf32>) -> tensor<8xf32>
      %1 = arith.addf %0, %0 : tensor<8xf32>
      %2 = "flow.tensor.barrier"(%arg1) <{target = #hal.device.affinity<@host0>}> : (tensor<8xf32>) -> tensor<8xf32>
      %3 = "flow.tensor.transfer"(%1) <{operandSegmentSizes = array<i32: 1, 0>, target = #hal.device.affinity<@host0>}> : (tensor<8xf32>) -> tensor<8xf32>
      %4 = arith.subf %2, %3 : tensor<8xf32>
      return %4 : tensor<8xf32>
    }
    ```
  }];
  let options = [
    Option<"devices", "devices", "std::string", "\"\"",
           "IREE's target of each device kind, KIND=TARGET[,...], beside or "
           "instead of host=local,cpu=local,cuda=cuda,hip=hip,vulkan=vulkan,"
           "metal=metal">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def ExportMpmd : Pass<"baechi-export-mpmd", "::mlir::ModuleOp"> {
  let summary = "write a placed program in Shardy's MPMD dialect";
  let description = [{
    A device becomes a mesh of one device, an operator an `mpmd.fragment` on it
    with the operator's name as its origin, a message an `mpmd.transfer`.
    Fragments stand in the order of their planned starts. Kernels stay functions
    that fragments call; constants and views are made again in each fragment that
    reads them, so only what the plan moves is moved. An argument that a result
    takes the place of (`baechi.updated_by`) has `tf.aliasing_output`.

    Shardy's operations are unregistered here; the pass allows unregistered
    dialects in the context. Print the module with `--mlir-print-op-generic`: JAX's
    MLIR has Shardy's dialects and not linalg's ([shardy.md](shardy.md)).

    ```mlir
    #machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      func.func @step(%x: tensor<8xf32> {baechi.device = "a"}) -> tensor<8xf32> {
        %y = math.exp %x {baechi.device = "a", baechi.name = "exp"} : tensor<8xf32>
        %z = math.log %y {baechi.device = "b", baechi.name = "log"} : tensor<8xf32>
        return %z : tensor<8xf32>
      }
    }
    ```
    becomes by `--baechi-export-mpmd`
    ```mlir
    func.func @step(%arg0: !mpmd.mesh_tensor<"a", tensor<8xf32>>) -> !mpmd.mesh_tensor<"b", tensor<8xf32>> attributes {topology = #mpmd.topology<<"a" : <["x"=1]>>, <"b" : <["x"=1]>>>} {
      %0 = "mpmd.fragment"(%arg0) <{mesh_name = "a", origin = [#mpmd.user_origin<"exp">]}> ({
      ^bb0(%arg1: tensor<8xf32>):
        %3 = math.exp %arg1 : tensor<8xf32>
        "mpmd.return"(%3) : (tensor<8xf32>) -> ()
      }) : (!mpmd.mesh_tensor<"a", tensor<8xf32>>) -> !mpmd.mesh_tensor<"a", tensor<8xf32>>
      %1 = "mpmd.transfer"(%0) : (!mpmd.mesh_tensor<"a", tensor<8xf32>>) -> !mpmd.mesh_tensor<"b", tensor<8xf32>>
      %2 = "mpmd.fragment"(%1) <{mesh_name = "b", origin = [#mpmd.user_origin<"log">]}> ({
      ^bb0(%arg1: tensor<8xf32>):
        %3 = math.log %arg1 : tensor<8xf32>
        "mpmd.return"(%3) : (tensor<8xf32>) -> ()
      }) : (!mpmd.mesh_tensor<"b", tensor<8xf32>>) -> !mpmd.mesh_tensor<"b", tensor<8xf32>>
      return %2 : !mpmd.mesh_tensor<"b", tensor<8xf32>>
    }
    ```
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

#endif // BAECHI_CONVERSION_PASSES
