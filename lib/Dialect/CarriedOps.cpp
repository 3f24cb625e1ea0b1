//===- CarriedOps.cpp - Messages across the step's border -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Carried.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace baechi;

static ParseResult parseCarriedNumber(OpAsmParser &parser, IntegerAttr &attr) {
  int64_t value;
  if (parser.parseInteger(value))
    return failure();
  attr = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printCarriedNumber(OpAsmPrinter &printer, Operation *,
                               IntegerAttr attr) {
  printer << attr.getInt();
}

#define GET_OP_CLASSES
#include "Baechi/Dialect/CarriedOps.cpp.inc"

std::optional<int64_t> baechi::carriedArgument(Operation *op) {
  auto argument = op->getAttrOfType<IntegerAttr>(kCarried);
  return argument ? std::optional(argument.getInt()) : std::nullopt;
}

Operation *baechi::awaitedBy(AwaitCarriedOp await) {
  for (Operation &op : *await->getBlock()) {
    auto send = dyn_cast<SendOp>(op);
    auto recv = dyn_cast<RecvOp>(op);
    if ((send || recv) && op.hasAttr(kCarried) &&
        (send ? send.getQueue() : recv.getQueue()) == await.getQueue() &&
        (send ? send.getSeq() : recv.getSeq()) == await.getSeq())
      return &op;
  }
  return nullptr;
}
