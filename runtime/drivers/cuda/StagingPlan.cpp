//===- StagingPlan.cpp - Host memory for messages, over time --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/StagingPlan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// Of places.
static constexpr int64_t alignment = 64;

namespace {

class Planner {
public:
  Planner(const Program &program, const std::vector<StagedMessage> &messages)
      : program(program), messages(messages) {
    plan.places.resize(messages.size());
  }

  StagingPlan run() {
    if (tellsGroups()) {
      place();
      order();
      return std::move(plan);
    }
    for (size_t i = 0; i < messages.size(); ++i) {
      plan.places[i].offset = plan.bytes;
      plan.bytes += bytesOf(i);
    }
    return std::move(plan);
  }

private:
  const MessageInfo &infoOf(size_t i) const {
    return program.queues[size_t(messages[i].queue)]
        .messages[size_t(messages[i].seq)];
  }
  int64_t bytesOf(size_t i) const {
    return (infoOf(i).bytes + alignment - 1) / alignment * alignment;
  }
  int64_t beginOf(size_t i) const { return infoOf(i).startNs; }
  /// It is copied, sent and copied again; the next one is to begin meanwhile.
  int64_t endOf(size_t i) const {
    const MessageInfo &info = infoOf(i);
    return info.endNs + (info.endNs - info.startNs) + 1;
  }

  bool tellsGroups() const {
    return std::all_of(program.queues.begin(), program.queues.end(),
                       [](const QueueInfo &queue) {
                         return std::all_of(queue.messages.begin(),
                                            queue.messages.end(),
                                            [](const MessageInfo &message) {
                                              return message.group >= 0;
                                            });
                       });
  }

  /// The positions of the messages, sorted by what `key` says of them.
  template <typename Key> std::vector<size_t> sortedBy(Key key) const {
    std::vector<size_t> sorted(messages.size());
    std::iota(sorted.begin(), sorted.end(), size_t(0));
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](size_t a, size_t b) { return key(a) < key(b); });
    return sorted;
  }

  /// The lowest room that is free when each is planned to begin.
  void place() {
    std::map<int64_t, int64_t> taken; ///< begin and end
    std::multimap<int64_t, int64_t> until;
    for (size_t i : sortedBy([&](size_t at) {
           return std::tuple(beginOf(at), messages[at].queue, messages[at].seq);
         })) {
      while (!until.empty() && until.begin()->first <= beginOf(i)) {
        taken.erase(until.begin()->second);
        until.erase(until.begin());
      }
      int64_t size = bytesOf(i), at = 0;
      if (size == 0)
        continue;
      for (auto [begin, end] : taken) {
        if (begin - at >= size)
          break;
        at = end;
      }
      plan.places[i].offset = at;
      plan.bytes = std::max(plan.bytes, at + size);
      taken.emplace(at, at + size);
      until.emplace(endOf(i), at);
    }
  }

  /// Each comes after the last that had any of its bytes before it.
  void order() {
    std::map<int64_t, size_t> last; ///< from there on; `nobody`: none had it
    const size_t nobody = messages.size();
    last.emplace(0, nobody);
    auto splitAt = [&](int64_t at) {
      auto it = std::prev(last.upper_bound(at));
      return it->first == at ? it : last.emplace(at, it->second).first;
    };
    for (size_t i : sortedBy([&](size_t at) {
           return std::tuple(infoOf(at).group, beginOf(at), messages[at].queue,
                             messages[at].seq);
         })) {
      int64_t size = bytesOf(i), begin = plan.places[i].offset;
      if (size == 0)
        continue;
      splitAt(begin + size);
      auto from = splitAt(begin), to = last.find(begin + size);
      std::set<size_t> before;
      for (auto it = from; it != to; ++it)
        if (it->second != nobody)
          before.insert(it->second);
      plan.places[i].after.assign(before.begin(), before.end());
      last.erase(from, to);
      last.emplace(begin, i);
    }
  }

  const Program &program;
  const std::vector<StagedMessage> &messages;
  StagingPlan plan;
};

} // namespace

StagingPlan
baechi::runtime::cuda::planStaging(const Program &program,
                                   const std::vector<StagedMessage> &messages) {
  return Planner(program, messages).run();
}
