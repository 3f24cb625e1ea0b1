//===- Admission.h - What a program needs of the machine -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_SESSION_ADMISSION_H
#define BAECHI_RUNTIME_SESSION_ADMISSION_H

#include "Baechi/Runtime/Machine.h"
#include "core/Driver.h"

#include <map>

namespace baechi::runtime {

/// False for pools: their threads only hold and copy tensors. They are kept on
/// no processor, as they run beside those that compute.
inline bool computes(const DriverKind &kind) { return !isPoolKind(kind.name); }

/// Whether the program fits the devices and the machine as they are now.
Error checkMemory(const Program &program,
                  const std::vector<const DriverKind *> &kinds,
                  const std::map<std::string, int64_t> &limits,
                  int64_t available);

/// Whether the host is the machine that the program was planned and compiled
/// for: it has the processor's extensions (where the system does not say, it is
/// taken to), and as many processors for the host devices.
Error checkProcessor(const Program &program,
                     const std::vector<const DriverKind *> &kinds,
                     const HostInfo &host);

/// What all ranks that run the program must have in common, for Ranks::agree.
std::string describeProgram(const Program &program);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_SESSION_ADMISSION_H
