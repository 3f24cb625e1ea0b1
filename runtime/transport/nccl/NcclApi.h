//===- NcclApi.h - NCCL's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// NCCL is loaded when CUDA devices of several processes first meet, as CUDA's
/// driver is (CudaApi.h). The types are those of NCCL's stable binary
/// interface; CudaApiTest.cpp compares them with nccl.h where there is one.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLAPI_H
#define BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLAPI_H

#include "drivers/cuda/CudaApi.h"

namespace baechi::runtime::nccl {

using Result = int;
using Handle = struct ncclComm *;

constexpr Result success = 0;
constexpr Result inProgress = 7;
constexpr int bytesType = 0; // ncclInt8

struct UniqueId {
  char bytes[128];
};

/// That of NCCL 2.14, the first with communicators that do not block; newer
/// ones take its size for what they do not find in it.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int unused = 0;
};

/// The functions that are used: member name, symbol, parameters.
#define BAECHI_NCCL_FUNCTIONS(F)                                               \
  F(getUniqueId, "ncclGetUniqueId", (UniqueId * id))                           \
  F(initRank, "ncclCommInitRankConfig",                                        \
    (Handle * communicator, int ranks, UniqueId id, int rank, Config *config)) \
  F(finalize, "ncclCommFinalize", (Handle communicator))                       \
  F(destroy, "ncclCommDestroy", (Handle communicator))                         \
  F(abort, "ncclCommAbort", (Handle communicator))                             \
  F(getAsyncError, "ncclCommGetAsyncError",                                    \
    (Handle communicator, Result * error))                                     \
  F(groupStart, "ncclGroupStart", ())                                          \
  F(groupEnd, "ncclGroupEnd", ())                                              \
  F(send, "ncclSend",                                                          \
    (const void *buffer, size_t count, int type, int peer,                     \
     Handle communicator, cuda::Stream stream))                                \
  F(receive, "ncclRecv",                                                       \
    (void *buffer, size_t count, int type, int peer, Handle communicator,      \
     cuda::Stream stream))

struct Api {
#define F(member, symbol, parameters) Result(*member) parameters = nullptr;
  BAECHI_NCCL_FUNCTIONS(F)
#undef F
  const char *(*getErrorString)(Result error) = nullptr;
  const char *(*getLastError)(Handle communicator) = nullptr;

  /// `what` with NCCL's own words, where `result` is an error. That something
  /// goes on is none.
  Problem problem(Result result, const char *what) const;
};

/// Loads the library, once: libnccl.so.2, or what the environment variable
/// BAECHI_NCCL_LIBRARY says. The error says what to do.
Expected<const Api *> loadApi();

} // namespace baechi::runtime::nccl

#endif // BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLAPI_H
