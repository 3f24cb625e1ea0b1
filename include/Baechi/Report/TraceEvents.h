//===- TraceEvents.h - Timelines in the trace viewers' format ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The Trace Event Format of Chrome, which Perfetto reads: rows within
/// processes, spans on them, arrows between them, counters. Times are in
/// nanoseconds.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPORT_TRACEEVENTS_H
#define BAECHI_REPORT_TRACEEVENTS_H

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace baechi::report {

struct TraceRow {
  int64_t process = 0, row = 0;
};

/// What viewers show of a span that is clicked.
using TraceArguments = std::vector<
    std::pair<std::string, std::variant<int64_t, double, std::string>>>;

/// Writes one event at a time: a tree of all events would take several times
/// the memory of their text.
class TraceEvents {
public:
  TraceEvents();

  void nameProcess(int64_t process, const std::string &name);
  /// Labels stand beside the name; processes are shown by their places.
  void describeProcess(int64_t process, const std::string &labels,
                       int64_t place);
  void nameRow(TraceRow row, const std::string &name);

  /// Without a category where that is empty.
  void addSpan(TraceRow row, const std::string &name,
               const std::string &category, int64_t startNs, int64_t endNs,
               const TraceArguments &arguments);
  /// Viewers draw an arrow only between spans that its ends lie in.
  void addArrow(const std::string &name, TraceRow from, int64_t fromNs,
                TraceRow to, int64_t toNs);
  void addCounter(int64_t process, const std::string &name, int64_t atNs,
                  const std::string &unit, int64_t value);

  /// The text of the file; nothing can be added after it.
  std::string take();

private:
  template <typename Event> void write(const Event &event);

  std::string text;
  bool isFirst = true;
  int64_t arrows = 0;
};

} // namespace baechi::report

#endif // BAECHI_REPORT_TRACEEVENTS_H
