/*===- place.c - A module placed from C -----------------------*- C -*-===*\
|*                                                                        *|
|* Part of the Baechi project, under the Apache License v2.0 with LLVM    *|
|* Exceptions. See LICENSE for license information.                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                *|
|*                                                                        *|
\*===----------------------------------------------------------------------===*/

#include "Baechi-c/Baechi.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "FAILED: %s\n", what);
  exit(1);
}

static MlirStringRef str(const char *text) {
  return mlirStringRefCreateFromCString(text);
}

static const char *program =
    "func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {\n"
    "  %0 = \"model.first\"(%x) : (tensor<64xf32>) -> tensor<64xf32>\n"
    "  %1 = \"model.second\"(%0) : (tensor<64xf32>) -> tensor<64xf32>\n"
    "  return %1 : tensor<64xf32>\n"
    "}\n";

static void printTo(MlirStringRef text, void *file) {
  fwrite(text.data, 1, text.length, (FILE *)file);
}

static MlirLogicalResult countDiagnostic(MlirDiagnostic diagnostic,
                                         void *count) {
  (void)diagnostic;
  ++*(int *)count;
  return mlirLogicalResultSuccess();
}

static MlirLogicalResult runPipeline(MlirContext context, MlirModule module,
                                     const char *pipeline) {
  MlirPassManager manager = mlirPassManagerCreate(context);
  MlirLogicalResult result =
      mlirParsePassPipeline(mlirPassManagerGetAsOpPassManager(manager),
                            str(pipeline), printTo, stderr);
  if (mlirLogicalResultIsSuccess(result))
    result = mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module));
  mlirPassManagerDestroy(manager);
  return result;
}

int main(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  baechiRegisterAllDialects(registry);
  baechiRegisterAllPasses();
  MlirContext context = mlirContextCreateWithRegistry(registry, true);
  mlirContextSetAllowUnregisteredDialects(context, true);
  MlirDialect dialect =
      mlirDialectHandleLoadDialect(mlirGetDialectHandle__baechi__(), context);
  require(mlirStringRefEqual(mlirDialectGetNamespace(dialect), str("baechi")),
          "the dialect loads");

  MlirModule module = mlirModuleCreateParse(context, str(program));
  require(!mlirModuleIsNull(module), "the module parses");
  MlirOperation step = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  MlirOperation first = mlirBlockGetFirstOperation(
      mlirRegionGetFirstBlock(mlirOperationGetRegion(step, 0)));
  MlirOperation second = mlirOperationGetNextInBlock(first);

  require(baechiOperationGetDevice(first).length == 0, "not placed: no device");
  require(baechiOperationGetStartNs(first) == -1, "not placed: no start");
  require(!baechiAttributeIsAPlacementCertificate(
              mlirOperationGetAttributeByName(step, str("baechi.certificate"))),
          "not placed: no certificate");

  /* Costs by hand; wrong ones are refused. */
  MlirLocation location = mlirLocationUnknownGet(context);
  MlirStringRef kinds[] = {str("host")};
  int64_t times[] = {2000};
  MlirAttribute cost = baechiCostAttrGetChecked(location, 1, kinds, times, 64);
  require(!mlirAttributeIsNull(cost), "a cost");
  mlirOperationSetAttributeByName(first, str("baechi.cost"), cost);
  mlirOperationSetAttributeByName(second, str("baechi.cost"), cost);
  mlirOperationSetAttributeByName(second, str("baechi.pin"),
                                  mlirStringAttrGet(context, str("host1")));
  int diagnostics = 0;
  MlirDiagnosticHandlerID handler = mlirContextAttachDiagnosticHandler(
      context, countDiagnostic, &diagnostics, NULL);
  times[0] = -1;
  require(mlirAttributeIsNull(
              baechiCostAttrGetChecked(location, 1, kinds, times, 64)),
          "a negative time is refused");
  require(diagnostics == 1, "with one diagnostic");
  mlirContextDetachDiagnosticHandler(context, handler);

  require(mlirLogicalResultIsSuccess(runPipeline(
              context, module,
              "builtin.module(baechi-place{placer=msct machine=host:2@1MiB "
              "budget=0},baechi-verify-placed)")),
          "the module is placed");
  require(mlirStringRefEqual(baechiOperationGetDevice(second), str("host1")),
          "the pin is honoured");
  require(baechiOperationGetDevice(first).length > 0, "all are placed");
  require(baechiFunctionGetArgumentDevice(step, 0).length > 0,
          "arguments, too");
  require(baechiFunctionGetArgumentDevice(step, 1).length == 0 &&
              baechiFunctionGetArgumentDevice(first, 0).length == 0,
          "but not those that do not exist");
  require(baechiOperationGetStartNs(second) >= 2000, "the second comes after");
  MlirAttribute certificate =
      mlirOperationGetAttributeByName(step, str("baechi.certificate"));
  require(baechiAttributeIsAPlacementCertificate(certificate), "certificate");
  require(baechiPlacementCertificateGetMakespanNs(certificate) >= 4000 &&
              baechiPlacementCertificateGetLowerBoundNs(certificate) >= 4000,
          "of two operators of 2 us");

  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  puts("placed from C");
  return 0;
}
