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

/// Takes messages of these sizes through pinned host memory, from where the
/// transport sends them or where it receives them. Each message has its own
/// place there, so none waits for another.
Expected<std::unique_ptr<Port>>
makeStagedPort(CudaDevice &device, bool sends,
               const std::vector<int64_t> &bytes);

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAPORT_H
