//===- CudaApi.h - The CUDA driver's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// CUDA's driver is loaded when the first CUDA device starts, so that programs
/// without one need no CUDA at all, neither to build nor to run. The types are
/// those of the driver's stable binary interface (cuda.h); CudaApiTest.cpp
/// compares them with the toolkit's header where there is one.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAAPI_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAAPI_H

#include "Baechi/Runtime/Error.h"
#include "core/Asynchronous.h"

#include <cstddef>
#include <cstdint>

namespace baechi::runtime::cuda {

using Result = int;
using Device = int;
using DevicePointer = unsigned long long;
using Context = struct CUctx_st *;
using Stream = struct CUstream_st *;
using Event = struct CUevent_st *;
using Module = struct CUmod_st *;
using Function = struct CUfunc_st *;
using Graph = struct CUgraph_st *;
using GraphExec = struct CUgraphExec_st *;
using Node = struct CUgraphNode_st *;
/// How a node follows another one; not looked at here.
using EdgeData = struct CUgraphEdgeData_st;

// Attributes of a device.
constexpr int copyEngines = 40, computeMajor = 75, computeMinor = 76;
// Attributes of a pointer, and what the first may be.
constexpr int pointerMemoryType = 2, pointerOrdinal = 9;
constexpr unsigned memoryOfDevice = 2;
constexpr Result success = 0;
constexpr Result invalidValue = 1;
constexpr Result outOfMemory = 2;
constexpr Result notReady = 600;
constexpr Result peerUnsupported = 217;
constexpr Result peerAlreadyEnabled = 704;
constexpr Result tooManyPeers = 711;
constexpr unsigned streamNonBlocking = 1;
constexpr int captureThreadLocal = 1;
constexpr unsigned setCaptureDependencies = 1;
constexpr unsigned eventDefault = 0;
constexpr unsigned eventDisableTiming = 2;
constexpr unsigned hostRegisterPortable = 1;
constexpr unsigned hostAllocPortable = 1;

/// The functions that are used: member name, symbol, parameters.
#define BAECHI_CUDA_FUNCTIONS(F)                                               \
  F(init, "cuInit", (unsigned flags))                                          \
  F(getErrorName, "cuGetErrorName", (Result error, const char **text))         \
  F(getErrorString, "cuGetErrorString", (Result error, const char **text))     \
  F(driverVersion, "cuDriverGetVersion", (int *version))                       \
  F(deviceGetCount, "cuDeviceGetCount", (int *count))                          \
  F(deviceGet, "cuDeviceGet", (Device * device, int ordinal))                  \
  F(deviceGetPciBusId, "cuDeviceGetPCIBusId",                                  \
    (char *address, int length, Device device))                                \
  F(deviceGetName, "cuDeviceGetName", (char *name, int bytes, Device device))  \
  F(deviceGetAttribute, "cuDeviceGetAttribute",                                \
    (int *value, int attribute, Device device))                                \
  F(canAccessPeer, "cuDeviceCanAccessPeer",                                    \
    (int *can, Device device, Device peer))                                    \
  F(enablePeerAccess, "cuCtxEnablePeerAccess", (Context peer, unsigned flags)) \
  F(primaryRetain, "cuDevicePrimaryCtxRetain",                                 \
    (Context * context, Device device))                                        \
  F(primaryRelease, "cuDevicePrimaryCtxRelease_v2", (Device device))           \
  F(getCurrent, "cuCtxGetCurrent", (Context * context))                        \
  F(setCurrent, "cuCtxSetCurrent", (Context context))                          \
  F(synchronize, "cuCtxSynchronize", ())                                       \
  F(memGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))              \
  F(pointerAttribute, "cuPointerGetAttribute",                                 \
    (void *value, int attribute, DevicePointer pointer))                       \
  F(memAlloc, "cuMemAlloc_v2", (DevicePointer * pointer, size_t bytes))        \
  F(memFree, "cuMemFree_v2", (DevicePointer pointer))                          \
  F(memsetAsync, "cuMemsetD8Async",                                            \
    (DevicePointer to, unsigned char value, size_t bytes, Stream stream))      \
  F(memcpyToDevice, "cuMemcpyHtoDAsync_v2",                                    \
    (DevicePointer to, const void *from, size_t bytes, Stream stream))         \
  F(memcpyToHost, "cuMemcpyDtoHAsync_v2",                                      \
    (void *to, DevicePointer from, size_t bytes, Stream stream))               \
  F(memcpyAsync, "cuMemcpyAsync",                                              \
    (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))       \
  F(hostRegister, "cuMemHostRegister_v2",                                      \
    (void *memory, size_t bytes, unsigned flags))                              \
  F(hostUnregister, "cuMemHostUnregister", (void *memory))                     \
  F(hostAlloc, "cuMemHostAlloc",                                               \
    (void **memory, size_t bytes, unsigned flags))                             \
  F(hostFree, "cuMemFreeHost", (void *memory))                                 \
  F(streamCreate, "cuStreamCreate", (Stream * stream, unsigned flags))         \
  F(streamDestroy, "cuStreamDestroy_v2", (Stream stream))                      \
  F(streamQuery, "cuStreamQuery", (Stream stream))                             \
  F(streamWait, "cuStreamWaitEvent",                                           \
    (Stream stream, Event event, unsigned flags))                              \
  F(eventCreate, "cuEventCreate", (Event * event, unsigned flags))             \
  F(eventDestroy, "cuEventDestroy_v2", (Event event))                          \
  F(eventRecord, "cuEventRecord", (Event event, Stream stream))                \
  F(eventQuery, "cuEventQuery", (Event event))                                 \
  F(eventElapsed, "cuEventElapsedTime",                                        \
    (float *milliseconds, Event begin, Event end))                             \
  F(moduleLoad, "cuModuleLoadData", (Module * module, const void *image))      \
  F(moduleUnload, "cuModuleUnload", (Module module))                           \
  F(moduleGetFunction, "cuModuleGetFunction",                                  \
    (Function * function, Module module, const char *name))                    \
  F(launch, "cuLaunchKernel",                                                  \
    (Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,    \
     unsigned by, unsigned bz, unsigned sharedBytes, Stream stream,            \
     void **parameters, void **extra))                                         \
  F(beginCapture, "cuStreamBeginCapture_v2", (Stream stream, int mode))        \
  F(endCapture, "cuStreamEndCapture", (Stream stream, Graph * graph))          \
  F(graphInstantiate, "cuGraphInstantiateWithFlags",                           \
    (GraphExec * executable, Graph graph, unsigned long long flags))           \
  F(graphLaunch, "cuGraphLaunch", (GraphExec graph, Stream stream))            \
  F(graphExecDestroy, "cuGraphExecDestroy", (GraphExec graph))                 \
  F(graphDestroy, "cuGraphDestroy", (Graph graph))

/// What drivers have since CUDA 12.3: null where one has not.
#define BAECHI_CUDA_LATER_FUNCTIONS(F)                                         \
  F(captureInfo, "cuStreamGetCaptureInfo_v3",                                  \
    (Stream stream, int *status, uint64_t *id, Graph *graph,                   \
     const Node **dependencies, const EdgeData **edges, size_t *count))        \
  F(setDependencies, "cuStreamUpdateCaptureDependencies_v2",                   \
    (Stream stream, Node * dependencies, const EdgeData *edges, size_t count,  \
     unsigned flags))

struct Api {
#define F(member, symbol, parameters) Result(*member) parameters = nullptr;
  BAECHI_CUDA_FUNCTIONS(F)
  BAECHI_CUDA_LATER_FUNCTIONS(F)
#undef F

  /// `what` with CUDA's own words, where `result` is an error.
  Problem problem(Result result, const char *what) const;
  /// The same as a text for people.
  Error error(Result result, const char *what) const;
  /// How many GPUs this process sees.
  Expected<int> countGpus() const;
};

/// Loads the driver's library and initialises it, once; the library's name is
/// libcuda.so.1, or what the environment variable BAECHI_CUDA_LIBRARY says. The
/// error says what to install.
Expected<const Api *> loadApi();

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAAPI_H
