//===- OperatorInterfaces.td - What operators say -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_INTERFACES_OPERATORINTERFACES
#define BAECHI_INTERFACES_OPERATORINTERFACES

include "mlir/IR/OpBase.td"

def Baechi_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::baechi";
  let description = [{
    An operator that knows what it costs. `--baechi-annotate-costs` asks it;
    every method may be left to its default, and the cost model answers instead.
  }];
  let methods = [
    InterfaceMethod<
      "The arithmetic and memory traffic of one execution, for the roofline; "
      "nullopt: counted from operands, results and linalg bodies.",
      "std::optional<::baechi::Work>", "getWork", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return std::nullopt;">,
    InterfaceMethod<
      "The time of one execution on a kind of device, ns; nullopt: the "
      "roofline's.",
      "std::optional<int64_t>", "getTimeNs", (ins "::llvm::StringRef":$kind),
      "", "return std::nullopt;">,
    InterfaceMethod<"Whether a kind of device can execute the operator.",
      "bool", "runsOn", (ins "::llvm::StringRef":$kind), "", "return true;">,
    InterfaceMethod<"Bytes of memory held only while the operator executes.",
      "int64_t", "getScratchBytes", (ins), "", "return 0;">
  ];
}

def Baechi_BufferOpInterface : OpInterface<"BufferOpInterface"> {
  let cppNamespace = "::baechi";
  let description = [{
    An operator that knows which of its results may share an operand's buffer.
  }];
  let methods = [
    InterfaceMethod<
      "Whether the only result is the only operand's buffer under another type: "
      "a view, which takes no time or memory and is on every device that reads "
      "it.",
      "bool", "isView", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
    InterfaceMethod<
      "Whether a result may be written into an operand's buffer: the operator "
      "reads no element of it after it has written the result's. Lets an "
      "argument's next value (`baechi.updated_by`) be computed in place.",
      "bool", "mayWriteInto", (ins "unsigned":$result, "unsigned":$operand),
      "", "return false;">
  ];
  let verify = [{
    return ::baechi::detail::verifyView($_op);
  }];
}

#endif // BAECHI_INTERFACES_OPERATORINTERFACES
