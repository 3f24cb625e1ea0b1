//===- FakeCuda.h - A CUDA driver without a GPU, for tests -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A library with the functions of CUDA's driver that drivers/cuda calls
/// (BAECHI_CUDA_LIBRARY names it). Device memory is host memory; streams run on
/// a thread of the library's own, in an order that is random within what
/// streams and events allow, so that a wait that is missing shows in results.
/// Beside, every use of memory is checked (FakeChecker.h): what two streams
/// touch must be ordered, and what is touched must be allocated.
///
/// Kernels are functions of the test: an image is a FakeImage.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECUDA_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECUDA_H

#include <cstddef>
#include <cstdint>

namespace fakecuda {

/// A range that a kernel touches: `bytes` from the pointer that is its
/// parameter number `parameter`.
struct FakeAccess {
  int parameter;
  size_t bytes;
  bool writes;
};

struct FakeKernel {
  const char *name;
  void (*run)(void **parameters);
  const FakeAccess *accesses;
  size_t accessCount;
  size_t parameterCount;
};

/// What cuModuleLoadData is given.
struct FakeImage {
  static constexpr uint64_t magicNumber = 0x62616563686921ULL;
  uint64_t magic;
  const FakeKernel *kernels;
  size_t kernelCount;
};

/// How many bytes of a parameter a launch keeps: pointers and numbers.
constexpr size_t parameterBytes = 8;
constexpr size_t mostParameters = 130;

struct FakeOptions {
  uint64_t seed = 1;
  int devices = 1;
  size_t memoryBytes = size_t(512) << 20; ///< a device
  /// Of it, what each module takes while it is loaded, and each node of a graph
  /// while it can be launched.
  size_t codeBytes = 0, nodeBytes = 0;
  int failCall = 0;   ///< this call of the API fails, counted from 1; 0: none
  int failWith = 999; ///< CUDA_ERROR_UNKNOWN
  int breakLaunch =
      0; ///< this launch ends its context (CUDA_ERROR_ILLEGAL_ADDRESS)
  bool peerAccess = true;             ///< GPUs can reach each other's memory
  int peerError = 0;                  ///< what enabling that answers, if not 0
  const char *failFunction = nullptr; ///< each call of this one fails
  /// This algorithm of products is the fast one: all others take milliseconds.
  /// -1: none does.
  int fastAlgorithm = -1;
  /// Products of this compute type have no algorithm (a cublasComputeType_t).
  int refusedCompute = -1;
  /// Convolutions have no engine.
  bool refusesConvolutions = false;
  int hangLaunch = 0; ///< this launch does not end before hang() is lifted
  // Delays.
  int longestDelay = 0; ///< streams fall behind by up to so many microseconds
  const char *slowFunction = nullptr; ///< each call of this one takes
  int slowMicroseconds = 0;           ///< so much longer
  // NCCL.
  int ncclFailWith = 2;   ///< a failing call of NCCL's: ncclSystemError
  int ncclBreakGroup = 0; ///< this group never ends, and all learn that
                          ///< (ncclRemoteError); counted from 1
};

/// Where the library is: where it was built, or what the environment variable
/// BAECHI_FAKE_CUDA says.
const char *path();
/// A function of the library, for tests that call the driver themselves.
void *find(const char *function);

} // namespace fakecuda

extern "C" {
/// Starts anew: no device memory, no handles, no calls, no misuse.
void fakeCudaReset(const fakecuda::FakeOptions *options);
/// Calls of the API since the last reset.
int fakeCudaCalls();
/// Of these, those that load code or allocate a device's memory.
int fakeCudaLoads();
/// Graphs launched since the last reset.
int fakeCudaGraphLaunches();
/// Of the graph that was instantiated last: how many of its nodes at most run
/// one after the other.
int fakeCudaLongestChain();
/// From now on each call of that function fails, of none where it is null.
void fakeCudaFail(const char *function);
/// From now on no stream goes on.
void fakeCudaHold();
/// Lets a hanging launch end, and streams go on.
void fakeCudaRelease();
/// The first GPU's context fails from now on, as after a kernel that used a
/// wrong address.
void fakeCudaBreak();
/// What NCCL was called for since the last reset: a line a group, "RANK: > PEER
/// BYTES" for each send and "< PEER BYTES" for each receive. Stands until the
/// next call.
const char *fakeNcclLog();
/// The ranges of NVTX since the last call, a line each, indented by their
/// depth. Stands until the next call.
const char *fakeNvtxRanges();
/// What was used wrongly, and what is still held, a line each; "" if nothing.
/// Stands until the next call.
const char *fakeCudaMisuse();
}

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECUDA_H
