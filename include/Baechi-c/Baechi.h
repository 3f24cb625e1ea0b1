/*===- Baechi.h - Baechi from C -------------------------------*- C -*-===*\
|*                                                                        *|
|* Part of the Baechi project, under the Apache License v2.0 with LLVM    *|
|* Exceptions. See LICENSE for license information.                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                *|
|*                                                                        *|
\*===----------------------------------------------------------------------===*/
/* Used with MLIR's own C interface (mlir-c/IR.h, mlir-c/Pass.h): it parses
   modules and runs pipelines such as
   "builtin.module(baechi-annotate-costs,baechi-place{machine=host:2})";
   unittests/CAPI/place.c is the whole way. */
#ifndef BAECHI_C_BAECHI_H
#define BAECHI_C_BAECHI_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The dialect's handle: mlirGetDialectHandle__baechi__(). */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Baechi, baechi);

/** Every dialect that the passes read or make, with what lowering needs. */
MLIR_CAPI_EXPORTED void baechiRegisterAllDialects(MlirDialectRegistry registry);

/** Every pass and pipeline, for mlirParsePassPipeline. Call it once. */
MLIR_CAPI_EXPORTED void baechiRegisterAllPasses(void);

/** The device that an operation was placed on; of no characters where it was
    not placed. Lives as long as the context. */
MLIR_CAPI_EXPORTED MlirStringRef baechiOperationGetDevice(MlirOperation op);

/** The same for argument `index` of a function; of no characters, too, where
    there is no such function or argument. */
MLIR_CAPI_EXPORTED MlirStringRef
baechiFunctionGetArgumentDevice(MlirOperation function, intptr_t index);

/** The planned start in the step, ns; -1 where the operation was not placed. */
MLIR_CAPI_EXPORTED int64_t baechiOperationGetStartNs(MlirOperation op);

/** #baechi.cost with the time of each of `numKinds` kinds of devices. Null,
    with a diagnostic at `location`, where a time or the scratch is negative. */
MLIR_CAPI_EXPORTED MlirAttribute baechiCostAttrGetChecked(
    MlirLocation location, intptr_t numKinds, const MlirStringRef *kinds,
    const int64_t *timesNs, int64_t scratchBytes);

/** Whether an attribute is what `baechi.certificate` of a placed function is.
 */
MLIR_CAPI_EXPORTED bool
baechiAttributeIsAPlacementCertificate(MlirAttribute attr);

/** The predicted makespan, and what no placement can beat, ns. */
MLIR_CAPI_EXPORTED int64_t
baechiPlacementCertificateGetMakespanNs(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t
baechiPlacementCertificateGetLowerBoundNs(MlirAttribute attr);

#ifdef __cplusplus
}
#endif

#endif /* BAECHI_C_BAECHI_H */
