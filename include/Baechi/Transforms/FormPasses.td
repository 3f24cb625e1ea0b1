//===- FormPasses.td - From a step to operators with costs -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_FORMPASSES
#define BAECHI_TRANSFORMS_FORMPASSES

include "mlir/Pass/PassBase.td"

def InlineStep : Pass<"baechi-inline-step", "::mlir::ModuleOp"> {
  let summary = "make the step one function";
  let description = [{
    Kernels are formed of one function. What the step calls becomes part of it,
    through calls and function constants; private functions that nothing calls
    any more go. Calls of kernels stay: they are operators.

    ```mlir
    func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @twice(%x) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = arith.addf %x, %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    becomes by `--baechi-inline-step`
    ```mlir
    module {
      func.func @step(%arg0: tensor<8xf32>) -> tensor<8xf32> {
        %0 = arith.addf %arg0, %arg0 : tensor<8xf32>
        return %0 : tensor<8xf32>
      }
    }
    ```
  }];
}

def Split : Pass<"baechi-split", "::mlir::ModuleOp"> {
  let summary = "cut operations into pieces that devices compute at once";
  let description = [{
    Before kernels are formed. A dimension that is cut is followed through the
    step: what reads or makes a tensor along it is cut, too, and becomes one
    operation a piece; nothing is communicated within such a class. Where a
    reduction meets the dimension, pieces make partial results, which are joined
    in pairs (`reductions`), or it stays whole. What reads windows along its own
    dimension, a convolution or a pool, begins a class: a piece reads as much of
    its operand as its windows reach, of the neighbours' pieces a strip (halo).
    Whole tensors are put together only for operations that cannot be cut. The
    step computes the same function: bit for bit without `reductions`, as far as
    kernels sum in an order that does not depend on their size; with them sums
    are rounded in another order.

    What persons ask for comes first (`baechi.split` on arguments and
    operations, which `--baechi-constrain` sets by patterns; one piece: it stays
    whole). With `pieces` of 2 and more the pass then chooses: of the
    dimensions of the heaviest operations the one that saves the most by the
    default roofline, and again, until none saves anything. Where devices share
    memory, that is compared (unless `largest-first`) with plans that cut the
    classes first which lose the least to copies and sums: features of layers
    may save more together than the batch, whose pieces pack all weights and sum
    up all gradients. Remarks say what was cut, and what stayed whole, and why.

    With `chained` the pieces are micro-batches, which follow each other through
    the step. A piece's reduction starts from what the one before it has made,
    in its buffer where that is free, so that one partial result is alive and
    not as many as there are pieces; sums are in the order of the pieces. Where
    pieces read what all of them are made into, as the statistics of a batch
    normalisation, they meet: a remark (`pieces-meet`) says where.

    With `merge-moments`, and where devices share no memory, a sum and the sum of
    the squares of what is centred on its mean, as those of a batch
    normalisation, are one message: each piece sums up the squares about its own
    mean, and pairs are merged (Chan, Golub, LeVeque, 1979).

    With `stored` an argument that is read in the same pieces by all that reads
    it, and whose next value (`baechi.updated_by`) is made in them, becomes an
    argument a piece, with `baechi.piece`; results likewise. A compiled program
    is given and gives the wholes all the same: its runtime cuts them and puts
    them together. What stays whole gets a remark (`stored-whole`) why.

    ```mlir
    func.func @step(%x: tensor<4x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 1]>}) -> tensor<4x8xf32> {
      %0 = math.exp %x : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
    becomes by `--baechi-split`
    ```mlir
    module {
      func.func @step(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
        %extracted_slice = tensor.extract_slice %arg0[0, 0] [3, 8] [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
        %extracted_slice_0 = tensor.extract_slice %arg0[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
        %0 = math.exp %extracted_slice : tensor<3x8xf32>
        %1 = math.exp %extracted_slice_0 : tensor<1x8xf32>
        %2 = tensor.empty() : tensor<4x8xf32>
        %inserted_slice = tensor.insert_slice %0 into %2[0, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<4x8xf32>
        %inserted_slice_1 = tensor.insert_slice %1 into %inserted_slice[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<4x8xf32>
        return %inserted_slice_1 : tensor<4x8xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"pieces", "pieces", "unsigned", "0",
           "pieces of what the pass chooses to cut; below 2: nothing but what "
           "the program asks for">,
    Option<"reductions", "reductions", "bool", "false",
           "cut reductions, too: sums are rounded in another order">,
    Option<"forced", "forced", "bool", "false",
           "cut whatever can be cut, whether it saves time or not (for tests)">,
    Option<"chained", "chained", "bool", "false",
           "pieces follow each other (micro-batches): each adds to the partial "
           "result of the one before, and only what has the extent of the "
           "heaviest class, the batch, is cut">,
    Option<"needsBatch", "needs-batch", "bool", "false",
           "with `chained`: an error where what is cut is next to nothing "
           "beside a loop that goes through what is given">,
    Option<"ordered", "ordered", "bool", "false",
           "as few sums as possible are in another order: `chained` cuts none "
           "whose terms lie together, and what the program asks for is no part "
           "of the batch and cut where no sum is">,
    Option<"largestFirst", "largest-first", "bool", "false",
           "the class that saves the most is cut first, and other plans are "
           "not looked at">,
    Option<"sentPercent", "sent-percent", "unsigned", "100",
           "of the time that pieces send each other something over links, what "
           "is expected not to overlap with what is computed">,
    Option<"restPieces", "rest-pieces", "unsigned", "0",
           "what no class of so many `pieces` takes is cut in so many; below 2: "
           "it stays whole">,
    Option<"restSentPercent", "rest-sent-percent", "unsigned", "100",
           "`sent-percent` of these">,
    Option<"mergeMoments", "merge-moments", "bool", "false",
           "over links the sums of a mean and of its variance are sent in one "
           "message, each piece's about its own mean">,
    Option<"stored", "stored", "bool", "false",
           "arguments and results are stored in pieces where nothing reads "
           "them whole">
  ];
  let statistics = [
    Statistic<"cutOperations", "cut", "operations that were cut">
  ];
  let dependentDialects = [
    "::baechi::BaechiDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ExportSdy : Pass<"baechi-export-sdy", "::mlir::ModuleOp"> {
  let summary = "write what would be cut as Shardy's annotations";
  let description = [{
    Instead of `--baechi-split`: the plan of cuts, one piece a device, for
    devices that all run one program. Piece i of everything is device i's, and
    what is not cut is computed by every device. Arguments, results and
    operations get `sdy.sharding` on a mesh with one axis, `devices`. A partial
    sum that is added to others before it is joined is `unreduced`; where a
    reshape has joined the cut dimension behind others, pieces are no blocks, and
    the sharding is left open. `plan` names a file for the same as JSON, with the
    collectives that the plan needs ([formats.md](formats.md)).

    What is no such plan is an error: pieces that are uneven or not one a device,
    devices of several kinds, operators that are pinned or placed.

    ```mlir
    func.func @step(%x: tensor<4x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<4x8xf32> {
      %0 = math.exp %x : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
    becomes by `--baechi-export-sdy=machine=host:2`
    ```mlir
    module {
      "sdy.mesh"() <{mesh = #sdy.mesh<["devices"=2]>, sym_name = "mesh"}> : () -> ()
      ...
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's "
           "baechi.machine">,
    Option<"choose", "choose", "bool", "true",
           "cut what saves time, too; false: only what the program asks for">,
    Option<"planFile", "plan", "std::string", "\"\"",
           "a file for the plan as JSON">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def ExportNodes : Pass<"baechi-export-nodes", "::mlir::ModuleOp"> {
  let summary = "write the step as a graph for machines of nodes";
  let description = [{
    Before kernels are formed, of a step with costs: the graph file that
    `--baechi-to-graph` of `baechi-translate` writes, in `parts` of the batch,
    with ways in `pieces` and with what replicas exchange
    ([nodes.md](nodes.md)). The step stays as it is. The batch is found as for
    replicas; a step without one is an error. What stands against parts gets a
    remark (`not-parted`), and the graph then is of one part.

    `--baechi-export-nodes=file=graph.json` says of a step that has no costs
    ```mlir
    func.func @step(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {
      // expected-error@below {{has no 'baechi.cost'; run --baechi-annotate-costs}}
      %0 = math.exp %x : tensor<16x8xf32>
      return %0 : tensor<16x8xf32>
    }
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "\"\"", "where the graph is written">,
    Option<"parts", "parts", "unsigned", "8", "equal parts of the batch">,
    ListOption<"pieces", "pieces", "unsigned",
               "of ways; of rows those that divide a part's">,
    Option<"kind", "kind", "std::string", "\"cuda\"",
           "of the machine's devices, which add up what pieces make">,
    Option<"roofline", "roofline", "std::string", "\"\"",
           "KIND:GFLOPS:GBS:LAUNCH_NS[,...]: by which a piece takes less time "
           "than the whole; default: as of --baechi-annotate-costs">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def FormKernels : Pass<"baechi-form-kernels", "::mlir::ModuleOp"> {
  let summary = "outline the operators as they will execute";
  let description = [{
    Fuses elementwise work into its producers and consumers, groups operations
    over the same rows (softmax and layer norm become one kernel), adds to a
    reduction what little follows it, and outlines each distinct operator once
    as a private function with `baechi.kernel`. What is left of the program is a
    straight line of calls, with reshapes and slices that are no copies between
    them. Two operators whose kernels are the same text share
    one kernel. `report` says as a remark what became of the program: operators
    and the bytes that they read and write, before and after, and the number of
    distinct kernels.

    ```mlir
    func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      %1 = linalg.add ins(%0, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    ```
    becomes by `--baechi-form-kernels`
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    module {
      func.func @step(%arg0: tensor<8xf32>) -> tensor<8xf32> {
        %0 = call @exp_add_8(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }
      func.func private @exp_add_8(%arg0: tensor<8xf32>) -> (tensor<8xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
        %0 = tensor.empty() : tensor<8xf32>
        %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<8xf32>) outs(%0 : tensor<8xf32>) {
        ^bb0(%in: f32, %out: f32):
          %2 = math.exp %in : f32
          %3 = arith.addf %2, %in : f32
          linalg.yield %3 : f32
        } -> tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"rowLoops", "row-loops", "bool", "true",
           "write kernels over rows as loops that compute a row at a time; false "
           "for a consumer that tiles for itself (IREE)">,
    Option<"maxBuffers", "max-buffers", "unsigned", "0",
           "tensors that a kernel may read and write at most, where fusing and "
           "grouping make it larger (24 for IREE); 0: any number">,
    Option<"reports", "report", "bool", "false",
           "say how many operators, kernels and bytes moved there are, before "
           "and after">
  ];
  let dependentDialects = [
    "::baechi::BaechiDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AnnotateCosts : Pass<"baechi-annotate-costs", "::mlir::ModuleOp"> {
  let summary = "give every operator a #baechi.cost";
  let description = [{
    A call of a kernel that the profile has a row for gets the measured median;
    every other operator gets the roofline's estimate: the larger of its
    floating-point operations over the kind's peak and its bytes over the
    kind's bandwidth, plus the launch overhead. Costs that the program already
    has are kept, for its author knows better (a warning counts them where a
    profile or a roofline is given); `replace=true` computes them again.

    ```mlir
    func.func @step(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = math.exp %x : tensor<64x64xf32>
      return %0 : tensor<64x64xf32>
    }
    ```
    becomes by `--baechi-annotate-costs=roofline=host:50:10:200`
    ```mlir
    func.func @step(%arg0: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 3477}, scratch = 0>} : tensor<64x64xf32>
      return %0 : tensor<64x64xf32>
    }
    ```
  }];
  let options = [
    Option<"profile", "profile", "std::string", "\"\"",
           "profile file (docs/profile-format.md)">,
    Option<"roofline", "roofline", "std::string", "\"\"",
           "device kinds as KIND:GFLOPS:GBS:LAUNCH_NS[,...]">,
    Option<"replace", "replace", "bool", "false",
           "compute the costs again that operators already have">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

#endif // BAECHI_TRANSFORMS_FORMPASSES
