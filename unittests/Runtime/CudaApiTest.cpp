//===- CudaApiTest.cpp - Our declarations against the toolkit's ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaApi.h"
#include "Baechi/Runtime/CudaAbi.h"
#include "drivers/cuda/CudaBlasApi.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace ours = baechi::runtime::cuda;

namespace {
/// Pointers, enumerations and integers alike: what a call passes.
template <typename T> struct Passed {
  static constexpr size_t size = sizeof(T);
  static constexpr bool pointer = std::is_pointer_v<T>;
};
template <typename A, typename B> struct SameCall : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct SameCall<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof(R) == sizeof(S) &&
                         sizeof...(A) == sizeof...(B)> {
  static constexpr bool parametersFit = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return ((Passed<A>::size == Passed<B>::size &&
               Passed<A>::pointer == Passed<B>::pointer) &&
              ...);
    return false;
  }();
};
} // namespace

#if __has_include(<cuda.h>)
#include <cuda.h>

static_assert(ours::copyEngines == CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT &&
              ours::computeMajor ==
                  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              ours::computeMinor ==
                  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(ours::pointerMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
              ours::pointerOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL &&
              ours::memoryOfDevice == CU_MEMORYTYPE_DEVICE);
static_assert(ours::success == CUDA_SUCCESS);
static_assert(ours::invalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(ours::outOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(ours::notReady == CUDA_ERROR_NOT_READY);
static_assert(ours::peerUnsupported == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
static_assert(ours::peerAlreadyEnabled ==
              CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(ours::tooManyPeers == CUDA_ERROR_TOO_MANY_PEERS);
static_assert(ours::streamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(ours::captureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(ours::eventDefault == CU_EVENT_DEFAULT);
static_assert(ours::eventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(ours::hostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(ours::hostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);

TEST(CudaApi, IsThatOfTheToolkit) {
  // The header renames functions to their newest versions, as the table does.
#define CHECK(member, theirs)                                                  \
  EXPECT_TRUE((SameCall<decltype(ours::Api::member),                           \
                        decltype(&theirs)>::parametersFit))                    \
      << #theirs
  CHECK(init, cuInit);
  CHECK(getErrorName, cuGetErrorName);
  CHECK(driverVersion, cuDriverGetVersion);
  CHECK(deviceGetCount, cuDeviceGetCount);
  CHECK(deviceGet, cuDeviceGet);
  CHECK(deviceGetPciBusId, cuDeviceGetPCIBusId);
  CHECK(deviceGetName, cuDeviceGetName);
  CHECK(deviceGetAttribute, cuDeviceGetAttribute);
  CHECK(canAccessPeer, cuDeviceCanAccessPeer);
  CHECK(enablePeerAccess, cuCtxEnablePeerAccess);
  CHECK(primaryRetain, cuDevicePrimaryCtxRetain);
  CHECK(primaryRelease, cuDevicePrimaryCtxRelease);
  CHECK(getCurrent, cuCtxGetCurrent);
  CHECK(setCurrent, cuCtxSetCurrent);
  CHECK(synchronize, cuCtxSynchronize);
  CHECK(memGetInfo, cuMemGetInfo);
  CHECK(pointerAttribute, cuPointerGetAttribute);
  CHECK(memAlloc, cuMemAlloc);
  CHECK(memFree, cuMemFree);
  CHECK(memsetAsync, cuMemsetD8Async);
  CHECK(memcpyToDevice, cuMemcpyHtoDAsync);
  CHECK(memcpyToHost, cuMemcpyDtoHAsync);
  CHECK(memcpyAsync, cuMemcpyAsync);
  CHECK(hostRegister, cuMemHostRegister);
  CHECK(hostUnregister, cuMemHostUnregister);
  CHECK(hostAlloc, cuMemHostAlloc);
  CHECK(hostFree, cuMemFreeHost);
  CHECK(streamCreate, cuStreamCreate);
  CHECK(streamDestroy, cuStreamDestroy);
  CHECK(streamQuery, cuStreamQuery);
  CHECK(streamWait, cuStreamWaitEvent);
  CHECK(eventCreate, cuEventCreate);
  CHECK(eventDestroy, cuEventDestroy);
  CHECK(eventRecord, cuEventRecord);
  CHECK(eventQuery, cuEventQuery);
  CHECK(eventElapsed, cuEventElapsedTime);
  CHECK(moduleLoad, cuModuleLoadData);
  CHECK(moduleUnload, cuModuleUnload);
  CHECK(moduleGetFunction, cuModuleGetFunction);
  CHECK(launch, cuLaunchKernel);
  CHECK(beginCapture, cuStreamBeginCapture);
  CHECK(endCapture, cuStreamEndCapture);
  CHECK(graphInstantiate, cuGraphInstantiateWithFlags);
  CHECK(graphLaunch, cuGraphLaunch);
  CHECK(graphExecDestroy, cuGraphExecDestroy);
  CHECK(graphDestroy, cuGraphDestroy);
#if CUDA_VERSION >= 13000
  CHECK(captureInfo, cuStreamGetCaptureInfo);
  CHECK(setDependencies, cuStreamUpdateCaptureDependencies);
  static_assert(ours::setCaptureDependencies ==
                CU_STREAM_SET_CAPTURE_DEPENDENCIES);
#endif
#undef CHECK
}
#else
TEST(CudaApi, IsThatOfTheToolkit) {
  GTEST_SKIP() << "there is no cuda.h (CUDA's toolkit) to compare with";
}
#endif

#if __has_include(<cuda.h>) && __has_include(<nccl.h>)
#include "transport/nccl/NcclApi.h"
#include <nccl.h>

namespace nccl = baechi::runtime::nccl;

static_assert(nccl::success == ncclSuccess &&
              nccl::inProgress == ncclInProgress);
static_assert(nccl::bytesType == ncclInt8);
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
// Ours is the beginning of theirs.
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(nccl::Config, version) ==
                  offsetof(ncclConfig_t, version) &&
              offsetof(nccl::Config, blocking) ==
                  offsetof(ncclConfig_t, blocking));

TEST(NcclApi, IsThatOfItsHeader) {
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(theirs.magic, nccl::Config().magic);
  EXPECT_LE(nccl::Config().version, theirs.version);
#define CHECK(member, theirs)                                                  \
  EXPECT_TRUE((SameCall<decltype(nccl::Api::member),                           \
                        decltype(&theirs)>::parametersFit))                    \
      << #theirs
  CHECK(getUniqueId, ncclGetUniqueId);
  CHECK(initRank, ncclCommInitRankConfig);
  CHECK(finalize, ncclCommFinalize);
  CHECK(destroy, ncclCommDestroy);
  CHECK(abort, ncclCommAbort);
  CHECK(getAsyncError, ncclCommGetAsyncError);
  CHECK(groupStart, ncclGroupStart);
  CHECK(groupEnd, ncclGroupEnd);
  CHECK(send, ncclSend);
  CHECK(receive, ncclRecv);
  CHECK(getErrorString, ncclGetErrorString);
  CHECK(getLastError, ncclGetLastError);
#undef CHECK
}
#else
TEST(NcclApi, IsThatOfItsHeader) {
  GTEST_SKIP() << "there is no nccl.h to compare with";
}
#endif

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace lt = baechi::runtime::cuda::blas;
static_assert(CUBLAS_STATUS_NOT_SUPPORTED == lt::notSupported);
static_assert(CUDA_R_32F == lt::real32 && int(CUDA_R_32F) == BAECHI_CUDA_F32 &&
              int(CUDA_R_16F) == BAECHI_CUDA_F16 &&
              int(CUDA_R_16BF) == BAECHI_CUDA_BF16);
static_assert(CUBLAS_COMPUTE_32F == lt::compute32 &&
              CUBLAS_COMPUTE_32F_FAST_16F == lt::compute32Fast16 &&
              CUBLAS_COMPUTE_32F_FAST_16BF == lt::compute32FastBf16 &&
              CUBLAS_COMPUTE_32F_FAST_TF32 == lt::compute32FastTf32);
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == lt::transposeA &&
              CUBLASLT_MATMUL_DESC_TRANSB == lt::transposeB &&
              CUBLASLT_MATMUL_DESC_EPILOGUE == lt::epilogue &&
              CUBLASLT_MATMUL_DESC_BIAS_POINTER == lt::biasPointer &&
              CUBLAS_OP_T == 1);
static_assert(int(CUBLASLT_EPILOGUE_BIAS) == lt::epilogueBias);
static_assert(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == lt::batchCount &&
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET == lt::batchOffset);
static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ==
                  lt::mostWorkspaceBytes &&
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == lt::alignmentA &&
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES == lt::alignmentB &&
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES == lt::alignmentC &&
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == lt::alignmentD);
static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(ours::Algorithm));
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) ==
                  sizeof(ours::HeuristicResult) &&
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) ==
                  offsetof(ours::HeuristicResult, workspaceBytes) &&
              offsetof(cublasLtMatmulHeuristicResult_t, state) ==
                  offsetof(ours::HeuristicResult, state));

TEST(CudaApi, ProductsAreThoseOfTheToolkit) {
#define CHECK(member, theirs)                                                  \
  EXPECT_TRUE((SameCall<decltype(ours::BlasApi::member),                       \
                        decltype(&theirs)>::parametersFit))                    \
      << #theirs
  CHECK(operationCreate, cublasLtMatmulDescCreate);
  CHECK(operationSet, cublasLtMatmulDescSetAttribute);
  CHECK(layoutCreate, cublasLtMatrixLayoutCreate);
  CHECK(layoutSet, cublasLtMatrixLayoutSetAttribute);
  CHECK(preferenceCreate, cublasLtMatmulPreferenceCreate);
  CHECK(preferenceSet, cublasLtMatmulPreferenceSetAttribute);
  CHECK(heuristic, cublasLtMatmulAlgoGetHeuristic);
  CHECK(check, cublasLtMatmulAlgoCheck);
  CHECK(multiply, cublasLtMatmul);
  CHECK(version, cublasLtGetVersion);
#undef CHECK
}
#endif
