//===- QueryMachine.h - Measure this machine -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_QUERYMACHINE_H
#define BAECHI_DRIVER_INPUT_QUERYMACHINE_H

#include "Baechi/Driver/Input/Listener.h"
#include "Baechi/Placement/Model/Problem.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace baechi {
struct DevicesHere;
namespace runtime {
class Ranks;
} // namespace runtime

bool hasDeviceOf(const placement::Machine &machine, llvm::StringRef kind);

/// Whether its devices that are \p here compute on all \p cores that this
/// process may use, so that what moves messages of simulated links takes one of
/// them away. Other processes of this computer use the same cores, unless there
/// are fewer than all of their devices: then each has been given its own.
bool takesAllCores(const placement::Machine &machine, size_t cores,
                   DevicesHere here);

/// Replaces the links between the host devices of \p machine by what copies
/// between two of its threads measure, those of its disks by what the file in
/// the folder BAECHI_DISK does, and what is known of the runtime by what empty
/// steps do. False: other work disturbed it.
llvm::Expected<bool> measureLinks(placement::Machine &machine,
                                  Listener &listener);

/// The latter alone, for a machine of one device.
llvm::Expected<bool> measureRuntime(placement::Machine &machine,
                                    Listener &listener);

/// Lets the CUDA devices of \p machine that share a GPU lend each other
/// tensors; if \p takesMemory, gives all the memory that is free on their GPUs,
/// in equal shares; without GPUs it stays as it is.
void lookAtGpus(placement::Machine &machine, bool takesMemory);

/// Sets what a machine file tells of this host beside what plans take of it.
void describeHost(placement::Machine &machine);

/// Gives \p machine measured links, and what a machine file tells of this host.
llvm::Error
queryMachine(placement::Machine &machine, Listener &listener,
             const std::shared_ptr<runtime::Ranks> &ranks = nullptr);

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_QUERYMACHINE_H
