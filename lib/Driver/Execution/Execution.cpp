//===- Execution.cpp - A compiled program in execution -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Execution/Execution.h"
#include "Baechi/Driver/Execution/Ranks.h"
#include "Baechi/Driver/Input/Errors.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

using namespace baechi;

namespace {
Array arrayLike(const runtime::BufferInfo &info) {
  Array array;
  array.type = runtime::elementName(info.type);
  array.shape = info.shape;
  array.data.resize(info.bytes);
  return array;
}
} // namespace

double Measurement::quantileNs(double share) const {
  if (wallNs.empty())
    return 0;
  std::vector<int64_t> sorted = wallNs;
  std::sort(sorted.begin(), sorted.end());
  // Between two steps where the share falls between them.
  double place = share * (sorted.size() - 1);
  size_t below = place;
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

double Measurement::meanNs() const {
  return std::accumulate(wallNs.begin(), wallNs.end(), 0.0) /
         std::max<size_t>(1, wallNs.size());
}

Execution::~Execution() {
  if (session && !session->usable())
    code->keepForGood();
}

llvm::Expected<std::unique_ptr<Execution>>
Execution::create(HostJit &jit, const CompiledProgram &compiled,
                  double watchdogSeconds,
                  std::shared_ptr<runtime::FaultInjector> faults,
                  const std::shared_ptr<runtime::Ranks> &ranks) {
  return create(jit, compiled.manifestText(), watchdogSeconds,
                std::move(faults), ranks);
}

llvm::Expected<std::unique_ptr<Execution>>
Execution::create(HostJit &jit, const std::string &manifest,
                  double watchdogSeconds,
                  std::shared_ptr<runtime::FaultInjector> faults,
                  const std::shared_ptr<runtime::Ranks> &ranks) {
  runtime::Expected<runtime::Program> program =
      runtime::Program::parse(manifest);
  if (!program)
    return toLlvm(program.error());
  runtime::SessionOptions options;
  options.watchdogSeconds = watchdogSeconds;
  options.faults = std::move(faults);
  options.ranks = ranks;
  if (ranks)
    if (llvm::Error error = sendProgram(*ranks, manifest, jit.objects()))
      return error;
  std::string why;
  runtime::Expected<std::unique_ptr<runtime::Session>> session =
      runtime::Session::create(
          std::move(*program),
          [&](const std::string &name) -> void * {
            llvm::Expected<void *> address = jit.lookup(name);
            if (address)
              return *address;
            why = ": " + llvm::toString(address.takeError());
            return nullptr;
          },
          options);
  if (!session)
    return llvm::createStringError(session.error().message() + why);
  auto execution = std::make_unique<Execution>();
  execution->session = std::move(*session);
  execution->code = &jit;
  execution->sums.busyNs.resize(execution->program().devices.size());
  // Other processes' steps are theirs.
  execution->replays =
      !ranks && llvm::any_of(execution->program().devices,
                             [](const runtime::DeviceInfo &device) {
                               return device.kind == "cuda";
                             });
  if (execution->replays)
    execution->session->repeatOperators();
  return execution;
}

llvm::Error Execution::setArgument(size_t index, const Array &value) {
  return toLlvm(
      session->setArgument(index, value.data.data(), value.data.size()));
}

void Execution::noteBytes() {
  sums.sentBytes.clear();
  sums.lentBytes.clear();
  for (const runtime::DeviceRecord &device : session->timeline().devices) {
    sums.sentBytes.push_back(device.bytesSent);
    sums.lentBytes.push_back(device.bytesLent);
  }
}

void Execution::noteLinks() {
  for (const runtime::LaneRecord &lane : session->timeline().lanes) {
    sums.links.usedNs += lane.usedNs;
    sums.links.waitedNs += lane.waitedNs;
  }
}

llvm::Expected<std::vector<float>>
Execution::stepsOverlapped(int64_t count, bool counted,
                           std::optional<size_t> loss) {
  std::vector<float> losses(loss ? count : 0);
  std::vector<runtime::Fetch> fetches;
  if (loss)
    fetches.push_back({*loss, reinterpret_cast<char *>(losses.data())});
  if (runtime::Error error = session->steps(count, {}, fetches))
    return toLlvm(error);
  noteBytes();
  if (!counted)
    return losses;
  const runtime::Timeline &timeline = session->timeline();
  fastestStep = timeline;
  fastestStep.wallNs = timeline.wallNs / count;
  ++timedSteps;
  sums.wallNs.push_back(fastestStep.wallNs);
  for (auto [sum, device] : llvm::zip(sums.busyNs, timeline.devices))
    sum += device.busyNs;
  noteLinks();
  return losses;
}

llvm::Error Execution::step(bool counted) {
  bool timed = !replays || (counted && timedSteps == 0);
  session->recordTimes(timed);
  if (runtime::Error error = session->step())
    return toLlvm(error);
  noteBytes();
  const runtime::Timeline &timeline = session->timeline();
  if (!counted)
    return llvm::Error::success();
  if (!timed || !replays)
    sums.wallNs.push_back(timeline.wallNs);
  if (!timed)
    return llvm::Error::success();
  if (timedSteps++ == 0 || timeline.wallNs < fastestStep.wallNs)
    fastestStep = timeline;
  // Not of the time that repeats took.
  if (replays && timeline.devices.size() == 1)
    fastestStep.wallNs = timeline.devices.front().busyNs;
  for (auto [sum, device] : llvm::zip(sums.busyNs, timeline.devices))
    sum += device.busyNs;
  noteLinks();
  return llvm::Error::success();
}

Measurement Execution::measurement() const {
  Measurement mean = sums;
  // Too few steps to replay any.
  if (mean.wallNs.empty() && timedSteps > 0)
    mean.wallNs.push_back(fastestStep.wallNs);
  else
    mean.replayed = replays && timedSteps > 0;
  // Operators that are begun one by one take longer, as their step does.
  double share =
      mean.replayed && fastestStep.wallNs > 0 && program().devices.size() > 1
          ? mean.medianNs() / double(fastestStep.wallNs)
          : 1;
  for (size_t device = 0; device < program().devices.size(); ++device)
    mean.besideArena.push_back(session->besideArena(device));
  for (double &busy : mean.busyNs)
    busy *= share / double(std::max<size_t>(1, timedSteps));
  return mean;
}

MeasuredSteps Execution::measured() const {
  Measurement mean = measurement();
  return {program(), fastestStep, mean.busyNs, mean.medianNs()};
}

llvm::Expected<Array> Execution::result(size_t index) const {
  Array array = arrayLike(program().results[index]);
  if (runtime::Error error =
          session->getResult(index, array.data.data(), array.data.size()))
    return toLlvm(error);
  return array;
}

llvm::Expected<Array> Execution::argument(size_t index) const {
  Array array = arrayLike(program().arguments[index]);
  if (runtime::Error error =
          session->getArgument(index, array.data.data(), array.data.size()))
    return toLlvm(error);
  return array;
}

llvm::Expected<std::string> baechi::firstDifference(const Execution &a,
                                                    const Execution &b) {
  auto differs = [](llvm::Expected<Array> x,
                    llvm::Expected<Array> y) -> llvm::Expected<bool> {
    if (!x || !y)
      return llvm::joinErrors(x.takeError(), y.takeError());
    return x->data != y->data;
  };
  const runtime::Program &program = a.program();
  for (size_t i = 0; i < program.results.size(); ++i) {
    llvm::Expected<bool> different = differs(a.result(i), b.result(i));
    if (!different)
      return different.takeError();
    if (*different)
      return "result '" + program.results[i].name + "'";
  }
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    llvm::Expected<bool> different = differs(a.argument(i), b.argument(i));
    if (!different)
      return different.takeError();
    if (*different)
      return "argument '" + program.arguments[i].name + "'";
  }
  return "";
}
