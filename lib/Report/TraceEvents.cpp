//===- TraceEvents.cpp - The trace viewers' format --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Report/TraceEvents.h"

#include <nlohmann/json.hpp>

using namespace baechi::report;

using Json = nlohmann::ordered_json;

static double microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

TraceEvents::TraceEvents()
    : text("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[") {}

template <typename Event> void TraceEvents::write(const Event &event) {
  text += isFirst ? "\n" : ",\n";
  isFirst = false;
  // Names from outside of files need not be UTF-8.
  text += event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void TraceEvents::nameProcess(int64_t process, const std::string &name) {
  write(Json{{"ph", "M"},
             {"pid", process},
             {"name", "process_name"},
             {"args", {{"name", name}}}});
}

void TraceEvents::describeProcess(int64_t process, const std::string &labels,
                                  int64_t place) {
  write(Json{{"ph", "M"},
             {"pid", process},
             {"name", "process_labels"},
             {"args", {{"labels", labels}}}});
  write(Json{{"ph", "M"},
             {"pid", process},
             {"name", "process_sort_index"},
             {"args", {{"sort_index", place}}}});
}

void TraceEvents::nameRow(TraceRow row, const std::string &name) {
  auto meta = [&](const char *what, Json arguments) {
    write(Json{{"ph", "M"},
               {"pid", row.process},
               {"tid", row.row},
               {"name", what},
               {"args", std::move(arguments)}});
  };
  meta("thread_name", {{"name", name}});
  meta("thread_sort_index", {{"sort_index", row.row}});
}

void TraceEvents::addSpan(TraceRow row, const std::string &name,
                          const std::string &category, int64_t startNs,
                          int64_t endNs, const TraceArguments &arguments) {
  Json event{{"ph", "X"}, {"pid", row.process}, {"tid", row.row}};
  event["name"] = name;
  if (!category.empty())
    event["cat"] = category;
  event["ts"] = microseconds(startNs);
  event["dur"] = microseconds(endNs - startNs);
  Json &args = event["args"] = Json::object();
  for (const auto &[key, value] : arguments)
    std::visit([&, &key = key](const auto &v) { args[key] = v; }, value);
  write(event);
}

void TraceEvents::addArrow(const std::string &name, TraceRow from,
                           int64_t fromNs, TraceRow to, int64_t toNs) {
  auto end = [&](const char *phase, TraceRow row, int64_t atNs) {
    Json event{{"ph", phase},
               {"pid", row.process},
               {"tid", row.row},
               {"id", arrows},
               {"name", name},
               {"cat", "transfer"},
               {"ts", microseconds(atNs)}};
    if (*phase == 'f') // within the span that it lies in, not before the next
      event["bp"] = "e";
    write(event);
  };
  end("s", from, fromNs);
  end("f", to, toNs);
  ++arrows;
}

void TraceEvents::addCounter(int64_t process, const std::string &name,
                             int64_t atNs, const std::string &unit,
                             int64_t value) {
  write(Json{{"ph", "C"},
             {"pid", process},
             {"name", name},
             {"ts", microseconds(atNs)},
             {"args", {{unit, value}}}});
}

std::string TraceEvents::take() {
  text += "\n]}\n";
  return std::move(text);
}
