//===- MessageGroups.h - Messages in groups -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Transports that move messages one after the other, as NCCL does on a GPU's
/// stream, need an order of them that all processes know and that no wait
/// contradicts: where a device awaits message b before it offers message a, b
/// is before a. It is written down as groups, which come one after the other;
/// within a group no message waits for another, so any order will do that both
/// ends agree on.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_MESSAGEGROUPS_H
#define BAECHI_ANALYSIS_MESSAGEGROUPS_H

#include "Baechi/Analysis/StepSimulation.h"

namespace baechi {

/// The group, from 0, of each message of each queue. `starts` are their planned
/// starts: messages that may go in any order go by these. Nothing where the
/// devices' waits are circular (--baechi-verify-partitioned says where).
std::optional<std::vector<std::vector<int64_t>>>
groupMessages(const StepProgram &program,
              const std::vector<std::vector<int64_t>> &starts);

} // namespace baechi

#endif // BAECHI_ANALYSIS_MESSAGEGROUPS_H
