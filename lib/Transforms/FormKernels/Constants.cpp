//===- Constants.cpp - Constants that lie in resources -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Phases.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

/// Of one element in a blob: booleans take bytes there.
static int64_t bytesOfElement(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

static LogicalResult settle(arith::ConstantOp constant,
                            DenseResourceElementsAttr resource) {
  DenseResourceElementsHandle handle = resource.getRawHandle();
  const AsmResourceBlob *blob = handle.getBlob();
  if (!blob)
    return constant.emitOpError("names the resource '")
           << handle.getKey()
           << "', which has no data here: it must be in the file's "
              "'dialect_resources', under 'builtin'";
  ShapedType type = resource.getType();
  Type element = type.getElementType();
  // Others are refused by their types.
  if (!element.isIntOrFloat())
    return success();
  size_t needed = size_t(type.getNumElements() * bytesOfElement(element));
  if (blob->getData().size() != needed)
    return constant.emitOpError("has type ")
           << type << ", which takes " << needed << " bytes; the resource '"
           << handle.getKey() << "' holds " << blob->getData().size();
  // LLVM's translation knows no resources of booleans.
  if (!element.isInteger(1))
    return success();
  SmallVector<bool> values = llvm::map_to_vector(
      blob->getData(), [](char value) { return value != 0; });
  constant.setValueAttr(DenseElementsAttr::get(type, values));
  return success();
}

LogicalResult formkernels::settleResources(func::FuncOp step) {
  WalkResult walked = step.walk([](arith::ConstantOp constant) -> WalkResult {
    auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
    return resource ? settle(constant, resource) : success();
  });
  return failure(walked.wasInterrupted());
}
