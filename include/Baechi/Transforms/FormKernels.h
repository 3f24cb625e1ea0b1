//===- FormKernels.h - What forming kernels achieved -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_FORMKERNELS_H
#define BAECHI_TRANSFORMS_FORMKERNELS_H

#include <cstdint>
#include <memory>

namespace mlir {
class Pass;
}

namespace baechi {

/// What `baechi-form-kernels` made of a program; also its remark (`report`, or
/// `--remarks-filter=baechi` for tools that read remarks).
struct KernelReport {
  /// Operators of the program as it came, and calls of kernels afterwards.
  int64_t operatorsBefore = 0;
  int64_t operatorsAfter = 0;
  /// Distinct kernels.
  int64_t kernels = 0;
  /// Bytes that the operators read and write, as costs count them (`workOf`).
  int64_t bytesBefore = 0;
  int64_t bytesAfter = 0;
};

/// `baechi-form-kernels` that also fills `report`, which must outlive the pass.
std::unique_ptr<mlir::Pass> createFormKernels(KernelReport &report);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_FORMKERNELS_H
