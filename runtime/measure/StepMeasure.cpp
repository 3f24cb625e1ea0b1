//===- StepMeasure.cpp - Measuring what a step takes beside its work ------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/Session.h"
#include "core/Exchange.h"

#include <algorithm>
#include <chrono>

using namespace baechi::runtime;
using Clock = std::chrono::steady_clock;

static constexpr int32_t countedSteps = 15;
static constexpr int32_t emptyOperators = 2000;
static constexpr int32_t wakes = 15;
/// Threads that wait are asleep by then.
static constexpr std::chrono::microseconds lateness(200);

/// Computes meanwhile, so that this thread stays awake.
static void letOthersSleep() {
  Clock::time_point until = Clock::now() + lateness;
  while (Clock::now() < until)
    ;
}

static double median(std::vector<double> times) {
  auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

static int32_t runOperators(baechi_context *context, char *) {
  for (size_t i = 0; i < context->operators.size(); ++i) {
    baechi_operator_begin(context, int32_t(i));
    baechi_operator_end(context, int32_t(i));
  }
  return 0;
}

/// Operator i waits for message i; both have none where there are none.
static int32_t receiveLate(baechi_context *context, char *arena) {
  for (size_t i = 0; i < context->operators.size(); ++i) {
    if (baechi_recv(context, 0, int32_t(i), arena) ||
        baechi_await_recv(context, 0, int32_t(i)))
      return Exchange::Stop;
    baechi_operator_begin(context, int32_t(i));
    baechi_operator_end(context, int32_t(i));
  }
  return 0;
}

static int32_t sendLate(baechi_context *context, char *arena) {
  for (size_t i = 0; i < context->operators.size(); ++i) {
    letOthersSleep();
    baechi_operator_begin(context, int32_t(i));
    baechi_operator_end(context, int32_t(i));
    if (baechi_send(context, 0, int32_t(i), arena) ||
        baechi_await_send(context, 0, int32_t(i)))
      return Exchange::Stop;
  }
  return 0;
}

static void *resolve(const std::string &name) {
  return reinterpret_cast<void *>(name == "sendLate"      ? sendLate
                                  : name == "receiveLate" ? receiveLate
                                                          : runOperators);
}

static Program twoDevices(const char *first, const char *second,
                          int32_t operators, int32_t messages) {
  Program program;
  program.devices = {{"first", "host", first, 64, 64, {}},
                     {"second", "host", second, 64, 64, {}}};
  for (DeviceInfo &device : program.devices)
    device.operators.assign(size_t(operators), {"", "", 0, 0});
  if (messages > 0)
    program.queues = {
        {0, 1, std::vector<MessageInfo>(size_t(messages), {"", 0, 0, 0})}};
  // Short steps, of which the calling thread runs a part: with longer ones what
  // is measured here does not matter.
  program.ends = true;
  program.predicted.stepNs = 1;
  return program;
}

static Program emptySteps(size_t devices, int32_t operators) {
  Program program = twoDevices("runOperators", "runOperators", operators, 0);
  program.devices.resize(devices);
  return program;
}

/// The median time that steps of a program without messages take beside what
/// counts as their operators'.
static Expected<double> measureSteps(Program program) {
  auto session = Session::create(std::move(program), resolve);
  if (!session)
    return session.takeError();
  std::vector<double> times;
  for (int32_t i = 0; i < countedSteps; ++i) {
    letOthersSleep(); // as between steps that something comes between
    if (Error error = (*session)->step())
      return error;
    const Timeline &timeline = (*session)->timeline();
    times.push_back(double(timeline.wallNs - timeline.devices[0].busyNs));
  }
  return median(std::move(times));
}

static Expected<double> measureWakes() {
  auto session = Session::create(
      twoDevices("sendLate", "receiveLate", wakes, wakes), resolve);
  if (!session)
    return session.takeError();
  if (Error error = (*session)->step())
    return error;
  const auto &devices = (*session)->timeline().devices;
  std::vector<double> times;
  for (size_t i = 0; i < size_t(wakes); ++i)
    times.push_back(double(devices[1].operators[i].beginNs -
                           devices[0].operators[i].endNs));
  return median(std::move(times));
}

static Expected<StepOverheads> measureOnce() {
  Expected<double> alone = measureSteps(emptySteps(1, 0));
  if (!alone)
    return alone.takeError();
  Expected<double> empty = measureSteps(emptySteps(2, 0));
  if (!empty)
    return empty.takeError();
  Expected<double> full = measureSteps(emptySteps(1, emptyOperators));
  if (!full)
    return full.takeError();
  Expected<double> wake = measureWakes();
  if (!wake)
    return wake.takeError();
  StepOverheads overheads;
  overheads.stepNs = *empty;
  overheads.aloneNs = std::min(*alone, *empty);
  overheads.operatorNs = std::max(0.0, (*full - *alone) / emptyOperators);
  overheads.wakeNs = std::max(0.0, *wake);
  return overheads;
}

Expected<StepOverheads> baechi::runtime::settleOverheads(
    const std::function<Expected<StepOverheads>()> &measure) {
  constexpr int most = 5;
  constexpr double agreement = 1.5;
  struct Time {
    double StepOverheads::*ns;
    double allowance; // half of so little is no matter
  };
  constexpr Time times[] = {{&StepOverheads::stepNs, 5000},
                            {&StepOverheads::operatorNs, 50},
                            {&StepOverheads::wakeNs, 5000},
                            {&StepOverheads::aloneNs, 5000}};
  Expected<StepOverheads> least = measure();
  bool settled = false;
  for (int i = 1; i < most && least && !settled; ++i) {
    Expected<StepOverheads> next = measure();
    if (!next)
      return next;
    settled = true;
    for (const Time &time : times) {
      double &known = (*least).*time.ns, found = (*next).*time.ns;
      settled &= std::max(known, found) <=
                 agreement * std::min(known, found) + time.allowance;
      known = std::min(known, found);
    }
  }
  if (least)
    least->disturbed = !settled;
  return least;
}

Expected<StepOverheads> baechi::runtime::measureHostStep() {
  return settleOverheads(measureOnce);
}
