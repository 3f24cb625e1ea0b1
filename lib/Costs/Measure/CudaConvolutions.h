//===- CudaConvolutions.h - What convolutions take on GPUs -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_COSTS_MEASURE_CUDACONVOLUTIONS_H
#define BAECHI_LIB_COSTS_MEASURE_CUDACONVOLUTIONS_H

#include "Baechi/Costs/Measure/KernelCosts.h"

namespace baechi {

/// Times, on the first GPU, the generated code and cuDNN's of every kernel that
/// may be either and has no rows; gives the number of rows. Without cuDNN there
/// are none, and a warning.
mlir::FailureOr<size_t> measureConvolutions(mlir::ModuleOp module,
                                            Profile &profile,
                                            const KernelCosts &costs,
                                            const MeasureOptions &options,
                                            KernelCosts::Progress progress);

} // namespace baechi

#endif // BAECHI_LIB_COSTS_MEASURE_CUDACONVOLUTIONS_H
