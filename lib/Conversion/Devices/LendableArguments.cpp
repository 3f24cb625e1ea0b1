//===- LendableArguments.cpp - What is read where callers have it ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LendableArguments.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Carried.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include <limits>

using namespace mlir;
using namespace baechi;

namespace {

/// Smaller ones are copied in no time.
constexpr int64_t kWorthLending = 4096; // bytes

/// What a device's step does to its arguments.
class Uses {
public:
  Uses(const DeviceProgram &program, const llvm::StringMap<StringRef> &kinds)
      : step(program.step) {
    for (Operation &op : step.getBody().front()) {
      addWrites(&op);
      if (auto copy = dyn_cast<CopyOp>(op))
        needed.insert(rootOf(copy.getTarget()));
      // Other kinds know the arena's memory alone: it is pinned, say.
      auto send = dyn_cast<SendOp>(op);
      if (send &&
          (kinds.lookup(send.getTo()) != "host" || send->hasAttr(kCarried)))
        needed.insert(rootOf(send.getValue()));
    }
    // The caller reads results in the arena.
    for (Value result : step.getBody().front().getTerminator()->getOperands())
      needed.insert(rootOf(result));
  }

  /// Whether the step only reads it, wherever it lies.
  bool onlyReads(BlockArgument argument) {
    auto offset = step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                     BaechiDialect::kOffset);
    std::optional<int64_t> bytes = tensorBytes(argument.getType(), false);
    if (!offset || !bytes || *bytes < kWorthLending ||
        needed.contains(argument))
      return false;
    int64_t first = offset.getInt();
    return llvm::none_of(written, [&](std::pair<int64_t, int64_t> range) {
      return range.first < first + *bytes && first < range.second;
    });
  }

private:
  void addWrites(Operation *op) {
    auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset);
    if (!offsets)
      return;
    auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
    for (auto [i, offset] : llvm::enumerate(offsets.asArrayRef())) {
      // The scratch comes last.
      std::optional<int64_t> bytes =
          i < op->getNumResults()
              ? tensorBytes(op->getResult(i).getType(), true)
          : cost ? std::optional(int64_t(cost.getScratch()))
                 : std::nullopt;
      written.emplace_back(offset, bytes ? offset + *bytes
                                         : std::numeric_limits<int64_t>::max());
    }
  }

  func::FuncOp step;
  llvm::DenseSet<Value> needed; ///< in their places
  SmallVector<std::pair<int64_t, int64_t>> written;
};

} // namespace

LendableArguments::LendableArguments(func::FuncOp whole,
                                     ArrayRef<BorderTensor> arguments,
                                     ArrayRef<DeviceProgram> programs) {
  llvm::DenseMap<int64_t, unsigned> candidates;
  for (const BorderTensor &argument : arguments)
    if (argument.pieces.empty() &&
        !whole.getArgAttr(argument.first, BaechiDialect::kUpdatedBy))
      candidates[argument.first] = argument.number;
  llvm::StringMap<StringRef> kinds;
  for (DeviceProgram program : programs)
    kinds[program.name] = program.spec.getKind();
  llvm::DenseSet<int64_t> copied;
  for (DeviceProgram program : programs) {
    Uses uses(program, kinds);
    for (BlockArgument argument : program.step.getArguments()) {
      unsigned number = argument.getArgNumber();
      auto position = program.step.getArgAttrOfType<IntegerAttr>(
          number, BaechiDialect::kArgument);
      if (!position)
        continue;
      if (program.step.getArgAttr(number, kMirror))
        copied.insert(position.getInt());
      else if (auto it = candidates.find(position.getInt());
               it != candidates.end() && program.spec.getKind() == "host" &&
               uses.onlyReads(argument))
        numbers.insert(*it);
    }
  }
  for (int64_t position : copied)
    numbers.erase(position);
}

std::optional<unsigned> LendableArguments::numberOf(func::FuncOp step,
                                                    Value root) const {
  auto argument = dyn_cast<BlockArgument>(root);
  auto position =
      argument ? step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                    BaechiDialect::kArgument)
               : IntegerAttr();
  auto it = position ? numbers.find(position.getInt()) : numbers.end();
  return it == numbers.end() ? std::nullopt : std::optional(it->second);
}
