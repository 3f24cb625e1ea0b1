//===- NcclFabric.h - NCCL between the ranks of a session -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLFABRIC_H
#define BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLFABRIC_H

#include "transport/nccl/NcclLane.h"

#include <map>

namespace baechi::runtime::nccl {

/// One communicator of all GPUs that exchange messages with other ranks', of
/// which this rank has some: a lane each.
class NcclFabric final : public Fabric {
public:
  NcclFabric(const Api &api, Ranks &ranks) : api(api), ranks(ranks) {}
  ~NcclFabric() override;

  // To connect, in this order.

  /// The lane of a member of the communicator, which lies where `device` does.
  Lane &laneOf(int member, cuda::CudaDevice &device);
  /// On this rank alone.
  Error start();
  /// By all ranks that have members: they meet, and exchange a byte. Each is
  /// begun, and then waited for: until NCCL is through with what it was called
  /// for, and `idle` the streams.
  Error join(const UniqueId &id, int members);
  Error greet();
  Error wait(bool idle);

  Problem check() override;
  void abort() override;

private:
  Error describe(const Problem &problem) const;

  const Api &api;
  Ranks &ranks;
  std::map<int, std::unique_ptr<Lane>> lanes;
};

/// A queue's end at a device. bindNcclPort() tells it the lane that has got its
/// messages, once that is in order.
Expected<std::unique_ptr<cuda::CudaPort>> makeNcclPort(cuda::CudaDevice &device,
                                                       size_t messages);
void bindNcclPort(cuda::CudaPort &port, Lane &lane, int32_t queue);

} // namespace baechi::runtime::nccl

#endif // BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLFABRIC_H
