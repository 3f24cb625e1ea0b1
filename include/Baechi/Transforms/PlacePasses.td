//===- PlacePasses.td - Operators to devices -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_PLACEPASSES
#define BAECHI_TRANSFORMS_PLACEPASSES

include "mlir/Pass/PassBase.td"

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
    "mtopo, mtopo-nonuniform, metf, msct, etf, sct, single, "
    "mostly-single, round-robin, even-split, split, expert, post-adjusted, "
    "annealing";

def Place : Pass<"baechi-place", "::mlir::ModuleOp"> {
  let summary = "place every operator on a device";
  let description = [{
    Puts `baechi.device` and `baechi.start` on every operator and argument,
    `baechi.sends` on those whose tensors cross devices, and the certificate on
    the function. The placer may be given as a bare word:
    `--baechi-place=msct`. A program that fits no placement is an error that
    names the bytes needed, the limits and the largest culprits.

    `objective=period` plans the time from one step to the next where steps
    overlap; the certificate's lower bound is that of this time, then. Steps of
    host devices alone overlap: others are an error.

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
           "expert file, for the placer expert and as a candidate of others">,
    Option<"objective", "objective", "std::string", "\"makespan\"",
           "makespan (the time of one step) or period (the time from one of "
           "several steps that overlap to the next, of host devices)">
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
    Option<"objective", "objective", "std::string", "\"makespan\"",
           "makespan or period, as --baechi-place">,
    Option<"transfers", "transfers", "std::string", "\"lend\"",
           "lend, where the machine's links do, or copy">,
    Option<"fitMemory", "fit-memory", "std::string", "\"auto\"",
           "where nothing fits: auto (compute values again, as "
           "--baechi-fit-memory, or let tensors wait in the machine's pool), "
           "whole (the same; who compiles cuts nothing) or never">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

#endif // BAECHI_TRANSFORMS_PLACEPASSES
