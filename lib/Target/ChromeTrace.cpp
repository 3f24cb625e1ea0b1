//===- ChromeTrace.cpp - Timelines for trace viewers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/ChromeTrace.h"
#include "Baechi/Report/TraceEvents.h"
#include <algorithm>
#include <optional>
#include <vector>

using namespace baechi;
using report::TraceArguments;
using report::TraceRow;

namespace {
constexpr int predictedProcess = 1, measuredProcess = 2;

/// A slice of the operators' rows, or of a queue's.
struct Slice {
  size_t row;
  int64_t begin, end;
};

class TraceWriter {
public:
  explicit TraceWriter(const runtime::Program &program) : program(program) {}

  void writePredicted() {
    process = predictedProcess;
    operators.clear();
    for (const runtime::DeviceInfo &device : program.devices) {
      std::vector<runtime::Interval> &row = operators.emplace_back();
      for (const runtime::OperatorInfo &op : device.operators)
        row.push_back({op.startNs, op.startNs + op.timeNs});
    }
    writeRows("predicted");
    for (size_t device = 0; device < program.devices.size(); ++device)
      for (const runtime::OperatorInfo &op : program.devices[device].operators)
        writeSpan({device, op.startNs, op.startNs + op.timeNs}, op.name,
                  {{"kernel", op.kernel}});
    for (size_t queue = 0; queue < program.queues.size(); ++queue)
      for (const runtime::MessageInfo &message : program.queues[queue].messages)
        writeMessage(queue, message, {message.startNs, message.endNs}, {});
  }

  void writeMeasured(const runtime::Timeline &timeline) {
    process = measuredProcess;
    operators.clear();
    for (const runtime::DeviceRecord &device : timeline.devices)
      operators.push_back(device.operators);
    writeRows("measured");
    for (size_t device = 0; device < operators.size(); ++device)
      for (size_t i = 0; i < operators[device].size(); ++i)
        if (runtime::Interval time = operators[device][i]; time.happened()) {
          const runtime::OperatorInfo &op =
              program.devices[device].operators[i];
          writeSpan({device, time.beginNs, time.endNs}, op.name,
                    {{"kernel", op.kernel}, {"predicted_us", op.timeNs / 1e3}});
        }
    for (size_t queue = 0; queue < timeline.queues.size(); ++queue)
      for (size_t seq = 0; seq < timeline.queues[queue].size(); ++seq) {
        const runtime::CopyRecord &copy = timeline.queues[queue][seq];
        if (copy.happened())
          writeMessage(
              queue, program.queues[queue].messages[seq], copy,
              {{"copied_by", copy.byReceiver ? "receiver" : "sender"}});
      }
  }

  std::string text() { return events.take(); }

private:
  size_t rowOfQueue(size_t queue) const {
    return program.devices.size() + queue;
  }
  TraceRow rowOf(size_t row) const {
    return {process, static_cast<int64_t>(row)};
  }

  void writeRows(const char *name) {
    events.nameProcess(process, name);
    for (size_t device = 0; device < program.devices.size(); ++device)
      events.nameRow(rowOf(device), program.devices[device].name);
    for (size_t queue = 0; queue < program.queues.size(); ++queue)
      events.nameRow(rowOf(rowOfQueue(queue)),
                     program.devices[program.queues[queue].from].name + " -> " +
                         program.devices[program.queues[queue].to].name);
  }

  void writeSpan(Slice slice, const std::string &name,
                 const TraceArguments &arguments) {
    events.addSpan(rowOf(slice.row), name, "", slice.begin, slice.end,
                   arguments);
  }

  /// The copy on the queue's row, and an arrow from the operator that made the
  /// data to the one that comes after them on the receiver. Viewers draw an
  /// arrow only between slices that its ends lie in; where there is no such
  /// operator, that is the copy's.
  void writeMessage(size_t queue, const runtime::MessageInfo &message,
                    runtime::Interval copy, TraceArguments arguments) {
    Slice slice{rowOfQueue(queue), copy.beginNs, copy.endNs};
    arguments.emplace_back("bytes", message.bytes);
    writeSpan(slice, message.name, arguments);
    // A slice's end is no longer part of it.
    auto lastOf = [](Slice slice) {
      return std::max(slice.begin, slice.end - 1);
    };
    std::optional<Slice> from = producerOf(queue, message, copy.beginNs);
    std::optional<Slice> to = firstFrom(program.queues[queue].to, copy.endNs);
    events.addArrow(message.name, rowOf(from.value_or(slice).row),
                    from ? lastOf(*from) : slice.begin,
                    rowOf(to.value_or(slice).row),
                    to ? to->begin : lastOf(slice));
  }

  /// The slice of the operator that made the message; else the sender's last
  /// one before the copy: of an argument, or in a program without ids.
  std::optional<Slice> producerOf(size_t queue,
                                  const runtime::MessageInfo &message,
                                  int64_t copied) const {
    size_t device = program.queues[queue].from;
    std::optional<Slice> last;
    for (size_t i = 0; i < operators[device].size(); ++i) {
      runtime::Interval time = operators[device][i];
      if (!time.happened() || time.endNs > copied)
        continue;
      Slice slice{device, time.beginNs, time.endNs};
      if (message.producer >= 0 &&
          program.devices[device].operators[i].id == message.producer)
        return slice;
      if (!last || time.endNs >= last->end)
        last = slice;
    }
    return last;
  }

  /// The first slice of a device that begins at that time or later.
  std::optional<Slice> firstFrom(size_t device, int64_t time) const {
    std::optional<Slice> first;
    for (const runtime::Interval &op : operators[device])
      if (op.happened() && op.beginNs >= time &&
          (!first || op.beginNs < first->begin))
        first = {device, op.beginNs, op.endNs};
    return first;
  }

  const runtime::Program &program;
  int process = predictedProcess;
  /// When each device's operators ran, by the timeline that is being written.
  std::vector<std::vector<runtime::Interval>> operators;
  report::TraceEvents events;
};
} // namespace

std::string baechi::chromeTrace(const runtime::Program &program,
                                const runtime::Timeline *measured) {
  TraceWriter writer(program);
  writer.writePredicted();
  if (measured)
    writer.writeMeasured(*measured);
  return writer.text();
}
