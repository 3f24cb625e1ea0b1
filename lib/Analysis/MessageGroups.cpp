//===- MessageGroups.cpp - Messages in groups -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The devices are run without times: each goes on until it awaits a message
// that has not been taken. Of the messages that both ends have offered the one
// of the earliest planned start is taken next. A group ends where the next
// message was offered only after one of the group had been taken, for then it
// may wait for that.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MessageGroups.h"
#include <queue>

using namespace baechi;
using Kind = Instruction::Kind;

namespace {
struct Place {
  int64_t start;
  int32_t queue, seq;
  /// The group that was open when both ends had offered it.
  int64_t offeredIn;
  bool operator>(const Place &other) const {
    return std::tie(start, queue, seq) >
           std::tie(other.start, other.queue, other.seq);
  }
};

class Grouping {
public:
  Grouping(const StepProgram &program,
           const std::vector<std::vector<int64_t>> &starts)
      : program(program), starts(starts), next(program.devices.size(), 0) {
    for (const StepProgram::Queue &queue : program.queues) {
      groups.emplace_back(queue.messages.size(), none);
      offers.emplace_back(queue.messages.size(), 0);
      missing += queue.messages.size();
    }
  }

  std::optional<std::vector<std::vector<int64_t>>> run() {
    for (size_t device = 0; device < program.devices.size(); ++device)
      advance(device);
    while (!ready.empty()) {
      Place place = ready.top();
      ready.pop();
      if (place.offeredIn == group)
        ++group;
      groups[place.queue][place.seq] = group;
      --missing;
      advance(program.queues[place.queue].from);
      advance(program.queues[place.queue].to);
    }
    if (missing != 0)
      return std::nullopt;
    return std::move(groups);
  }

private:
  /// Runs a device up to an await of a message that has not been taken.
  void advance(size_t device) {
    const std::vector<Instruction> &code = program.devices[device];
    for (size_t &at = next[device]; at < code.size(); ++at) {
      const Instruction &step = code[at];
      bool isMessage =
          step.kind != Kind::Operator && step.kind != Kind::LocalCopy;
      // What nobody sends never arrives.
      if (isMessage && (size_t(step.queue) >= groups.size() ||
                        size_t(step.seq) >= groups[step.queue].size())) {
        ++missing;
        return;
      }
      switch (step.kind) {
      case Kind::Operator:
      case Kind::LocalCopy:
        break;
      case Kind::Send:
      case Kind::Recv:
        offers[step.queue][step.seq] +=
            program.queues[step.queue].messages[step.seq].lent ? 2 : 1;
        if (offers[step.queue][step.seq] == 2)
          ready.push(
              {starts[step.queue][step.seq], step.queue, step.seq, group});
        break;
      case Kind::AwaitSend:
      case Kind::AwaitRecv:
        if (step.ofLastStep)
          break;
        if (groups[step.queue][step.seq] == none)
          return;
        break;
      case Kind::GiveBack:
        break;
      }
    }
  }

  static constexpr int64_t none = -1;

  const StepProgram &program;
  const std::vector<std::vector<int64_t>> &starts;
  /// Of each device, its next instruction.
  std::vector<size_t> next;
  std::vector<std::vector<int64_t>> groups;
  /// How many ends have offered each message.
  std::vector<std::vector<int>> offers;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
  /// The open group; what is offered at first is offered before any.
  int64_t group = none;
  size_t missing = 0;
};
} // namespace

std::optional<std::vector<std::vector<int64_t>>>
baechi::groupMessages(const StepProgram &program,
                      const std::vector<std::vector<int64_t>> &starts) {
  return Grouping(program, starts).run();
}
