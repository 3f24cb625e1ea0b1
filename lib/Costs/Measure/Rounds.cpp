//===- Rounds.cpp - When which code is timed, and how often ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/Rounds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <ctime>
#include <limits>
#include <map>

using namespace baechi;

namespace {
constexpr size_t kRounds = 3;
/// The clock's own cost must not show.
constexpr double kNsPerSample = 20000;
/// Code that is so many times slower than an alternative is not timed again;
/// so much slower, its first call has said enough.
constexpr double kHopeless = 1.5, kHopelessAtOnce = 4;
/// Of the samples of a round, so many times more are taken to find undisturbed
/// ones.
constexpr size_t kPatience = 3;
/// A round has so many calls at least, one that warms among them; estimates are
/// rough.
constexpr double kCallsOfRound = 2, kCautious = 4;

double read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return double(now.tv_sec) * 1e9 + double(now.tv_nsec);
}

/// Budget, and how far the estimates are off.
class Account {
public:
  Account(llvm::ArrayRef<TimedCode> codes, const RoundOptions &options,
          const Clocks &clocks)
      : codes(codes), options(options), clocks(clocks), begin(clocks.wall()) {}

  bool isSpent() const { return clocks.wall() - begin > budgetNs(); }

private:
  double budgetNs() const {
    double floor = options.floorSeconds * 1e9;
    if (options.steps <= 0)
      return floor;
    double estimated = 0, measured = 0;
    std::map<size_t, double> fastest;
    for (const TimedCode &code : codes)
      if (!code.samples.empty()) {
        auto [found, isNew] =
            fastest.try_emplace(code.computation, code.fastest());
        if (isNew)
          estimated += code.weightNs;
        found->second = std::min(found->second, code.fastest());
      }
    for (const TimedCode &code : codes)
      if (auto found = fastest.find(code.computation); found != fastest.end()) {
        measured += code.weightNs / code.estimatedNs * found->second;
        fastest.erase(found);
      }
    double step = options.estimatedStepNs;
    if (estimated > 0)
      step *= measured / estimated;
    return std::max(floor, options.steps * step);
  }

  llvm::ArrayRef<TimedCode> codes;
  const RoundOptions &options;
  const Clocks &clocks;
  double begin;
};

/// One round of one code.
class Sampling {
public:
  Sampling(TimedCode &code, const RoundOptions &options, const Clocks &clocks,
           const std::function<void()> &call)
      : code(code), options(options), clocks(clocks), call(call) {}

  /// \p known: the fastest alternative's time. \p isLate: the budget is spent.
  void run(double known, llvm::function_ref<bool()> isLate) {
    double warm = clocks.wall(), cpu = clocks.cpu();
    call();
    cpu = clocks.cpu() - cpu;
    warm = clocks.wall() - warm;
    if (cpu > kHopelessAtOnce * known) {
      add(warm, cpu, 1);
      return;
    }
    double once = std::max(sample(/*kept=*/false), 1.0);
    size_t taken = 0;
    if (once < kNsPerSample)
      calls = std::clamp(kNsPerSample / once, 1.0, 1000.0);
    else // long enough as it is
      taken = 1;
    for (; !isEnough(taken) && !(taken > 0 && isLate()); ++taken)
      sample(/*kept=*/true);
  }

private:
  bool isEnough(size_t taken) const {
    if (taken == 0)
      return false;
    if (spentNs > options.mostSecondsEach / kRounds * 1e9)
      // Long ones are taken again only where nothing is known of them.
      return good > 0 || !code.disturbed || taken >= kPatience;
    auto fewest = size_t(llvm::divideCeil(options.samplesEach, kRounds));
    return spentNs > options.secondsEach / kRounds * 1e9 &&
           (good >= fewest || taken >= kPatience * fewest);
  }

  /// Short ones are kept only where \p kept.
  double sample(bool kept) {
    double wall = clocks.wall(), cpu = clocks.cpu();
    for (size_t i = 0; i < calls; ++i)
      call();
    cpu = clocks.cpu() - cpu;
    wall = clocks.wall() - wall;
    spentNs += wall;
    if (kept || wall >= kNsPerSample)
      add(wall, cpu, double(calls));
    return wall;
  }

  /// Disturbed samples are worth something as long as there are no others: what
  /// the thread computed is the code's, the rest of the time was somebody
  /// else's.
  void add(double wall, double cpu, double times) {
    bool disturbed = isDisturbed(wall, cpu);
    double ns = (disturbed ? cpu : wall) / times;
    good += !disturbed;
    if (disturbed && !code.samples.empty() && !code.disturbed)
      return;
    if (!disturbed && code.disturbed)
      code.samples.clear();
    code.disturbed = disturbed;
    code.samples.push_back(ns);
  }

  TimedCode &code;
  const RoundOptions &options;
  const Clocks &clocks;
  const std::function<void()> &call;
  size_t calls = 1, good = 0;
  double spentNs = 0;
};

/// Costliest first; what belongs together stays so.
llvm::SmallVector<size_t> inOrder(llvm::ArrayRef<TimedCode> codes) {
  llvm::SmallVector<size_t> order =
      llvm::to_vector(llvm::seq<size_t>(0, codes.size()));
  std::map<size_t, size_t> first;
  for (auto [number, code] : llvm::enumerate(codes))
    first.try_emplace(code.computation, number);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return std::make_pair(-codes[a].weightNs, first[codes[a].computation]) <
           std::make_pair(-codes[b].weightNs, first[codes[b].computation]);
  });
  return order;
}
} // namespace

Clocks Clocks::ofThisThread() {
  return {[] { return read(CLOCK_MONOTONIC); },
          [] { return read(CLOCK_THREAD_CPUTIME_ID); }};
}

Clocks Clocks::ofThisProcess() {
  return {[] { return read(CLOCK_MONOTONIC); },
          [] { return read(CLOCK_PROCESS_CPUTIME_ID); }};
}

Clocks Clocks::ofTheWorld() {
  return {[] { return read(CLOCK_MONOTONIC); },
          [] { return read(CLOCK_MONOTONIC); }};
}

bool baechi::isDisturbed(double wallNs, double cpuNs, double idleNs) {
  // Reading a thread's time takes a microsecond or two.
  constexpr double share = 0.05, allowance = 5000;
  return wallNs - cpuNs > share * wallNs + allowance + idleNs;
}

double TimedCode::fastest() const {
  return samples.empty() ? std::numeric_limits<double>::infinity()
                         : *llvm::min_element(samples);
}

bool baechi::timeInRounds(llvm::MutableArrayRef<TimedCode> codes,
                          const RoundOptions &options, const Clocks &clocks,
                          PrepareCode prepare,
                          llvm::function_ref<bool(size_t)> before) {
  llvm::SmallVector<size_t> order = inOrder(codes);
  Account account(codes, options, clocks);
  std::map<size_t, double> fastest;
  for (size_t round = 0; round < kRounds; ++round)
    for (auto [at, number] : llvm::enumerate(order)) {
      TimedCode &code = codes[number];
      if (!before((round * codes.size() + at) / kRounds))
        return false;
      // Who has begun with a computation compares its alternatives.
      bool begins =
          at == 0 || codes[order[at - 1]].computation != code.computation;
      if (begins && (round > 0 || at > 0) && account.isSpent())
        return true;
      double &known = fastest
                          .try_emplace(code.computation,
                                       std::numeric_limits<double>::infinity())
                          .first->second;
      if (code.impossible ||
          (!code.samples.empty() && code.fastest() > kHopeless * known))
        continue;
      std::function<void()> call = prepare(number);
      if (!call) {
        code.impossible = true;
        continue;
      }
      Sampling(code, options, clocks, call).run(known, [&] {
        return account.isSpent();
      });
      known = std::min(known, code.fastest());
    }
  return true;
}

llvm::SmallVector<size_t> baechi::worthTiming(llvm::ArrayRef<TimedCode> codes,
                                              const RoundOptions &options) {
  double least = options.leastShare * options.estimatedStepNs, tail = 0;
  llvm::SmallVector<size_t> order = inOrder(codes);
  // From the cheapest on; alternatives are one computation's.
  while (!order.empty()) {
    size_t last = order.size() - 1, begin = last;
    while (begin > 0 && codes[order[begin - 1]].computation ==
                            codes[order[last]].computation)
      --begin;
    tail += codes[order[last]].weightNs;
    if (tail >= least)
      break;
    order.truncate(begin);
  }
  double budget = std::max(options.floorSeconds * 1e9,
                           options.steps * options.estimatedStepNs / kCautious);
  llvm::SmallVector<size_t> chosen;
  double spent = 0;
  for (size_t number : order) {
    bool begins = chosen.empty() ||
                  codes[chosen.back()].computation != codes[number].computation;
    if (begins && spent > budget)
      break;
    chosen.push_back(number);
    spent += kCallsOfRound / kCautious * codes[number].estimatedNs +
             options.secondsEach / kRounds * 1e9;
  }
  return chosen;
}
