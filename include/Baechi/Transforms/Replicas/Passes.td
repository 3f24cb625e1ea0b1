//===- Passes.td - Passes on replicated steps -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_REPLICAS_PASSES
#define BAECHI_TRANSFORMS_REPLICAS_PASSES

include "mlir/Pass/PassBase.td"

def ExpandReplicas : Pass<"baechi-expand-replicas", "::mlir::ModuleOp"> {
  let summary = "write the program of one replica as that of all";
  let description = [{
    A step that is what one of N replicas computes, with StableHLO's collectives
    between them, becomes the step of all: each operation stands there once for
    each replica, and a collective is what it makes of all their values. The rest
    of the step is lowered to linalg, as `stablehlo-legalize-to-linalg` does, which
    leaves collectives; they are in MLIR's generic form
    (`--mlir-print-op-generic`). Known are `all_reduce`,
    `all_gather`, `reduce_scatter`, `all_to_all`, `collective_permute`,
    `replica_id` and `partition_id`, with groups; another, and one in a branch, is
    an error. A loop with one in it is written turn by turn, where it counts from
    one constant to another and the loops of a step make at most 16,384 operators
    of all replicas; else it is an error. Sums are of pairs of neighbours, in the
    order of the groups.

    Arguments of which each replica has its own part are marked
    (`baechi.batched`): the step of all has the parts one after the other, along
    the first dimension, and so it has results that differ between replicas.
    What is the same for all of them, as parameters are and all that is computed
    of them and of sums, stands there once. That an argument which all share gets
    another next value from each is an error.

    N is `mhlo.num_replicas` or `mhlo.num_partitions` of the module, of which one
    must be 1, or what the groups name; collectives must be among the processes
    that there are (their channel, `use_global_device_ids`). The step says it
    (`baechi.replicas`), and `--baechi-replicate=replicas=N` takes it as it is. A
    step without operations of StableHLO stays as it is.

    ```mlir
    func.func @step(%w: tensor<8xf32> {baechi.updated_by = 0 : i64}, %g: tensor<8xf32> {baechi.batched}) -> tensor<8xf32> {
      %0 = math.exp %g : tensor<8xf32>
      %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%s) : (tensor<f32>) -> ()
      }) : (tensor<8xf32>) -> tensor<8xf32>
      %2 = arith.subf %w, %1 : tensor<8xf32>
      return %2 : tensor<8xf32>
    }
    ```
    becomes by `--baechi-expand-replicas`
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    module {
      func.func @step(%arg0: tensor<8xf32> {baechi.updated_by = 0 : i64}, %arg1: tensor<16xf32> {baechi.batched}) -> tensor<8xf32> attributes {baechi.replicas = 2 : i64} {
        %extracted_slice = tensor.extract_slice %arg1[0] [8] [1] : tensor<16xf32> to tensor<8xf32>
        %extracted_slice_0 = tensor.extract_slice %arg1[8] [8] [1] : tensor<16xf32> to tensor<8xf32>
        %0 = math.exp %extracted_slice : tensor<8xf32>
        %1 = math.exp %extracted_slice_0 : tensor<8xf32>
        %2 = tensor.empty() : tensor<8xf32>
        %3 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%0, %1 : tensor<8xf32>, tensor<8xf32>) outs(%2 : tensor<8xf32>) attrs =  {baechi.partials} {
        ^bb0(%in: f32, %in_1: f32, %out: f32):
          %5 = arith.addf %in, %in_1 : f32
          linalg.yield %5 : f32
        } -> tensor<8xf32>
        %4 = arith.subf %arg0, %3 : tensor<8xf32>
        return %4 : tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = [
    "::baechi::BaechiDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def Replicate : Pass<"baechi-replicate", "::mlir::ModuleOp"> {
  let summary = "cut the batch into equal parts, one for each replica";
  let description = [{
    In place of `--baechi-split`, by the same rules: the batch is followed
    through the step, and every operation on it becomes one for each replica.
    Where a reduction meets the batch, replicas make partial results, which are
    joined in pairs, in the replicas' order; so statistics of a batch are those
    of the whole batch.

    What is cut first is what persons ask for (`baechi.split`); then the class of
    dimensions that the most work is along, of those that run through an
    argument, and through none which the step updates; and others of the same
    extent, where they save time. Parts are equal: a batch that
    does not divide is refused.

    A step that is written for replicas already (`baechi.replicas`) is not cut:
    its batched arguments, which it reads in parts, become as many arguments, and
    so do results that are put together of a part for each.

    The step then says how many replicas it has (`baechi.replicas`), and which
    arguments have a part for each (`baechi.batched`). `--baechi-form-kernels`
    forms no kernel of two replicas' operations, and says for which one a call
    computes (`baechi.replica`). An argument that is read in these parts alone,
    and a result that is made in them, is as many arguments or results
    (`baechi.piece`), so that it is not sent between devices.

    ```mlir
    func.func @step(%w: tensor<8xf32> {baechi.updated_by = 0 : i64}, %x: tensor<4x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> (tensor<8xf32>, tensor<4x8xf32>) {
      %0 = math.exp %x : tensor<4x8xf32>
      return %w, %0 : tensor<8xf32>, tensor<4x8xf32>
    }
    ```
    becomes by `--baechi-replicate=replicas=2`
    ```mlir
    module {
      func.func @step(%arg0: tensor<8xf32> {baechi.name = "arg0", baechi.updated_by = 0 : i64}, %arg1: tensor<2x8xf32> {baechi.batched, baechi.name = "arg1.piece0", baechi.piece = #baechi.piece<of = "arg1", whole = tensor<4x8xf32>, dim = 0, start = 0, size = 2>}, %arg2: tensor<2x8xf32> {baechi.batched, baechi.name = "arg1.piece1", baechi.piece = #baechi.piece<of = "arg1", whole = tensor<4x8xf32>, dim = 0, start = 2, size = 2>}) -> (tensor<8xf32>, tensor<2x8xf32> {baechi.piece = #baechi.piece<of = "result1", whole = tensor<4x8xf32>, dim = 0, start = 0, size = 2>}, tensor<2x8xf32> {baechi.piece = #baechi.piece<of = "result1", whole = tensor<4x8xf32>, dim = 0, start = 2, size = 2>}) attributes {baechi.replicas = 2 : i64} {
        %0 = math.exp %arg1 : tensor<2x8xf32>
        %1 = math.exp %arg2 : tensor<2x8xf32>
        return %arg0, %0, %1 : tensor<8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"replicas", "replicas", "unsigned", "0",
           "parts of the batch, 2 to 64">
  ];
  let dependentDialects = [
    "::baechi::BaechiDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def SliceParameters : Pass<"baechi-slice-parameters", "::mlir::ModuleOp"> {
  let summary = "cut the parameters of replicas in slices with owners";
  let description = [{
    On a step that `--baechi-replicate` has cut; others stay as they are. A
    parameter that the step updates and that is larger than a slice becomes as
    many arguments (`baechi.piece`), each with its part of the optimizer's state,
    and what joins the replicas' gradients and computes next values is done for
    each slice. So `--baechi-pin-replicas` gives each slice an owner, whose
    gradient arrives, and whose next value leaves, by itself. Each replica puts
    together what its operations read as a whole; slices of gradients are
    tensors of their own (`baechi.copied`).

    Slices are along the outermost dimension, and the cut is followed through
    what is elementwise alone: no sum changes, and no bit. A parameter whose
    update is not, as where gradients are clipped by their global norm, stays
    whole; a remark says why. With `factors` so does one whose gradient is the
    product of factors of fewer bytes, which are sent (`--baechi-pin-replicas`).

    ```mlir
    func.func @step(%w: tensor<32xf32> {baechi.name = "w", baechi.updated_by = 0 : i64}, %x: tensor<64xf32> {baechi.batched}) -> tensor<32xf32> attributes {baechi.replicas = 2 : i64} {
      %x0 = tensor.extract_slice %x[0] [32] [1] : tensor<64xf32> to tensor<32xf32>
      %x1 = tensor.extract_slice %x[32] [32] [1] : tensor<64xf32> to tensor<32xf32>
      %g0 = arith.mulf %x0, %w : tensor<32xf32>
      %g1 = arith.mulf %x1, %w : tensor<32xf32>
      %g = arith.addf %g0, %g1 : tensor<32xf32>
      %n = arith.subf %w, %g : tensor<32xf32>
      return %n : tensor<32xf32>
    }
    ```
    becomes by `--baechi-slice-parameters=slice-bytes=64`
    ```mlir
    module {
      func.func @step(%arg0: tensor<16xf32> {baechi.name = "w.piece0", baechi.piece = #baechi.piece<of = "w", whole = tensor<32xf32>, dim = 0, start = 0, size = 16>, baechi.updated_by = 0 : i64}, %arg1: tensor<16xf32> {baechi.name = "w.piece1", baechi.piece = #baechi.piece<of = "w", whole = tensor<32xf32>, dim = 0, start = 16, size = 16>, baechi.updated_by = 1 : i64}, %arg2: tensor<64xf32> {baechi.batched, baechi.name = "arg1"}) -> (tensor<16xf32> {baechi.piece = #baechi.piece<of = "result0", whole = tensor<32xf32>, dim = 0, start = 0, size = 16>}, tensor<16xf32> {baechi.piece = #baechi.piece<of = "result0", whole = tensor<32xf32>, dim = 0, start = 16, size = 16>}) attributes {baechi.replicas = 2 : i64} {
        %extracted_slice = tensor.extract_slice %arg2[0] [32] [1] : tensor<64xf32> to tensor<32xf32>
        %extracted_slice_0 = tensor.extract_slice %arg2[32] [32] [1] : tensor<64xf32> to tensor<32xf32>
        %0 = tensor.empty() : tensor<32xf32>
        %inserted_slice = tensor.insert_slice %arg0 into %0[0] [16] [1] : tensor<16xf32> into tensor<32xf32>
        %inserted_slice_1 = tensor.insert_slice %arg1 into %inserted_slice[16] [16] [1] : tensor<16xf32> into tensor<32xf32>
        %1 = arith.mulf %extracted_slice, %inserted_slice_1 : tensor<32xf32>
        %2 = tensor.empty() : tensor<32xf32>
        %inserted_slice_2 = tensor.insert_slice %arg0 into %2[0] [16] [1] : tensor<16xf32> into tensor<32xf32>
        %inserted_slice_3 = tensor.insert_slice %arg1 into %inserted_slice_2[16] [16] [1] : tensor<16xf32> into tensor<32xf32>
        %3 = arith.mulf %extracted_slice_0, %inserted_slice_3 : tensor<32xf32>
        %extracted_slice_4 = tensor.extract_slice %1[0] [16] [1] {baechi.copied} : tensor<32xf32> to tensor<16xf32>
        %extracted_slice_5 = tensor.extract_slice %1[16] [16] [1] {baechi.copied} : tensor<32xf32> to tensor<16xf32>
        %extracted_slice_6 = tensor.extract_slice %3[0] [16] [1] {baechi.copied} : tensor<32xf32> to tensor<16xf32>
        %extracted_slice_7 = tensor.extract_slice %3[16] [16] [1] {baechi.copied} : tensor<32xf32> to tensor<16xf32>
        %4 = arith.addf %extracted_slice_4, %extracted_slice_6 : tensor<16xf32>
        %5 = arith.addf %extracted_slice_5, %extracted_slice_7 : tensor<16xf32>
        %6 = arith.subf %arg0, %4 : tensor<16xf32>
        %7 = arith.subf %arg1, %5 : tensor<16xf32>
        return %6, %7 : tensor<16xf32>, tensor<16xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"sliceBytes", "slice-bytes", "int64_t", "0",
           "the largest slice; 0: by the links">,
    Option<"latencyBytes", "latency-bytes", "int64_t", "0",
           "what a link moves in the time of a message without bytes; 0: "
           "nothing is gained by slices">,
    Option<"factors", "factors", "bool", "false",
           "factors of gradients are sent where they are fewer bytes">
  ];
  let dependentDialects = [
    "::baechi::BaechiDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PinReplicas : Pass<"baechi-pin-replicas", "::mlir::ModuleOp"> {
  let summary = "give replicas their devices, and parameters their owners";
  let description = [{
    Before placement, on the kernels of a step that `--baechi-replicate` has
    cut. Calls of replica `i` of `n` are pinned to device `i * devices / n`. Each
    argument that the step updates has one owner: it is pinned there with what
    computes its next value and what joins the replicas' gradients for it.
    Arguments that are updated from each other, as a weight and its moments
    are, have one owner; the largest go first, each to the device that owns the
    fewest bytes by then. So the optimizer's state is divided over the devices,
    as ZeRO does in its first stage (Rajbhandari et al., "ZeRO: Memory
    Optimizations Toward Training Trillion Parameter Models", SC 2020).

    With `factors` a replica's part of a gradient, of which a dense layer's is
    the product of what the layer reads and of its output's gradient, is computed
    by the gradient's owner where these factors are fewer bytes: they are sent in
    its place, as Poseidon does (Zhang et al., USENIX ATC 2017). The same kernels
    compute the same values, so results have the same bits. The owner computes
    the products of all replicas for it. A remark `factors-sent` tells each.

    What is pinned already stays there. More devices than replicas are an error.
    The module is told the order of the replicas' messages (`baechi.exchange`,
    `baechi.slice_bytes`), which `--baechi-carry-parameters` follows.

    ```mlir
    #machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      func.func private @exp(tensor<2xf32>) -> tensor<2xf32> attributes {baechi.kernel}
      func.func @step(%x: tensor<4xf32> {baechi.batched}) -> (tensor<2xf32>, tensor<2xf32>) attributes {baechi.replicas = 2 : i64} {
        %a = tensor.extract_slice %x[0] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %b = tensor.extract_slice %x[2] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %0 = call @exp(%a) {baechi.replica = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        %1 = call @exp(%b) {baechi.replica = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        return %0, %1 : tensor<2xf32>, tensor<2xf32>
      }
    }
    ```
    becomes by `--baechi-pin-replicas`
    ```mlir
    ...
      func.func @step(%arg0: tensor<4xf32> {baechi.batched}) -> (tensor<2xf32>, tensor<2xf32>) attributes {baechi.replicas = 2 : i64} {
        %extracted_slice = tensor.extract_slice %arg0[0] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %extracted_slice_0 = tensor.extract_slice %arg0[2] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %0 = call @exp(%extracted_slice) {baechi.pin = "a", baechi.replica = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        %1 = call @exp(%extracted_slice_0) {baechi.pin = "b", baechi.replica = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        return %0, %1 : tensor<2xf32>, tensor<2xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "machine file, or host:N[@SIZE]; default: the module's "
           "baechi.machine">,
    Option<"exchange", "exchange", "std::string", "",
           "order of messages: fifo, slices, tictac or p3; default: as planned">,
    Option<"sliceBytes", "slice-bytes", "int64_t", "0",
           "bytes that messages are cut in; 0: they are whole">,
    Option<"factors", "factors", "bool", "false",
           "send the factors of gradients where they are fewer bytes">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def CarryParameters : Pass<"baechi-carry-parameters", "::mlir::ModuleOp"> {
  let summary = "send parameters when they are new, across the step's border";
  let description = [{
    On devices' programs, where the module says `baechi.exchange`; others stay as
    they are. A device that owns an argument which the step updates, and which
    another device reads, sends it at the step's start. Here it sends the next
    value, as soon as that is computed, and the reader has a copy of the argument
    as its own (`baechi.mirror`): it holds the first value at first, is filled
    once its last use in the step is over, and awaited before its first use in
    the next step (`baechi.await_carried`). So the last updates of a step
    overlap with the beginning of the next one. The owner awaits that its last
    value has left before it computes the next.

    An argument whose next value is not computed in its place is sent as before,
    and so is one that its reader passes on or returns.

    Messages get their priorities (`baechi.priority`) by the orders `tictac`
    and `p3`: by the first use of the parameter in the next step. In `fifo` they
    have none.

    Where a parameter is in slices that are all arguments by then, a device's own
    or copies, they are read as a whole where they lie (`baechi.joined`), unless
    one of its own gets its next value before the whole was read. Slices of what
    a device computes, as gradients, are sent from where they lie
    (`baechi.view`).

    What leads to a message, as the gradient of a parameter that another device
    owns, stays where it is planned or is computed as early as it can be, and
    updates stand where the simulated period of steps that overlap is shortest.
    Where `fifo` is predicted to be faster than the order that is asked for, it
    is taken (remark `fifo-is-faster`).

    ```mlir
    module attributes {baechi.exchange = "p3", baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>} {
      func.func private @next(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
      func.func private @use(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel}
      module @a attributes {baechi.device = "a"} {
        func.func private @next(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
        func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
          %t = baechi.send %w to "b" queue 0 seq 0 : tensor<4xf32>
          %0 = call @next(%w) : (tensor<4xf32>) -> tensor<4xf32>
          baechi.await %t : !baechi.token
          return %0 : tensor<4xf32>
        }
      }
      module @b attributes {baechi.device = "b"} {
        func.func private @use(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel}
        func.func @step() -> (tensor<4xf32> {baechi.result = 1 : i64}) {
          %f = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
          %w = baechi.await %f : !baechi.future<tensor<4xf32>>
          %0 = call @use(%w) : (tensor<4xf32>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }
      }
    }
    ```
    becomes by `--baechi-carry-parameters`
    ```mlir
    ...
        func.func @step(%arg0: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
          baechi.await_carried queue 0 seq 0
          %0 = call @next(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
          %1 = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64, baechi.priority = 0 : i64} : tensor<4xf32>
          return %0 : tensor<4xf32>
        }
    ...
        func.func @step(%arg0: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) -> (tensor<4xf32> {baechi.result = 1 : i64}) {
          baechi.await_carried queue 0 seq 0
          %0 = call @use(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
          %1 = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
          return %0 : tensor<4xf32>
        }
    ...
    ```
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

#endif // BAECHI_TRANSFORMS_REPLICAS_PASSES
