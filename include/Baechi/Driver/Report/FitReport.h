//===- FitReport.h - What is computed again, and its cost -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_FITREPORT_H
#define BAECHI_DRIVER_REPORT_FITREPORT_H

#include "Baechi/Transforms/MemoryFit.h"
#include "llvm/Support/JSON.h"

namespace baechi {

/// What a person reads, a line each.
std::vector<std::string> linesOf(const MemoryFit &fit);
llvm::json::Object toJson(const MemoryFit &fit);

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_FITREPORT_H
