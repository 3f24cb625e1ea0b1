//===- Drivers.cpp - The table of drivers ---------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Driver.h"
#include "drivers/cuda/CudaDriver.h"
#include "drivers/cuda/CudaRoutes.h"
#include "drivers/disk/DiskDriver.h"
#include "drivers/host/HostDriver.h"
#include "drivers/null/NullDriver.h"
#include "transport/nccl/CudaRanks.h"

using namespace baechi::runtime;

static constexpr DriverKind kinds[] = {
    {"host", /*runsEntry=*/true, Memory::Host, makeHostDriver},
    {"cuda", /*runsEntry=*/true, Memory::Own, makeCudaDriver,
     cuda::describeGpus, connectCudaRanks},
    {"pool", /*runsEntry=*/true, Memory::Host, makeHostDriver},
    {"disk", /*runsEntry=*/true, Memory::Own, makeDiskDriver},
    {"null", /*runsEntry=*/false, Memory::None, makeNullDriver},
};

const DriverKind *baechi::runtime::findDriver(std::string_view kind) {
  for (const DriverKind &row : kinds)
    if (row.name == kind)
      return &row;
  return nullptr;
}

std::string baechi::runtime::driverNames() {
  std::string names;
  for (const DriverKind &row : kinds)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}
