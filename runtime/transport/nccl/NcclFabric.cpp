//===- NcclFabric.cpp - NCCL between the ranks of a session -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclFabric.h"
#include "Baechi/Runtime/Ranks.h"

#include <algorithm>
#include <chrono>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::nccl;
using std::chrono::steady_clock;

/// How long GPUs may take to connect, and to take leave of each other.
static constexpr std::chrono::seconds longestConnect(30);
static constexpr std::chrono::seconds longestFarewell(5);

NcclFabric::~NcclFabric() {
  if (ranks.broken())
    abort();
  // All lanes of this rank before any is waited for: they are each other's
  // peers, too.
  for (auto &[member, lane] : lanes)
    lane->finalize();
  auto until = steady_clock::now() + longestFarewell;
  for (auto &[member, lane] : lanes) {
    bool settled = false;
    while (!lane->settle(settled) && !settled && steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (settled)
      lane->destroy();
    else
      lane->abort();
  }
}

Lane &NcclFabric::laneOf(int member, cuda::CudaDevice &device) {
  std::unique_ptr<Lane> &lane = lanes[member];
  if (!lane)
    lane = std::make_unique<Lane>(api, device);
  return *lane;
}

Error NcclFabric::start() {
  for (auto &[member, lane] : lanes) {
    if (Error error = lane->start())
      return error;
  }
  return Error();
}

Error NcclFabric::describe(const Problem &problem) const {
  if (!problem)
    return Error();
  std::string text = std::string(problem.reason) + ": " + problem.detail;
  for (const auto &[member, lane] : lanes)
    if (std::string last = lane->lastError(); !last.empty())
      return Error(text.append(" (").append(last).append(")"));
  return Error(text);
}

Error NcclFabric::join(const UniqueId &id, int members) {
  Problem problem = api.problem(api.groupStart(), "NCCL cannot be initialised");
  for (auto &[member, lane] : lanes)
    if (!problem)
      problem = lane->join(id, members, member);
  Problem ended = api.problem(api.groupEnd(), "NCCL cannot be initialised");
  return describe(problem ? problem : ended);
}

Error NcclFabric::greet() {
  for (auto &[member, lane] : lanes)
    if (Problem problem = lane->greet())
      return describe(problem);
  return Error();
}

Error NcclFabric::wait(bool idle) {
  auto until = steady_clock::now() + longestConnect;
  auto isDone = [&](Lane &lane, Problem &problem) {
    bool settled = false;
    problem = lane.settle(settled);
    return settled && (!idle || lane.isIdle());
  };
  for (auto &[member, lane] : lanes)
    for (Problem problem; !isDone(*lane, problem);) {
      if (problem)
        return describe(problem);
      if (int32_t gone = ranks.findLost(); gone >= 0) {
        ranks.setLost(gone);
        return Error(ranks.describeLost(gone));
      }
      if (steady_clock::now() > until)
        return Error("NCCL does not connect the GPUs within " +
                     std::to_string(longestConnect.count()) +
                     " seconds (NCCL_DEBUG=WARN says more; BAECHI_NCCL=0 goes "
                     "without it)");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  return Error();
}

Problem NcclFabric::check() {
  bool settled = false;
  for (auto &[member, lane] : lanes)
    if (Problem problem = lane->settle(settled))
      return problem;
  return {};
}

void NcclFabric::abort() {
  for (auto &[member, lane] : lanes)
    lane->abort();
}

namespace {

class NcclPort final : public cuda::CudaPort {
public:
  NcclPort(cuda::CudaDevice &device, size_t count)
      : CudaPort(device, count), messages(count) {}
  using CudaPort::start;

  void bind(Lane &given, int32_t queue) {
    lane = &given;
    for (size_t seq = 0; seq < messages.size(); ++seq)
      messages[seq] = &lane->find(queue, int32_t(seq));
  }

  Problem begin(int32_t seq, void *buffer, int64_t bytes) override {
    lane->offer(*messages[size_t(seq)], buffer, bytes);
    return {};
  }

  Problem poll(int32_t seq, State &state) override {
    Problem problem = lane->advance();
    state = messages[size_t(seq)]->issued ? State::Ended : State::Waiting;
    return problem;
  }

  bool isIdle() override { return lane->isIdle(); }

private:
  Lane *lane = nullptr;
  std::vector<LaneMessage *> messages;
};

} // namespace

Expected<std::unique_ptr<cuda::CudaPort>>
baechi::runtime::nccl::makeNcclPort(cuda::CudaDevice &device, size_t messages) {
  auto port = std::make_unique<NcclPort>(device, messages);
  if (Error error = port->start())
    return error;
  return std::unique_ptr<cuda::CudaPort>(std::move(port));
}

void baechi::runtime::nccl::bindNcclPort(cuda::CudaPort &port, Lane &lane,
                                         int32_t queue) {
  static_cast<NcclPort &>(port).bind(lane, queue);
}
