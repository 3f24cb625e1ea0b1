//===- Errors.h - What went wrong in the driver -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_ERRORS_H
#define BAECHI_DRIVER_INPUT_ERRORS_H

#include "Baechi/Runtime/Error.h"
#include "llvm/Support/Error.h"
#include <string>

namespace baechi {

/// The compiler's diagnostics have said what is wrong.
class DiagnosedError : public llvm::ErrorInfo<DiagnosedError> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;
};

inline llvm::Error diagnosed() { return llvm::make_error<DiagnosedError>(); }

/// The runtime's error as LLVM's.
llvm::Error toLlvm(const runtime::Error &error);

/// For what gives "" or what is wrong.
llvm::Error asError(const std::string &error);

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_ERRORS_H
