//===- BaechiOps.cpp - Operations and types of the dialect -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Dialect/LoopOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace baechi;

/// An i64 attribute printed as a bare number.
static ParseResult parseInteger(OpAsmParser &parser, IntegerAttr &attr) {
  int64_t value;
  if (parser.parseInteger(value))
    return failure();
  attr = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printInteger(OpAsmPrinter &printer, Operation *, IntegerAttr attr) {
  printer << attr.getInt();
}

bool baechi::isMovable(Type type) {
  return isa<RankedTensorType, VectorType, IntegerType, FloatType, IndexType,
             ComplexType>(type);
}

LogicalResult FutureType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Type valueType) {
  if (isMovable(valueType))
    return success();
  return emitError() << "a future is of a tensor, a vector or a scalar, not of "
                     << valueType;
}

#define GET_TYPEDEF_CLASSES
#include "Baechi/Dialect/BaechiTypes.cpp.inc"

#define GET_OP_CLASSES
#include "Baechi/Dialect/BaechiOps.cpp.inc"

void BaechiDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "Baechi/Dialect/BaechiTypes.cpp.inc"
      >();
}

void BaechiDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "Baechi/Dialect/BaechiOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Baechi/Dialect/LoopOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Baechi/Dialect/CarriedOps.cpp.inc"
      >();
}

LogicalResult AwaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        ValueRange operands, DictionaryAttr,
                                        OpaqueProperties, RegionRange,
                                        SmallVectorImpl<Type> &inferred) {
  if (auto future = dyn_cast<FutureType>(operands.front().getType()))
    inferred.push_back(future.getValueType());
  return success();
}
