//===- Baechi.cpp - Baechi from C -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi-c/Baechi.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace baechi;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Baechi, baechi, BaechiDialect)

static MlirStringRef wrapOrEmpty(StringAttr attr) {
  return wrap(attr ? attr.getValue() : StringRef());
}

void baechiRegisterAllDialects(MlirDialectRegistry registry) {
  baechi::registerAllDialects(*unwrap(registry));
}

void baechiRegisterAllPasses() { baechi::registerAllPasses(); }

MlirStringRef baechiOperationGetDevice(MlirOperation op) {
  return wrapOrEmpty(
      unwrap(op)->getAttrOfType<StringAttr>(BaechiDialect::kDevice));
}

MlirStringRef baechiFunctionGetArgumentDevice(MlirOperation function,
                                              intptr_t index) {
  auto op = dyn_cast<FunctionOpInterface>(unwrap(function));
  if (!op || index < 0 || index >= op.getNumArguments())
    return wrap(StringRef());
  return wrapOrEmpty(
      op.getArgAttrOfType<StringAttr>(index, BaechiDialect::kDevice));
}

int64_t baechiOperationGetStartNs(MlirOperation op) {
  auto start = unwrap(op)->getAttrOfType<IntegerAttr>(BaechiDialect::kStart);
  return start ? start.getInt() : -1;
}

MlirAttribute baechiCostAttrGetChecked(MlirLocation location, intptr_t numKinds,
                                       const MlirStringRef *kinds,
                                       const int64_t *timesNs,
                                       int64_t scratchBytes) {
  Location loc = unwrap(location);
  MLIRContext *context = loc.getContext();
  context->loadDialect<BaechiDialect>();
  Builder builder(context);
  NamedAttrList times;
  for (intptr_t i = 0; i < numKinds; ++i)
    times.set(unwrap(kinds[i]), builder.getI64IntegerAttr(timesNs[i]));
  return wrap(Attribute(CostAttr::getChecked(
      [&] { return emitError(loc); }, context, times.getDictionary(context),
      scratchBytes, ArrayAttr())));
}

bool baechiAttributeIsAPlacementCertificate(MlirAttribute attr) {
  return isa_and_nonnull<PlacementCertificateAttr>(unwrap(attr));
}

int64_t baechiPlacementCertificateGetMakespanNs(MlirAttribute attr) {
  return cast<PlacementCertificateAttr>(unwrap(attr)).getMakespan();
}

int64_t baechiPlacementCertificateGetLowerBoundNs(MlirAttribute attr) {
  return cast<PlacementCertificateAttr>(unwrap(attr)).getLowerBound();
}
