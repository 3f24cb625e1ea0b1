//===- Errors.cpp - What went wrong in the driver -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Errors.h"

using namespace baechi;

char DiagnosedError::ID = 0;

void DiagnosedError::log(llvm::raw_ostream &os) const {
  os << "the program cannot be compiled; the diagnostics say why";
}

std::error_code DiagnosedError::convertToErrorCode() const {
  return llvm::inconvertibleErrorCode();
}

llvm::Error baechi::toLlvm(const runtime::Error &error) {
  return error ? llvm::createStringError(error.message())
               : llvm::Error::success();
}

llvm::Error baechi::asError(const std::string &error) {
  return error.empty() ? llvm::Error::success()
                       : llvm::createStringError(error);
}
