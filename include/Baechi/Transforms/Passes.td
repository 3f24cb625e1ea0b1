//===- Passes.td - Passes on programs of operators -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_PASSES
#define BAECHI_TRANSFORMS_PASSES

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
    in pairs (`reductions`), or it stays whole. Whole tensors are put together
    only for operations that cannot be cut. The step computes the same function:
    bit for bit without `reductions`, as far as kernels sum in an order that
    does not depend on their size; with them sums are rounded in another order.

    What persons ask for comes first (`baechi.split` on arguments and
    operations, which `--baechi-constrain` sets by patterns; one piece: it stays
    whole). With `pieces` of 2 and more the pass then chooses: of the
    dimensions of the heaviest operations the one that saves the most by the
    default roofline, and again, until none saves anything. Remarks say what was
    cut, and what stayed whole, and why.

    With `chained` the pieces are micro-batches, which follow each other through
    the step. A piece's reduction starts from what the one before it has made,
    in its buffer where that is free, so that one partial result is alive and
    not as many as there are pieces; sums are in the order of the pieces. Where
    pieces read what all of them are made into, as the statistics of a batch
    normalisation, they meet: a remark (`pieces-meet`) says where.

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
           "heaviest class, the batch, is cut">
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

def Colocate : Pass<"baechi-colocate", "::mlir::ModuleOp"> {
  let summary = "group what must be on one device";
  let description = [{
    An argument and the operator that computes its next value are one group, so
    that parameters are updated in place. Groups that the program already has
    are kept, and united where an argument's update joins two of them.

    ```mlir
    func.func @step(%w: tensor<4xf32> {baechi.name = "w", baechi.updated_by = 0 : i64}, %g: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.subf %w, %g : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
    becomes by `--baechi-colocate`
    ```mlir
    func.func @step(%arg0: tensor<4xf32> {baechi.group = "w", baechi.name = "w", baechi.updated_by = 0 : i64}, %arg1: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.subf %arg0, %arg1 {baechi.group = "w"} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
}

def Fuse : Pass<"baechi-fuse", "::mlir::ModuleOp"> {
  let summary = "group what should be on one device";
  let description = [{
    Bounded co-placement of the placement problem: operators that would only
    wait for transfers when they were apart join, as long as a group stays under
    its share of the program's work and memory. Written as `baechi.group`, which
    placers then keep. (`--baechi-place` does the same for itself unless
    grouping=none.)

    ```mlir
    #cost = #baechi.cost<time_ns = {host = 100}, scratch = 0>
    func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
      %0 = math.exp %x {baechi.cost = #cost, baechi.name = "exp"} : tensor<64xf32>
      %1 = math.log %0 {baechi.cost = #cost, baechi.name = "log"} : tensor<64xf32>
      return %1 : tensor<64xf32>
    }
    ```
    becomes by `--baechi-fuse=machine=host:2@1GiB`
    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1073741824>, <"host1", kind = "host", memory = 1073741824>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000, lends>, link_model = sequential>} {
      func.func @step(%arg0: tensor<64xf32> {baechi.group = "arg0"}) -> tensor<64xf32> {
        %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 100}, scratch = 0>, baechi.group = "arg0", baechi.name = "exp"} : tensor<64xf32>
        %1 = math.log %0 {baechi.cost = #baechi.cost<time_ns = {host = 100}, scratch = 0>, baechi.name = "log"} : tensor<64xf32>
        return %1 : tensor<64xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

defvar placerNames =
    "mtopo, mtopo-nonuniform, metf, msct, etf, sct, expert, single, "
    "mostly-single, round-robin, even-split, split, annealing";

def Place : Pass<"baechi-place", "::mlir::ModuleOp"> {
  let summary = "place every operator on a device";
  let description = [{
    Puts `baechi.device` and `baechi.start` on every operator and argument,
    `baechi.sends` on those whose tensors cross devices, and the certificate on
    the function. The placer may be given as a bare word:
    `--baechi-place=msct`. A program that fits no placement is an error that
    names the bytes needed, the limits and the largest culprits.

    ```mlir
    #cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
    func.func @step(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
      %0 = math.exp %x {baechi.cost = #cost} : tensor<64xf32>
      %1 = math.log %y {baechi.cost = #cost} : tensor<64xf32>
      %2 = arith.addf %0, %1 {baechi.cost = #cost} : tensor<64xf32>
      return %2 : tensor<64xf32>
    }
    ```
    becomes by `--baechi-place="metf machine=host:2@1MiB budget=0"`
    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000, lends>, link_model = sequential>} {
      func.func @step(%arg0: tensor<64xf32> {baechi.device = "host0"}, %arg1: tensor<64xf32> {baechi.device = "host1"}) -> tensor<64xf32> attributes {baechi.certificate = #baechi.placement_certificate<placer = "metf", winner = "metf", makespan = 20000, lower_bound = 18000, bound = "critical path", single_device = 0, operators = 5, groups = 3, peaks = [1024, 512]>} {
        %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host0", baechi.start = 0 : i64} : tensor<64xf32>
        %1 = math.log %arg1 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host1", baechi.sends = [#baechi.transfer<result = 0, from = "host1", to = "host0", start = 9000, end = 11000>], baechi.start = 0 : i64} : tensor<64xf32>
        %2 = arith.addf %0, %1 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host0", baechi.start = 11000 : i64} : tensor<64xf32>
        return %2 : tensor<64xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"placer", "placer", "std::string", "\"msct\"",
           placerNames>,
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">,
    Option<"budget", "budget", "std::string", "\"auto\"",
           "improvement over the placer: auto (about a second at most), 0 (the "
           "placer's pure result), seconds (30, 0.5s) or evaluations (5000e)">,
    Option<"grouping", "grouping", "std::string", "\"all\"",
           "grouping steps of the placer: all, none, or a list joined by '+' "
           "or ','">,
    Option<"expert", "expert", "std::string", "\"\"",
           "expert file, for the placer expert and as a candidate of others">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Constrain : Pass<"baechi-constrain", "::mlir::ModuleOp"> {
  let summary = "pin, group and cut operators by patterns of names or locations";
  let description = [{
    Sets `baechi.pin`, `baechi.group` and `baechi.split` on the operators and
    arguments that patterns (`*`, `?`, `[...]`) name: by their names, or, with a leading `@`,
    by their locations as diagnostics print them.

    ```
    --baechi-constrain="pins=enc/*=gpu0,@model.py:12:*=gpu1 groups=dec/embed*=embeddings"
    ```

    `dev0`, `dev1`, … are the machine's devices by number, where none is named so.
    `splits=x=0:2` cuts dimension 0 in two for `--baechi-split`, which comes
    behind; `splits=head/*=whole` keeps operators in one piece. A cut is for the
    operators that a pattern names, and for arguments where it names no operator.
    A pattern that names nothing, a device that the machine does not have and an
    operator that is pinned or grouped otherwise already are errors.

    ```mlir
    func.func @step(%x: tensor<4xf32> {baechi.name = "x"}) -> tensor<4xf32> {
      %0 = math.exp %x {baechi.name = "encoder/exp"} : tensor<4xf32>
      %1 = math.log %0 {baechi.name = "decoder/log"} : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
    becomes by `--baechi-constrain="pins=enc*=host1 groups=x=g,*log=g"`
    ```mlir
    func.func @step(%arg0: tensor<4xf32> {baechi.group = "g", baechi.name = "x"}) -> tensor<4xf32> {
      %0 = math.exp %arg0 {baechi.name = "encoder/exp", baechi.pin = "host1"} : tensor<4xf32>
      %1 = math.log %0 {baechi.group = "g", baechi.name = "decoder/log"} : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    ListOption<"pins", "pins", "std::string", "PATTERN=DEVICE, with commas">,
    ListOption<"groups", "groups", "std::string", "PATTERN=GROUP, with commas">,
    ListOption<"splits", "splits", "std::string",
               "PATTERN=DIM:PIECES or PATTERN=whole, with commas">,
    Option<"replace", "replace", "bool", "false",
           "take off the pins, groups and cuts that are there first, as those that "
           "--baechi-load-placement made">,
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE], to look for the devices in; "
           "default: the module's baechi.machine, if any">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def LoadPlacement : Pass<"baechi-load-placement", "::mlir::ModuleOp"> {
  let summary = "pin operators where a placement file had them";
  let description = [{
    Sets `baechi.pin` on every operator and argument that the file (docs/
    formats.md; `baechi-translate --baechi-to-placement` writes it) places, found
    by name, so that `--baechi-place` schedules them there again. The program
    may have changed since: what only one of the two has is a warning that names
    it, and what the file does not place is left to the placer; so are operators
    of one name (`exp`, `exp#1`) of which the two have different numbers.

    ```mlir
    #machine = #baechi.machine<devices = [<"gpu0", kind = "cuda", memory = 1000>, <"gpu1", kind = "cuda", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      func.func @step(%x: tensor<4xf32> {baechi.name = "x"}) -> tensor<4xf32> {
        %0 = math.exp %x {baechi.name = "encoder/exp"} : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }
    ```
    becomes by `--baechi-load-placement=file=saved.json`
    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"gpu0", kind = "cuda", memory = 1000>, <"gpu1", kind = "cuda", memory = 1000>], link_model = parallel>} {
      func.func @step(%arg0: tensor<4xf32> {baechi.name = "x"}) -> tensor<4xf32> {
        %0 = math.exp %arg0 {baechi.name = "encoder/exp", baechi.pin = "gpu1"} : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }
    ```
    when `saved.json` is
    ```json
    {"format": "baechi-placement", "version": 1, "ops": [{"id": 0, "name": "encoder/exp", "device": "gpu1"} ]}
    ```

    A device that the machine does not have, an operator that is pinned
    elsewhere already and a file that names no operator of the program are
    errors; `strict` makes every difference one.
  }];
  let options = [
    Option<"file", "file", "std::string", "\"\"",
           "placement file with names, optionally xz-compressed">,
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">,
    Option<"strict", "strict", "bool", "false",
           "a difference between file and program is an error">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Explain : Pass<"baechi-explain", "::mlir::ModuleOp"> {
  let summary = "say why operators of a placed program are where they are";
  let description = [{
    A remark at every operator that the pattern names: for each device the
    earliest start, the bytes that are needed and free, what excludes it, and
    the step's time with the operator and its group there. The pattern may be
    given as a bare word: `--baechi-explain=layer1/*`.

    `--baechi-explain=math.log` says of
    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000>, link_model = sequential>} {
      func.func @step(%arg0: tensor<64xf32> {baechi.device = "host0"}, %arg1: tensor<64xf32> {baechi.device = "host1"}) -> tensor<64xf32> attributes {baechi.certificate = #baechi.placement_certificate<placer = "metf", winner = "metf", makespan = 20032, lower_bound = 18000, bound = "critical path", single_device = 0, operators = 5, groups = 3>} {
        %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host0", baechi.start = 0 : i64} : tensor<64xf32>
        // expected-remark @+1 {{operator 3 'math.log' is on host1}}
        %1 = math.log %arg1 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host1", baechi.sends = [#baechi.transfer<result = 0, from = "host1", to = "host0", start = 9000, end = 11032>], baechi.start = 0 : i64} : tensor<64xf32>
        %2 = arith.addf %0, %1 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host0", baechi.start = 11032 : i64} : tensor<64xf32>
        return %2 : tensor<64xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"name", "name", "std::string", "\"*\"",
           "name, number or pattern of names">,
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">
  ];
}

def VerifyPlaced : Pass<"baechi-verify-placed", "::mlir::ModuleOp"> {
  let summary = "check that every operator has a device of the machine";
  let description = [{
    Changes nothing: errors at the operators and arguments that are on no device,
    on one that the machine does not have or that cannot run them, or elsewhere
    than their pin or group.

    `--baechi-verify-placed` says of
    ```mlir
    #machine = #baechi.machine<devices = [<"gpu0", kind = "cuda", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      func.func @step(%x: tensor<4xf32> {baechi.device = "gpu0"}) -> tensor<4xf32> {
        // expected-error @+1 {{'sum' is on 'gpu1', which the machine does not have}}
        %0 = arith.addf %x, %x {baechi.name = "sum", baechi.device = "gpu1"} : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }
    ```
  }];
}

def Partition : Pass<"baechi-partition", "::mlir::ModuleOp"> {
  let summary = "split a placed program into one module a device";
  let description = [{
    Each device's module holds its operators in planned order; tensors that
    cross devices become `baechi.send` and `baechi.recv` on queues, scheduled
    by need. The function that was split becomes a declaration of the whole, with
    `baechi.ends` where every step surely ends: all loops are counted, and all
    that is called is defined.
    Where a link lends, the receiver reads the sender's tensor where it lies and
    gives it back after its last use there; tensors of the devices in
    `copied-from`, and those that are passed on, are copied all the same.

    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000>, link_model = sequential>} {
      func.func @step(%arg0: tensor<64xf32> {baechi.device = "host0"}, %arg1: tensor<64xf32> {baechi.device = "host1"}) -> tensor<64xf32> attributes {baechi.certificate = #baechi.placement_certificate<placer = "metf", winner = "metf", makespan = 20032, lower_bound = 18000, bound = "critical path", single_device = 0, operators = 5, groups = 3>} {
        %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host0", baechi.start = 0 : i64} : tensor<64xf32>
        %1 = math.log %arg1 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host1", baechi.sends = [#baechi.transfer<result = 0, from = "host1", to = "host0", start = 9000, end = 11032>], baechi.start = 0 : i64} : tensor<64xf32>
        %2 = arith.addf %0, %1 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.device = "host0", baechi.start = 11032 : i64} : tensor<64xf32>
        return %2 : tensor<64xf32>
      }
    }
    ```
    becomes by `--baechi-partition`
    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000>, link_model = sequential>} {
      func.func private @step(tensor<64xf32> {baechi.device = "host0"}, tensor<64xf32> {baechi.device = "host1"}) -> (tensor<64xf32> {baechi.device = "host0"}) attributes {baechi.certificate = #baechi.placement_certificate<placer = "metf", winner = "metf", makespan = 20032, lower_bound = 18000, bound = "critical path", single_device = 0, operators = 5, groups = 3>, baechi.ends}
      module @host0 attributes {baechi.device = "host0"} {
        func.func @step(%arg0: tensor<64xf32> {baechi.argument = 0 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}) {
          %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.operator = 2 : i64, baechi.start = 0 : i64} : tensor<64xf32>
          %1 = baechi.recv from "host1" queue 0 seq 0 start 9000 end 11032 : !baechi.future<tensor<64xf32>>
          %2 = baechi.await %1 : !baechi.future<tensor<64xf32>>
          %3 = arith.addf %0, %2 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.operator = 4 : i64, baechi.start = 11032 : i64} : tensor<64xf32>
          return %3 : tensor<64xf32>
        }
      }
      module @host1 attributes {baechi.device = "host1"} {
        func.func @step(%arg0: tensor<64xf32> {baechi.argument = 1 : i64}) {
          %0 = math.log %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.operator = 3 : i64, baechi.start = 0 : i64} : tensor<64xf32>
          %1 = baechi.send %0 to "host0" queue 0 seq 0 start 9000 end 11032 {baechi.operator = 3 : i64} : tensor<64xf32>
          baechi.await %1 : !baechi.token
          return
        }
      }
    }
    ```
  }];
  let options = [ListOption<
      "copiedFrom", "copied-from", "std::string",
      "devices that lend nothing: their tensors are copied">];
  let dependentDialects = ["::baechi::BaechiDialect",
                           "::mlir::func::FuncDialect"];
}

def VerifyPartitioned : Pass<"baechi-verify-partitioned", "::mlir::ModuleOp"> {
  let summary = "check that queues agree and that no wait is circular";
  let description = [{
    Every message has one send and one recv, of one type, on the devices that
    each names; a queue is one directed pair's own, and both ends take its
    messages in ascending order; no wait depends on itself. Where the whole step
    is declared, each of its arguments and results is on one device: the
    declared one, if any, and of the declared type. Where
    `--baechi-plan-memory` has run, the arena fits the device, buffers are
    aligned and inside of it, and no tensor is written over before its last
    reader, a send's token or a recv's future is done with it. Every error has
    a note at the other end.

    `--baechi-verify-partitioned` says of
    ```mlir
    #machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      module @a attributes {baechi.device = "a"} {
        func.func @step(%x: tensor<4xf32>) {
          // expected-error @+1 {{from 'a' to 'b' is never received: 'b' has no recv of queue 0 seq 0}}
          %t = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
          baechi.await %t : !baechi.token
          return
        }
      }
      module @b attributes {baechi.device = "b"} {
        // expected-note @+1 {{the step of 'b'}}
        func.func @step() {
          return
        }
      }
    }
    ```
  }];
}

def PlanMemory : Pass<"baechi-plan-memory", "::mlir::ModuleOp"> {
  let summary = "give every tensor an offset in its device's arena";
  let description = [{
    Liveness in program order; a buffer that a send still reads is reused only
    after the send's token was awaited, and the pass moves the await there.
    Next values of arguments are computed in place where the program's order
    and the kernel allow, else copied at the end of the step. A plan that
    exceeds a device's memory is an error that names the bytes and the largest
    tensors at the peak.

    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000>, link_model = sequential>} {
      func.func private @step(tensor<64xf32> {baechi.device = "host0"}, tensor<64xf32> {baechi.device = "host1"}) -> (tensor<64xf32> {baechi.device = "host0"}) attributes {baechi.certificate = #baechi.placement_certificate<placer = "metf", winner = "metf", makespan = 20032, lower_bound = 18000, bound = "critical path", single_device = 0, operators = 5, groups = 3>}
      module @host0 attributes {baechi.device = "host0"} {
        func.func @step(%arg0: tensor<64xf32> {baechi.argument = 0 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}) {
          %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.start = 0 : i64} : tensor<64xf32>
          %1 = baechi.recv from "host1" queue 0 seq 0 start 9000 end 11032 : !baechi.future<tensor<64xf32>>
          %2 = baechi.await %1 : !baechi.future<tensor<64xf32>>
          %3 = arith.addf %0, %2 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.start = 11032 : i64} : tensor<64xf32>
          return %3 : tensor<64xf32>
        }
      }
      module @host1 attributes {baechi.device = "host1"} {
        func.func @step(%arg0: tensor<64xf32> {baechi.argument = 1 : i64}) {
          %0 = math.log %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.start = 0 : i64} : tensor<64xf32>
          %1 = baechi.send %0 to "host0" queue 0 seq 0 start 9000 end 11032 : tensor<64xf32>
          baechi.await %1 : !baechi.token
          return
        }
      }
    }
    ```
    becomes by `--baechi-plan-memory`
    ```mlir
    module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000>, link_model = sequential>} {
      func.func private @step(tensor<64xf32> {baechi.device = "host0"}, tensor<64xf32> {baechi.device = "host1"}) -> (tensor<64xf32> {baechi.device = "host0"}) attributes {baechi.certificate = #baechi.placement_certificate<placer = "metf", winner = "metf", makespan = 20032, lower_bound = 18000, bound = "critical path", single_device = 0, operators = 5, groups = 3>}
      module @host0 attributes {baechi.arena = #baechi.arena<bytes = 1024, resident = 256, live = 1024, limit = 1048576>, baechi.device = "host0"} {
        func.func @step(%arg0: tensor<64xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}) {
          %0 = math.exp %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.offset = array<i64: 256>, baechi.start = 0 : i64} : tensor<64xf32>
          %1 = baechi.recv from "host1" queue 0 seq 0 start 9000 end 11032 {baechi.offset = array<i64: 512>} : !baechi.future<tensor<64xf32>>
          %2 = baechi.await %1 : !baechi.future<tensor<64xf32>>
          %3 = arith.addf %0, %2 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.offset = array<i64: 768>, baechi.start = 11032 : i64} : tensor<64xf32>
          return %3 : tensor<64xf32>
        }
      }
      module @host1 attributes {baechi.arena = #baechi.arena<bytes = 512, resident = 256, live = 512, limit = 1048576>, baechi.device = "host1"} {
        func.func @step(%arg0: tensor<64xf32> {baechi.argument = 1 : i64, baechi.offset = 0 : i64}) {
          %0 = math.log %arg0 {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.offset = array<i64: 256>, baechi.start = 0 : i64} : tensor<64xf32>
          %1 = baechi.send %0 to "host0" queue 0 seq 0 start 9000 end 11032 : tensor<64xf32>
          baechi.await %1 : !baechi.token
          return
        }
      }
    }
    ```
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def PlaceAndPlan : Pass<"baechi-place-and-plan", "::mlir::ModuleOp"> {
  let summary = "place, partition and plan memory until the plan fits";
  let description = [{
    `--baechi-place`, `--baechi-verify-placed`, `--baechi-partition`,
    `--baechi-verify-partitioned`, `--baechi-plan-memory` and
    `--baechi-verify-partitioned` again. Placement promises peaks by its
    timeline; a plan may need more where receives are posted early or buffers
    leave gaps. Where it then exceeds a device's memory, the program is placed
    again with that device's limit lowered by what was missing, and between the
    two where no placement can meet the lower limit. When no attempt fits, the
    error is the first plan's, with a note of how often it was tried.

    Placers count with transfers that overlap computing; on host devices a copy
    takes the time of the device that does it. Where one device alone is then
    faster, the program is placed there instead and the remark `given-up` says
    so; not with pins or a budget of 0, which ask for a placement. Options
    are those of `--baechi-place`, the placer's bare word among them.

    Where links lend, a tensor stays on its device until its last use on
    another. A device that has no room for that lends nothing, with the remark
    `lends-nothing`; `transfers=copy` copies everything.

    ```mlir
    #cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
    func.func @step(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
      %0 = math.exp %x {baechi.cost = #cost} : tensor<64xf32>
      %1 = math.log %y {baechi.cost = #cost} : tensor<64xf32>
      %2 = arith.addf %0, %1 {baechi.cost = #cost} : tensor<64xf32>
      return %2 : tensor<64xf32>
    }
    ```
    becomes by `--baechi-place-and-plan="placer=metf machine=host:2@1MiB budget=0"`
    ```mlir
    ...
      module @host0 attributes {baechi.arena = #baechi.arena<bytes = 768, resident = 256, live = 768, limit = 1048576, promised = 1024>, baechi.device = "host0"} {
    ...
      module @host1 attributes {baechi.arena = #baechi.arena<bytes = 512, resident = 256, live = 512, limit = 1048576, promised = 512>, baechi.device = "host1"} {
    ...
    ```
  }];
  let options = [
    Option<"placer", "placer", "std::string", "\"msct\"",
           placerNames>,
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">,
    Option<"budget", "budget", "std::string", "\"auto\"",
           "improvement over the placer, as --baechi-place">,
    Option<"grouping", "grouping", "std::string", "\"all\"",
           "grouping steps of the placer, as --baechi-place">,
    Option<"expert", "expert", "std::string", "\"\"",
           "expert file, as --baechi-place">,
    Option<"transfers", "transfers", "std::string", "\"lend\"",
           "lend, where the machine's links do, or copy">,
    Option<"fitMemory", "fit-memory", "std::string", "\"auto\"",
           "where nothing fits: auto (compute values again, as "
           "--baechi-fit-memory) or never">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def FitMemory : Pass<"baechi-fit-memory", "::mlir::ModuleOp"> {
  let summary = "compute values again, so that fewer bytes are held at once";
  let description = [{
    Rewrites the step, before it is placed, so that all of it, one operator
    after the other, holds no more than a limit. Values that wait for a late use
    are let go and computed again by clones of their kernel calls, marked
    `baechi.recompute`; where a clone's operands are gone by then, they are
    cloned, too. What is let go is what costs least time a byte and waits
    longest. A clone runs after the operator before it and computes the same
    bits; nothing with effects is cloned, nor an update in place, nor what reads
    a tensor that has been overwritten by then. A step that holds no more than
    the limit stays as it is. Where nothing helps, the error names the operator
    that needs most by itself.

    `--baechi-place-and-plan` does so by itself where no plan fits, for the
    mildest of several limits whose plan does.

    ```mlir
    #cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
    #work = #baechi.cost<time_ns = {host = 9000}, scratch = 256>
    func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
      %0 = math.exp %x : tensor<64xf32>
      return %0 : tensor<64xf32>
    }
    func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
      %0 = arith.addf %x, %y : tensor<64xf32>
      return %0 : tensor<64xf32>
    }
    func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
      %0 = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
      %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
      %2 = call @exp(%1) {baechi.cost = #work} : (tensor<64xf32>) -> tensor<64xf32>
      %3 = call @add(%2, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      return %3 : tensor<64xf32>
    }
    ```
    becomes by `--baechi-fit-memory=limit=1024`
    ```mlir
    ...
    func.func @step(%arg0: tensor<64xf32>) -> tensor<64xf32> {
      %0 = call @exp(%arg0) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>} : (tensor<64xf32>) -> tensor<64xf32>
      %1 = call @exp(%0) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>} : (tensor<64xf32>) -> tensor<64xf32>
      %2 = call @exp(%1) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 256>} : (tensor<64xf32>) -> tensor<64xf32>
      %3 = call @exp(%arg0) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>, baechi.recompute} : (tensor<64xf32>) -> tensor<64xf32>
      %4 = call @add(%2, %3) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      return %4 : tensor<64xf32>
    }
    ```
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "0",
           "bytes; 0: what the machine's devices have together">,
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Strip : Pass<"baechi-strip", "::mlir::ModuleOp"> {
  let summary = "remove what placing added to a program";
  let description = [{
    Takes `baechi.*` attributes off operations, functions, their arguments and
    results, and the module. What is left is the program as it was before, byte
    for byte, where the author wrote none of them. A bare word
    (`--baechi-strip=plan`) says how far to go back:

    - `plan`: before `--baechi-place` (`baechi.device`, `baechi.start`,
      `baechi.sends`, `baechi.certificate`, `baechi.machine`);
    - `annotations` (the default): before `--baechi-annotate-costs`, too
      (`baechi.cost`, `baechi.group`, `baechi.pin`, `baechi.implementation`,
      `baechi.kernel_scratch`); what only a program's author writes stays
      (`baechi.updated_by`, `baechi.name`, ...);
    - `all`: a program that knows nothing of Baechi.

    `keep` names what the author wrote of these, as
    `--baechi-strip=keep=baechi.machine,baechi.group` does. Every attribute of
    such a name stays, those that passes added as well.

    ```mlir
    func.func @step(%x: tensor<4xf32> {baechi.device = "host0", baechi.name = "x"}) -> tensor<4xf32> attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "msct", makespan = 200, lower_bound = 200, bound = "path", single_device = 200, operators = 2, groups = 2>} {
      %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 200}, scratch = 0>, baechi.device = "host0", baechi.start = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
    becomes by `--baechi-strip`
    ```mlir
    func.func @step(%x: tensor<4xf32> {baechi.name = "x"}) -> tensor<4xf32> {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
    Passes that rewrite the program (`--baechi-form-kernels`,
    `--baechi-partition` and what follows it) are not undone.
  }];
  let options = [
    Option<"what", "what", "std::string", "\"annotations\"",
           "plan, annotations or all">,
    ListOption<"keep", "keep", "std::string",
               "attributes that stay, for what the program's author wrote">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

#endif // BAECHI_TRANSFORMS_PASSES
