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

#if __has_include(<cudnn_graph.h>) && __has_include(<cuda_runtime_api.h>)
#include "drivers/cuda/CudaDnnApi.h"
#include <cudnn_graph.h>

namespace dnn = baechi::runtime::cuda::dnn;
#define SAME(ours, theirs) static_assert(dnn::ours == int(theirs))
SAME(notSupported, CUDNN_STATUS_NOT_SUPPORTED);
SAME(float32, CUDNN_DATA_FLOAT);
SAME(float16, CUDNN_DATA_HALF);
SAME(bfloat16, CUDNN_DATA_BFLOAT16);
SAME(crossCorrelation, CUDNN_CROSS_CORRELATION);
SAME(heuristicsA, CUDNN_HEUR_MODE_A);
SAME(heuristicsFallback, CUDNN_HEUR_MODE_FALLBACK);
SAME(convolutionDescriptor, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(engineDescriptor, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(engineConfiguration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(heuristicsDescriptor, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(executionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(knobChoice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
SAME(convolutionForward,
     CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(convolutionOfFilters,
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(operationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(variantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(tensorDescriptor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(ofHandle, CUDNN_TYPE_HANDLE);
SAME(ofDataType, CUDNN_TYPE_DATA_TYPE);
SAME(ofInt64, CUDNN_TYPE_INT64);
SAME(ofFloat, CUDNN_TYPE_FLOAT);
SAME(ofPointer, CUDNN_TYPE_VOID_PTR);
SAME(ofConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(ofHeuristics, CUDNN_TYPE_HEUR_MODE);
SAME(ofKnobType, CUDNN_TYPE_KNOB_TYPE);
SAME(ofNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(ofDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(convolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(convolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(convolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(convolutionSteps, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(convolutionPaddingAfter, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(convolutionPaddingBefore, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(convolutionSpaces, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(heuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(heuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(heuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(configurationEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(configurationKnobs, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
SAME(planHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(planConfiguration, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(planWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(knobType, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
SAME(knobValue, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
SAME(forwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(forwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(forwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(forwardFilters, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(forwardImages, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(forwardResults, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(filtersAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(filtersBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(filtersConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(filtersFilters, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(filtersImages, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(filtersResults, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(graphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(graphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(tensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(tensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(tensorSizes, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(tensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(tensorName, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(packNames, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(packPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(packWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(engineGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
SAME(engineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(engineNumericalNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(usesTensorCores, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(shortensInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(shortensSums, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(usesFft, CUDNN_NUMERICAL_NOTE_FFT);
SAME(isNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(usesWinograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
SAME(usesWinograd4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
SAME(usesWinograd6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
SAME(usesWinograd13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
#undef SAME

TEST(CudnnApi, IsThatOfItsHeader) {
#define CHECK(member, theirs)                                                  \
  EXPECT_TRUE((SameCall<decltype(ours::DnnApi::member),                        \
                        decltype(&theirs)>::parametersFit))                    \
      << #theirs
  CHECK(create, cudnnCreate);
  CHECK(destroy, cudnnDestroy);
  CHECK(setStream, cudnnSetStream);
  CHECK(createDescriptor, cudnnBackendCreateDescriptor);
  CHECK(destroyDescriptor, cudnnBackendDestroyDescriptor);
  CHECK(setAttribute, cudnnBackendSetAttribute);
  CHECK(getAttribute, cudnnBackendGetAttribute);
  CHECK(finalize, cudnnBackendFinalize);
  CHECK(execute, cudnnBackendExecute);
  CHECK(statusName, cudnnGetErrorString);
  CHECK(version, cudnnGetVersion);
#undef CHECK
}
#else
TEST(CudnnApi, IsThatOfItsHeader) {
  GTEST_SKIP() << "there is no cudnn_graph.h to compare with";
}
#endif
