//===- StepTimes.cpp - When a step does what ------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/StepTimes.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>

using namespace baechi;
using placement::MemoryLevel;
using runtime::Interval;

StepTimes baechi::predictedTimes(const runtime::Program &program) {
  StepTimes times;
  for (const runtime::DeviceInfo &device : program.devices) {
    times.operators.emplace_back();
    for (const runtime::OperatorInfo &op : device.operators)
      times.operators.back().push_back({op.startNs, op.startNs + op.timeNs});
  }
  for (const runtime::QueueInfo &queue : program.queues) {
    times.messages.emplace_back();
    for (const runtime::MessageInfo &message : queue.messages)
      times.messages.back().push_back({message.startNs, message.endNs});
  }
  return times;
}

StepTimes baechi::measuredTimes(const runtime::Timeline &timeline) {
  StepTimes times;
  for (const runtime::DeviceRecord &device : timeline.devices)
    times.operators.push_back(device.operators);
  for (const std::vector<runtime::CopyRecord> &queue : timeline.queues)
    times.messages.emplace_back(queue.begin(), queue.end());
  return times;
}

/// What of \p span lies in others, which may overlap each other.
static int64_t coveredNs(Interval span, std::vector<Interval> others) {
  llvm::sort(others, [](const Interval &a, const Interval &b) {
    return a.beginNs < b.beginNs;
  });
  int64_t covered = 0, counted = span.beginNs;
  for (const Interval &other : others) {
    int64_t end = std::min(span.endNs, other.endNs);
    covered += std::max<int64_t>(0, end - std::max(counted, other.beginNs));
    counted = std::max(counted, end);
  }
  return covered;
}

PoolCopies baechi::poolCopies(const runtime::Program &program,
                              const StepTimes &times, size_t pool) {
  PoolCopies copies;
  for (auto [queue, messages] : llvm::zip(program.queues, times.messages)) {
    bool comes = size_t(queue.from) == pool;
    if (!comes && size_t(queue.to) != pool)
      continue;
    const auto &computing = times.operators[comes ? queue.to : queue.from];
    for (const Interval &copy : messages) {
      if (!copy.happened())
        continue;
      std::vector<Interval> beside;
      llvm::copy_if(computing, std::back_inserter(beside),
                    [&](const Interval &op) {
                      return op.happened() && op.beginNs < copy.endNs &&
                             copy.beginNs < op.endNs;
                    });
      copies.ns += copy.durationNs();
      copies.hiddenNs += coveredNs(copy, std::move(beside));
    }
  }
  return copies;
}

namespace {
/// How many bytes of an arena hold something.
class ArenaUse {
public:
  explicit ArenaUse(llvm::ArrayRef<HeldTensor> tensors) {
    for (const HeldTensor &tensor : tensors) {
      borders.push_back(tensor.offset);
      borders.push_back(tensor.offset + tensor.bytes);
    }
    llvm::sort(borders);
    borders.erase(llvm::unique(borders), borders.end());
    holders.resize(borders.size());
  }

  void add(const HeldTensor &tensor, int by) {
    for (size_t part = partAt(tensor.offset),
                end = partAt(tensor.offset + tensor.bytes);
         part < end; ++part) {
      bool was = holders[part] > 0;
      holders[part] += by;
      bytes += (int64_t(holders[part] > 0) - int64_t(was)) *
               (borders[part + 1] - borders[part]);
    }
  }

  int64_t bytes = 0;

private:
  size_t partAt(int64_t offset) const {
    return llvm::lower_bound(borders, offset) - borders.begin();
  }
  std::vector<int64_t> borders;
  std::vector<int> holders; ///< between two borders each
};
} // namespace

std::vector<std::vector<MemoryLevel>>
baechi::arenaLevels(const std::vector<std::vector<HeldTensor>> &held,
                    const StepTimes &times) {
  auto intervalOf = [&](const HeldTensor::Event &event) {
    return (event.isMessage ? times.messages
                            : times.operators)[event.of][event.position];
  };
  std::vector<std::vector<MemoryLevel>> all;
  for (const std::vector<HeldTensor> &tensors : held) {
    ArenaUse use(tensors);
    std::map<int64_t, std::vector<std::pair<const HeldTensor *, int>>> changes;
    changes[0];
    for (const HeldTensor &tensor : tensors) {
      int64_t begin = 0, end = 0;
      if (tensor.from)
        begin = std::max<int64_t>(0, intervalOf(*tensor.from).beginNs);
      for (const HeldTensor::Event &event : tensor.until)
        end = std::max(end, intervalOf(event).endNs);
      changes[begin].push_back({&tensor, 1});
      if (!tensor.isKept)
        changes[std::max(begin, end)].push_back({&tensor, -1});
    }
    std::vector<MemoryLevel> levels;
    for (auto &[at, some] : changes) {
      for (auto [tensor, by] : some)
        use.add(*tensor, by);
      if (levels.empty() || levels.back().bytes != use.bytes)
        levels.push_back({at, use.bytes});
    }
    all.push_back(std::move(levels));
  }
  return all;
}
