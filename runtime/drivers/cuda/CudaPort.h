//===- CudaPort.h - Where CUDA devices meet other ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// As of any message of a CUDA device (CudaMover.cpp), an offer records an
/// event on the compute stream; what moves the message waits for that on a
/// stream of its own and records an event when it is done, which the compute
/// stream waits for where the message is awaited.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAPORT_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAPORT_H

#include "core/Port.h"
#include "drivers/cuda/CudaDevice.h"
#include "drivers/cuda/StagingPlan.h"

namespace baechi::runtime::cuda {

class CudaPort : public Port {
public:
  struct MessageEvents {
    Event offered = nullptr;
    Event begin = nullptr, done = nullptr;
  };

  CudaPort(CudaDevice &device, size_t messages)
      : device(device), api(device.api()), events(messages) {}
  CudaPort(const CudaPort &) = delete;
  ~CudaPort() override;

  Problem offered(Side side, int32_t seq) final;
  Problem awaited(Side side, int32_t seq, const Exchange &exchange) final;
  Interval timeOf(int32_t seq) const final;

  const MessageEvents &eventsOf(int32_t seq) const {
    return events[size_t(seq)];
  }

protected:
  Error start();

  CudaDevice &device;
  const Api &api;

private:
  std::vector<MessageEvents> events;
};

/// Pinned host memory of a process, where the transport sends messages from or
/// receives them. Used by the relay's thread alone.
class StagingPlaces {
public:
  /// `device`: one of those that have these messages.
  static Expected<std::shared_ptr<StagingPlaces>>
  allocate(CudaDevice &device, const Program &program,
           const std::vector<StagedMessage> &messages);
  StagingPlaces(const StagingPlaces &) = delete;
  ~StagingPlaces();

  void *at(size_t message) const;
  /// Whether all that had its place before it in this step is through.
  bool isFree(size_t message) const;
  void pass(size_t message) { ++passed[message]; }
  int64_t bytes() const { return plan.bytes; }

private:
  StagingPlaces(CudaDevice &device, StagingPlan plan)
      : device(device), plan(std::move(plan)),
        passed(this->plan.places.size(), 0) {}

  CudaDevice &device;
  const StagingPlan plan;
  void *memory = nullptr;
  /// In how many steps each message went through.
  std::vector<uint64_t> passed;
};

/// Takes `messages` of one queue through these places, where they are from
/// number `first` on.
Expected<std::unique_ptr<Port>>
makeStagedPort(CudaDevice &device, bool sends, size_t messages,
               std::shared_ptr<StagingPlaces> places, size_t first);

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAPORT_H
