//===- ChromeTrace.cpp - Timelines for trace viewers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/ChromeTrace.h"
#include <nlohmann/json.hpp>

using namespace baechi;
using nlohmann::json;

namespace {
constexpr int predictedProcess = 1, measuredProcess = 2;

class TraceWriter {
public:
  explicit TraceWriter(const runtime::Program &program) : program(program) {}

  void writePredicted() {
    writeRows(predictedProcess, "predicted");
    for (size_t device = 0; device < program.devices.size(); ++device)
      for (const runtime::OperatorInfo &op : program.devices[device].operators)
        writeSpan(predictedProcess, device, op.name, op.startNs,
                  op.startNs + op.timeNs, {{"kernel", op.kernel}});
    for (size_t queue = 0; queue < program.queues.size(); ++queue)
      for (const runtime::MessageInfo &message : program.queues[queue].messages)
        writeMessage(predictedProcess, queue, message, message.startNs,
                     message.endNs, json::object());
  }

  void writeMeasured(const runtime::Timeline &timeline) {
    writeRows(measuredProcess, "measured");
    for (size_t device = 0; device < timeline.devices.size(); ++device) {
      const auto &operators = timeline.devices[device].operators;
      for (size_t i = 0; i < operators.size(); ++i)
        if (operators[i].happened()) {
          const runtime::OperatorInfo &op =
              program.devices[device].operators[i];
          writeSpan(measuredProcess, device, op.name, operators[i].beginNs,
                    operators[i].endNs,
                    {{"kernel", op.kernel}, {"predicted_us", op.timeNs / 1e3}});
        }
    }
    for (size_t queue = 0; queue < timeline.queues.size(); ++queue)
      for (size_t seq = 0; seq < timeline.queues[queue].size(); ++seq) {
        const runtime::CopyRecord &copy = timeline.queues[queue][seq];
        if (copy.happened())
          writeMessage(
              measuredProcess, queue, program.queues[queue].messages[seq],
              copy.beginNs, copy.endNs,
              {{"copied_by", copy.byReceiver ? "receiver" : "sender"}});
      }
  }

  std::string text() const {
    return json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump();
  }

private:
  size_t rowOfQueue(size_t queue) const {
    return program.devices.size() + queue;
  }

  void writeRows(int process, const char *name) {
    events.push_back({{"ph", "M"},
                      {"pid", process},
                      {"name", "process_name"},
                      {"args", {{"name", name}}}});
    auto row = [&](size_t thread, const std::string &text) {
      events.push_back({{"ph", "M"},
                        {"pid", process},
                        {"tid", thread},
                        {"name", "thread_name"},
                        {"args", {{"name", text}}}});
      events.push_back({{"ph", "M"},
                        {"pid", process},
                        {"tid", thread},
                        {"name", "thread_sort_index"},
                        {"args", {{"sort_index", thread}}}});
    };
    for (size_t device = 0; device < program.devices.size(); ++device)
      row(device, program.devices[device].name);
    for (size_t queue = 0; queue < program.queues.size(); ++queue)
      row(rowOfQueue(queue),
          program.devices[program.queues[queue].from].name + " -> " +
              program.devices[program.queues[queue].to].name);
  }

  void writeSpan(int process, size_t row, const std::string &name,
                 int64_t begin, int64_t end, json args) {
    events.push_back({{"ph", "X"},
                      {"pid", process},
                      {"tid", row},
                      {"name", name},
                      {"ts", begin / 1e3},
                      {"dur", (end - begin) / 1e3},
                      {"args", std::move(args)}});
  }

  /// The copy on the queue's row, and an arrow from the sender to the receiver.
  void writeMessage(int process, size_t queue,
                    const runtime::MessageInfo &message, int64_t begin,
                    int64_t end, json args) {
    args["bytes"] = message.bytes;
    writeSpan(process, rowOfQueue(queue), message.name, begin, end,
              std::move(args));
    size_t id = arrows++;
    auto arrow = [&](const char *phase, size_t row, int64_t at) {
      json event = {{"ph", phase},          {"pid", process},
                    {"tid", row},           {"id", id},
                    {"name", message.name}, {"cat", "transfer"},
                    {"ts", at / 1e3}};
      if (*phase == 'f')
        event["bp"] = "e";
      events.push_back(std::move(event));
    };
    arrow("s", program.queues[queue].from, begin);
    arrow("f", program.queues[queue].to, end);
  }

  const runtime::Program &program;
  json events = json::array();
  size_t arrows = 0;
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
