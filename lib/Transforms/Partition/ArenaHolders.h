//===- ArenaHolders.h - Who holds which bytes of an arena -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PARTITION_ARENAHOLDERS_H
#define BAECHI_LIB_TRANSFORMS_PARTITION_ARENAHOLDERS_H

#include "mlir/IR/Operation.h"
#include <map>

namespace baechi {

/// Whose bytes those of an arena are at one point of a step: each one's that
/// wrote them last, whole. What is overwritten in part is held no more.
class ArenaHolders {
public:
  /// \p writer writes \p root's tensor (scratch: a null value) to the bytes
  /// [from, end).
  void write(int64_t from, int64_t end, mlir::Value root,
             mlir::Operation *writer) {
    if (from == end)
      return;
    auto it = holders.upper_bound(from);
    if (it != holders.begin() && std::prev(it)->second.end > from)
      --it;
    while (it != holders.end() && it->first < end)
      it = holders.erase(it);
    holders[from] = {end, root, writer};
  }

  /// Whether the bytes from \p from on are \p root's.
  bool holds(int64_t from, mlir::Value root) const {
    auto it = holders.find(from);
    return it != holders.end() && it->second.root == root;
  }

  /// Lets the bytes [from, end) go if they are \p root's; whether they were.
  bool take(int64_t from, int64_t end, mlir::Value root) {
    if (!holds(from, root) || holders[from].end != end)
      return false;
    holders.erase(from);
    return true;
  }

  /// The first who wrote to any of the bytes [from, end); null: nobody.
  mlir::Operation *writerOf(int64_t from, int64_t end) const {
    for (auto &[first, holder] : holders)
      if (first < end && holder.end > from)
        return holder.writer;
    return nullptr;
  }

private:
  struct Holder {
    int64_t end;
    mlir::Value root;
    mlir::Operation *writer;
  };
  std::map<int64_t, Holder> holders; ///< by first byte, disjoint
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PARTITION_ARENAHOLDERS_H
