//===- StepStore.h - Compiled steps in a folder -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Whole step libraries in the folder of compiled kernels
/// (docs/kernel-store.md). One is found by what was asked for: the model's
/// text, options, the machine and the compiler. It is taken where the profile
/// still says of its kernels what it was planned with, so that compiling it
/// again would measure nothing and plan with the same costs.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_STEPS_STEPSTORE_H
#define BAECHI_DRIVER_STEPS_STEPSTORE_H

#include "Baechi/Conversion/HostJit/ObjectStore.h"
#include "Baechi/Driver/Compilation/Compilation.h"

namespace baechi {

class StepStore {
public:
  /// For the library \p file of a model whose text is known; nothing where such
  /// steps are not stored: without a store, for GPUs, or where what an option
  /// names cannot be read.
  static std::optional<StepStore> open(const DriverOptions &options,
                                       const placement::Machine &machine,
                                       const std::string &file);

  /// Writes the library and its header as they were compiled before; false
  /// where they were not, or would be compiled to something else now.
  bool take(Listener &listener);
  /// Keeps the library and its header, which are written, unless another
  /// compilation of the same would measure something or compare other plans.
  void keep(Compilation &compilation, Listener &listener);

private:
  StepStore(ObjectStore store, const DriverOptions &options,
            const placement::Machine &machine, std::string file,
            std::string key)
      : store(std::move(store)), options(options), machine(machine),
        file(std::move(file)), key(std::move(key)) {}
  /// What the profile says of what a program follows from, as a hash; empty
  /// where it cannot be read.
  std::string profileOf(const Compilation::Origins &origins) const;
  /// Whether arenas of these sizes are far from the limits that follow from
  /// what memory is free now.
  bool haveRoom(llvm::ArrayRef<int64_t> arenas) const;
  void warn(Listener &listener);

  ObjectStore store;
  const DriverOptions &options;
  const placement::Machine &machine;
  std::string file, key;
};

} // namespace baechi

#endif // BAECHI_DRIVER_STEPS_STEPSTORE_H
