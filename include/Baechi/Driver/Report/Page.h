//===- Page.h - A run as a web page -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_PAGE_H
#define BAECHI_DRIVER_REPORT_PAGE_H

#include "Baechi/Driver/Report/Report.h"
#include "Baechi/Placement/Model/Problem.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// The page of a run (docs/report-page.md). \p timeline is that of the step to
/// show.
llvm::FailureOr<std::string> formatRunPage(mlir::ModuleOp module,
                                           const placement::Machine &machine,
                                           const RunReport &report,
                                           const runtime::Timeline &timeline);

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_PAGE_H
