//===- BaechiDialect.td - The baechi dialect -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT
#define BAECHI_DIALECT

include "mlir/IR/OpBase.td"

def Baechi_Dialect : Dialect {
  let name = "baechi";
  let cppNamespace = "::baechi";
  let summary = "Placement of a program's operators on devices";
  let description = [{
    The dialect says what an operator costs, where it runs and when, and makes
    the tensors that cross devices explicit. It works on any dialect's
    operations: costs and placements are discardable attributes, verified
    wherever they stand.

    | attribute | stands on | meaning |
    |---|---|---|
    | `baechi.machine` | module | `#baechi.machine`: devices, memories, links |
    | `baechi.cost` | operation | `#baechi.cost`: time per device kind, scratch bytes |
    | `baechi.group` | operation, argument | string: what is in one group is placed together |
    | `baechi.pin` | operation, argument | string: the device that it must be placed on |
    | `baechi.device` | operation, argument, result of a partitioned program, device's module | string: the device that it is placed on |
    | `baechi.start` | operation | i64: planned start in the step, ns |
    | `baechi.sends` | operation, argument | array of `#baechi.transfer`: planned transfers of its results |
    | `baechi.certificate` | function | `#baechi.placement_certificate` |
    | `baechi.split` | operation, argument | `#baechi.split`: a person's wish how it is cut, before kernels are formed |
    | `baechi.partials` | operation | unit: it joins partial results of pieces, which do not wait for each other; until kernels are formed |
    | `baechi.chained` | function | unit: its pieces add to what those before have made, and sums of several products become no kernel of their own; until kernels are formed |
    | `baechi.kernel` | function | unit: an outlined operator |
    | `baechi.host_call` | declared function | dictionary `{effects = "pure" or "ordered", ns = i64}`: an operator that a host device asks its host program for, by the function's name (docs/host-calls.md) |
    | `baechi.implementation` | kernel | string: the implementation to use, a row of the profile |
    | `baechi.kernel_scratch` | kernel | i64: bytes it needs while it runs |
    | `baechi.cuda_blocks`, `baechi.cuda_commands` | kernel | i64: blocks of its largest launch on a GPU, how much of one it fills; its launches and calls of libraries there, nodes of graphs |
    | `baechi.cuda_product` | kernel | `#baechi.cuda_product`: how GPUs compute it, a product |
    | `baechi.cuda_convolution` | kernel | `#baechi.cuda_convolution`: how GPUs compute it, a convolution |
    | `baechi.view` | `tensor.extract_slice` | unit: it is read where it lies in its source's buffer, and is no operator; where it is one piece of it, from a multiple of 64 bytes |
    | `baechi.recompute` | `func.call` | unit: a clone that computes a value again (docs/memory.md); it runs after the operator before it |
    | `baechi.stash` | kernel without a body | unit: its result is its first operand, kept in a pool (docs/memory.md) |
    | `baechi.may_alias` | result of a kernel | array of i64: arguments whose buffers the result may be written into |
    | `baechi.piece` | argument or result of a step | `#baechi.piece`: it is a part of a tensor that the caller has as a whole |
    | `baechi.replicas` | function | i64: so many replicas have a part of the batch each (`--baechi-replicate`) |
    | `baechi.batched` | argument of a replicated step | unit: it has a part for each replica; or an array for each dimension, `[array<i64: 3, 12>, array<i64>]`: the replicas that have each part along it, a bit each |
    | `baechi.replica` | kernel's call | i64: the replica that it computes for (`--baechi-pin-replicas`) |
    | `baechi.copied` | `tensor.extract_slice` | unit: a tensor of its own, which is sent without the rest; until kernels are formed (`--baechi-slice-parameters`) |
    | `baechi.joined` | `func.call` | unit: what puts arguments of a device's program together (`baechi.parts`) is where they are, which lie behind each other (`--baechi-carry-parameters`) |
    | `baechi.parts` | result of a kernel | array of i64: it puts its arguments together and does nothing else; where in the result each lies, bytes |
    | `baechi.updated_by` | argument | i64: the result that is its next value, in place |
    | `baechi.name` | operation, argument, result | string: the model's own name for it |
    | `baechi.init` | argument | dictionary: how to make its first value (docs/import.md) |
    | `baechi.argument` | argument of a device's function | i64: position in the whole function |
    | `baechi.result` | result of a device's function | i64: position in the whole function |
    | `baechi.operator` | operation of a device's function | i64: the operator's number in the whole step, whose arguments come first; of a send: what made its tensor |
    | `baechi.output` | send | i64: which result of that operator it is, where it has several |
    | `baechi.offset` | operation, argument | i64 or array: where its results lie in the device's arena, bytes |
    | `baechi.ends` | function that was partitioned | unit: a step surely ends, as nothing in it loops without a bound or asks another program |
    | `baechi.arena` | device's module | `#baechi.arena`: the planned memory |
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
    void registerOperations();

    static constexpr ::llvm::StringLiteral kMachine = "baechi.machine";
    static constexpr ::llvm::StringLiteral kCost = "baechi.cost";
    static constexpr ::llvm::StringLiteral kGroup = "baechi.group";
    static constexpr ::llvm::StringLiteral kPin = "baechi.pin";
    static constexpr ::llvm::StringLiteral kDevice = "baechi.device";
    static constexpr ::llvm::StringLiteral kStart = "baechi.start";
    static constexpr ::llvm::StringLiteral kSends = "baechi.sends";
    static constexpr ::llvm::StringLiteral kCertificate = "baechi.certificate";
    static constexpr ::llvm::StringLiteral kSplit = "baechi.split";
    static constexpr ::llvm::StringLiteral kPartials = "baechi.partials";
    static constexpr ::llvm::StringLiteral kChained = "baechi.chained";
    static constexpr ::llvm::StringLiteral kKernel = "baechi.kernel";
    static constexpr ::llvm::StringLiteral kHostCall = "baechi.host_call";
    static constexpr ::llvm::StringLiteral kImplementation =
        "baechi.implementation";
    static constexpr ::llvm::StringLiteral kKernelScratch =
        "baechi.kernel_scratch";
    static constexpr ::llvm::StringLiteral kCudaProduct =
        "baechi.cuda_product";
    static constexpr ::llvm::StringLiteral kCudaConvolution =
        "baechi.cuda_convolution";
    static constexpr ::llvm::StringLiteral kView = "baechi.view";
    static constexpr ::llvm::StringLiteral kRecompute = "baechi.recompute";
    static constexpr ::llvm::StringLiteral kStash = "baechi.stash";
    static constexpr ::llvm::StringLiteral kMayAlias = "baechi.may_alias";
    static constexpr ::llvm::StringLiteral kUpdatedBy = "baechi.updated_by";
    static constexpr ::llvm::StringLiteral kName = "baechi.name";
    static constexpr ::llvm::StringLiteral kInit = "baechi.init";
    static constexpr ::llvm::StringLiteral kArgument = "baechi.argument";
    static constexpr ::llvm::StringLiteral kResult = "baechi.result";
    static constexpr ::llvm::StringLiteral kOperator = "baechi.operator";
    static constexpr ::llvm::StringLiteral kOutput = "baechi.output";
    static constexpr ::llvm::StringLiteral kOffset = "baechi.offset";
    static constexpr ::llvm::StringLiteral kArena = "baechi.arena";
    static constexpr ::llvm::StringLiteral kEnds = "baechi.ends";
  }];
}

#endif // BAECHI_DIALECT
