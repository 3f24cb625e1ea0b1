//===- ProfileIndex.h - A profile's rows by their kernels -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_PROFILEINDEX_H
#define BAECHI_COSTS_PROFILEINDEX_H

#include "Baechi/Costs/Profile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace baechi {

/// The rows of a profile by their kernels, for who looks for many: a profile of
/// some years has tens of thousands. The rows must stay as they are meanwhile.
class ProfileIndex {
public:
  explicit ProfileIndex(const Profile &profile);

  /// A kernel's rows, in the profile's order.
  llvm::ArrayRef<const ProfileRow *> rowsOf(llvm::StringRef hash) const;
  /// As those of Profile.
  const ProfileRow *fastest(llvm::StringRef hash, llvm::StringRef kind) const;
  const ProfileRow *find(llvm::StringRef hash, llvm::StringRef kind,
                         llvm::StringRef implementation) const;
  /// Whether any row is of that kind.
  bool hasKind(llvm::StringRef kind) const { return kinds.contains(kind); }

private:
  llvm::StringMap<llvm::SmallVector<const ProfileRow *, 2>> byHash;
  llvm::StringSet<> kinds;
};

} // namespace baechi

#endif // BAECHI_COSTS_PROFILEINDEX_H
