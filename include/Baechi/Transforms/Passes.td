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

def FormKernels : Pass<"baechi-form-kernels", "::mlir::ModuleOp"> {
  let summary = "outline the operators as they will execute";
  let description = [{
    Fuses elementwise work into its producers and consumers, groups operations
    over the same rows (softmax and layer norm become one kernel), adds to a
    reduction what little follows it, and outlines each distinct operator once
    as a private function with `baechi.kernel`. What is left of the program is a
    straight line of calls. Two operators whose kernels are the same text share
    one kernel. `report` says as a remark what became of the program: operators
    and the bytes that they read and write, before and after, and the number of
    distinct kernels.
  }];
  let options = [
    Option<"rowLoops", "row-loops", "bool", "true",
           "write kernels over rows as loops that compute a row at a time; false "
           "for a consumer that tiles for itself (IREE)">,
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
    kind's bandwidth, plus the launch overhead.
  }];
  let options = [
    Option<"profile", "profile", "std::string", "\"\"",
           "profile file (docs/profile-format.md)">,
    Option<"roofline", "roofline", "std::string", "\"\"",
           "device kinds as KIND:GFLOPS:GBS:LAUNCH_NS[,...]">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Colocate : Pass<"baechi-colocate", "::mlir::ModuleOp"> {
  let summary = "group what must be on one device";
  let description = [{
    An argument and the operator that computes its next value are one group, so
    that parameters are updated in place. Groups that the program already has
    are kept, and united where an argument's update joins two of them.
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
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Place : Pass<"baechi-place", "::mlir::ModuleOp"> {
  let summary = "place every operator on a device";
  let description = [{
    Puts `baechi.device` and `baechi.start` on every operator and argument,
    `baechi.sends` on those whose tensors cross devices, and the certificate on
    the function. The placer may be given as a bare word:
    `--baechi-place=msct`. A program that fits no placement is an error that
    names the bytes needed, the limits and the largest culprits.
  }];
  let options = [
    Option<"placer", "placer", "std::string", "\"msct\"",
           "msct, metf, mtopo or single">,
    Option<"machine", "machine", "std::string", "\"\"",
           "machine file, or host:N[@SIZE]; default: the module's baechi.machine">,
    Option<"budget", "budget", "std::string", "\"auto\"",
           "improvement over the placer: auto (about a second at most), 0 (the "
           "placer's pure result), seconds (30, 0.5s) or evaluations (5000e)">,
    Option<"grouping", "grouping", "std::string", "\"all\"",
           "grouping steps of the placer: all, none, or a list joined by '+' "
           "or ','">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Constrain : Pass<"baechi-constrain", "::mlir::ModuleOp"> {
  let summary = "pin and group operators by patterns of names or locations";
  let description = [{
    Sets `baechi.pin` and `baechi.group` on the operators and arguments that
    patterns (`*`, `?`, `[...]`) name: by their names, or, with a leading `@`,
    by their locations as diagnostics print them.

    ```
    --baechi-constrain="pins=enc/*=gpu0,@model.py:12:*=gpu1 groups=dec/embed*=embeddings"
    ```

    A pattern that names nothing, a device that the machine does not have and an
    operator that is pinned or grouped otherwise already are errors.
  }];
  let options = [
    ListOption<"pins", "pins", "std::string", "PATTERN=DEVICE, with commas">,
    ListOption<"groups", "groups", "std::string", "PATTERN=GROUP, with commas">,
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
    it, and what the file does not place is left to the placer.

    ```
    --baechi-load-placement="file=step.placement.json machine=host:2"
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
}

def Partition : Pass<"baechi-partition", "::mlir::ModuleOp"> {
  let summary = "split a placed program into one module a device";
  let description = [{
    Each device's module holds its operators in planned order; tensors that
    cross devices become `baechi.send` and `baechi.recv` on queues, scheduled
    by need. The function that was split becomes a declaration of the whole.
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def VerifyPartitioned : Pass<"baechi-verify-partitioned", "::mlir::ModuleOp"> {
  let summary = "check that queues agree and that no wait is circular";
  let description = [{
    Every message has one send and one recv, of one type, on the devices that
    each names; a queue is one directed pair's own, and both ends take its
    messages in ascending order; no wait depends on itself. Where
    `--baechi-plan-memory` has run, no tensor is written over before its last
    reader, a send's token or a recv's future is done with it. Every error has
    a note at the message's other end.
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
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Strip : Pass<"baechi-strip", "::mlir::ModuleOp"> {
  let summary = "remove what placing added to a program";
  let description = [{
    Takes `baechi.*` attributes off operations, functions, their arguments and
    results, and the module. What is left is the program as it was before, byte
    for byte. A bare word (`--baechi-strip=plan`) says how far to go back:

    - `plan`: before `--baechi-place` (`baechi.device`, `baechi.start`,
      `baechi.sends`, `baechi.certificate`, `baechi.machine`);
    - `annotations` (the default): before `--baechi-annotate-costs`, too
      (`baechi.cost`, `baechi.group`, `baechi.pin`, `baechi.implementation`,
      `baechi.kernel_scratch`); what only a program's author writes stays
      (`baechi.updated_by`, `baechi.name`, ...);
    - `all`: a program that knows nothing of Baechi.

    `keep` names what the author wrote of these, as
    `--baechi-strip=keep=baechi.machine,baechi.group` does.

    ```mlir
    func.func @step(%x: tensor<4xf32> {baechi.device = "host0", baechi.name = "x"}) -> tensor<4xf32> attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "msct", makespan = 200, lower_bound = 200, bound = "path", single_device = 200, operators = 2, groups = 2>} {
      %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 200}, scratch = 0>, baechi.device = "host0", baechi.start = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
    becomes
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
