//===- HeldTensors.h - What arenas hold from when to when -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_HELDTENSORS_H
#define BAECHI_ANALYSIS_HELDTENSORS_H

#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace baechi {

/// Bytes of a device's arena that hold something for a while. Those of one
/// device may overlap: a result lies where its operand did, a part in its
/// whole.
struct HeldTensor {
  /// An operator of a device, by its position there, or a message, by its
  /// queue and its position in it.
  struct Event {
    bool isMessage = false;
    int32_t of = 0;
    int32_t position = 0;
  };
  int64_t offset = 0;
  int64_t bytes = 0;
  /// From its start on; none: from the step's.
  std::optional<Event> from;
  /// Until all of these have ended.
  std::vector<Event> until;
  /// Until the step's end.
  bool isKept = false;
};

/// Of a module after --baechi-plan-memory, a device each. What arrives is
/// there from when it begins to, though room is kept before. Fails, with an
/// error, where the module is no partitioned program.
mlir::FailureOr<std::vector<std::vector<HeldTensor>>>
heldTensors(mlir::ModuleOp planned);

} // namespace baechi

#endif // BAECHI_ANALYSIS_HELDTENSORS_H
