//===- RankSteps.h - Steps of several ranks that overlap --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What rank 0 tells the others of steps that overlap, as texts: their number,
/// the values of arguments that each step begins with, and the results that are
/// wanted of each. A rank gets what lies on its devices, and sends that back.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_RANKSTEPS_H
#define BAECHI_RUNTIME_RANKS_RANKSTEPS_H

#include "Baechi/Runtime/Feeds.h"
#include "ranks/RankRelay.h"

#include <span>
#include <string>
#include <vector>

namespace baechi::runtime {

/// What rank 0 told this rank of steps.
struct ToldSteps {
  int64_t count = 0;
  std::vector<Feed> feeds;
  std::vector<Fetch> fetches;
  /// What they point into.
  std::vector<std::string> fed, fetched;
};

/// Rank 0: tells all others.
Error sendSteps(Ranks &ranks, const Program &program, const RankRelay &relay,
                int64_t count, std::span<const Feed> feeds,
                std::span<const Fetch> fetches);
/// Another rank, which got this command.
Expected<ToldSteps> receiveSteps(Ranks &ranks, const Program &program,
                                 const Command &command);

/// Whether \p rank has a part of it, or a copy of one.
bool liesOn(const BufferInfo &buffer, const RankRelay &relay, int32_t rank);
/// What \p rank holds of a result, out of all values of which it has set those.
void takeParts(const BufferInfo &result, const RankRelay &relay, int32_t rank,
               const char *from, char *to);

/// When the steps have ended well everywhere.
Error sendFetched(Ranks &ranks, const ToldSteps &told);
/// Rank 0: what lies elsewhere of the results.
Error receiveFetched(Ranks &ranks, const Program &program,
                     const RankRelay &relay, int64_t count,
                     std::span<const Fetch> fetches);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_RANKSTEPS_H
