//===- ProfileIndex.cpp - A profile's rows by their kernels -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Analysis/ExactSums.h"

using namespace mlir;
using namespace baechi;

ProfileIndex::ProfileIndex(const Profile &profile) {
  for (const ProfileRow &row : profile.rows) {
    byHash[row.hash].push_back(&row);
    kinds.insert(row.kind);
  }
}

ArrayRef<const ProfileRow *> ProfileIndex::rowsOf(StringRef hash) const {
  auto found = byHash.find(hash);
  if (found == byHash.end())
    return {};
  return found->second;
}

const ProfileRow *ProfileIndex::find(StringRef hash, StringRef kind,
                                     StringRef implementation) const {
  for (const ProfileRow *row : rowsOf(hash))
    if (row->kind == kind && row->implementation == implementation)
      return row;
  return nullptr;
}

const ProfileRow *ProfileIndex::fastest(StringRef hash, StringRef kind) const {
  const ProfileRow *best = nullptr;
  for (const ProfileRow *row : rowsOf(hash))
    // What kernels must ask for is no choice.
    if (row->kind == kind && row->implementation != kExact &&
        (!best || row->medianNs < best->medianNs))
      best = row;
  return best;
}
