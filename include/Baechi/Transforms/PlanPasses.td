//===- PlanPasses.td - A program a device, and its memory -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_PLANPASSES
#define BAECHI_TRANSFORMS_PLANPASSES

include "mlir/Pass/PassBase.td"

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
    and the kernel allow, else copied at the end of the step. Tensors that a
    kernel with `baechi.parts` puts together are made in their places in what it
    makes, as long as no more bytes are live than were promised. On a GPU
    memory rests for 16 operators before it is used again, or as many as fit in
    the device's memory and in twice the arena that is needed: operators that
    use one place wait for each other. A plan that exceeds a device's memory is
    an error that names the bytes and the largest tensors at the peak.

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
    mildest of several limits whose plan does, and lets tensors wait in a pool of
    the machine, which this pass leaves out.

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

#endif // BAECHI_TRANSFORMS_PLANPASSES
