//===- SpillReport.h - What waits in a pool ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_SPILLREPORT_H
#define BAECHI_DRIVER_REPORT_SPILLREPORT_H

#include "Baechi/Runtime/Program.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace baechi {

/// What the program of \p manifest keeps in a pool, with lines that a person
/// reads (`text`); nullopt: nothing.
std::optional<llvm::json::Object> spillsOf(const llvm::json::Object &manifest);

/// Says \p spills in \p manifest, after what is computed again, where that is
/// said there.
void addSpills(llvm::json::Object &manifest, llvm::json::Object spills);

/// Adds what the copies to the pool and from it took in the step of \p timeline
/// to \p fit, which says of a program what does so.
void addMeasured(llvm::json::Object &fit, const runtime::Program &program,
                 const runtime::Timeline &timeline);

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_SPILLREPORT_H
