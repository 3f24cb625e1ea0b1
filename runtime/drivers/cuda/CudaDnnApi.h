//===- CudaDnnApi.h - cuDNN's graph interface -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// cuDNN is loaded when a convolution first asks for it. The types and numbers
/// are those of its stable binary interface (cudnn_graph.h); CudaApiTest.cpp
/// compares them with the header where there is one.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDADNNAPI_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDADNNAPI_H

#include "drivers/cuda/CudaApi.h"

namespace baechi::runtime::cuda {

namespace dnn {
constexpr int notSupported = 3000;
// Types of elements.
constexpr int float32 = 0, float16 = 2, bfloat16 = 9;
constexpr int crossCorrelation = 1;
// Ways of the heuristics: the best first; all that work at all.
constexpr int heuristicsA = 3, heuristicsFallback = 2;

// Descriptors.
constexpr int convolutionDescriptor = 1, engineDescriptor = 2,
              engineConfiguration = 3, heuristicsDescriptor = 4,
              executionPlan = 5, knobChoice = 7, convolutionForward = 10,
              convolutionOfFilters = 11, operationGraph = 15, variantPack = 16,
              tensorDescriptor = 17;

// Types of attributes.
constexpr int ofHandle = 0, ofDataType = 1, ofInt64 = 3, ofFloat = 4,
              ofPointer = 6, ofConvolutionMode = 7, ofHeuristics = 8,
              ofKnobType = 9, ofNumericalNote = 11, ofDescriptor = 15;

// Attributes.
constexpr int convolutionComputeType = 100, convolutionMode = 101,
              convolutionDilations = 102, convolutionSteps = 103,
              convolutionPaddingAfter = 104, convolutionPaddingBefore = 105,
              convolutionSpaces = 106;
constexpr int heuristicsMode = 200, heuristicsGraph = 201,
              heuristicsResults = 202;
constexpr int configurationEngine = 300, configurationKnobs = 302;
constexpr int planHandle = 400, planConfiguration = 401, planWorkspace = 402;
constexpr int knobType = 600, knobValue = 601;
constexpr int forwardAlpha = 700, forwardBeta = 701, forwardConvolution = 702,
              forwardFilters = 703, forwardImages = 704, forwardResults = 705;
constexpr int filtersAlpha = 712, filtersBeta = 713, filtersConvolution = 714,
              filtersFilters = 715, filtersImages = 716, filtersResults = 717;
constexpr int graphHandle = 800, graphOperations = 801;
constexpr int tensorAlignment = 900, tensorType = 901, tensorSizes = 902,
              tensorStrides = 903, tensorName = 906;
constexpr int packNames = 1000, packPointers = 1001, packWorkspace = 1003;
constexpr int engineGraph = 1300, engineIndex = 1301,
              engineNumericalNotes = 1303;

// Numerical notes of engines.
constexpr int usesTensorCores = 0, shortensInputs = 1, shortensSums = 2,
              usesFft = 3, isNondeterministic = 4, usesWinograd = 5,
              usesWinograd4 = 6, usesWinograd6 = 7, usesWinograd13 = 8;
} // namespace dnn

/// The functions that are used: member name, symbol, parameters.
#define BAECHI_CUDNN_FUNCTIONS(F)                                              \
  F(create, "cudnnCreate", (void **handle))                                    \
  F(destroy, "cudnnDestroy", (void *handle))                                   \
  F(setStream, "cudnnSetStream", (void *handle, Stream stream))                \
  F(createDescriptor, "cudnnBackendCreateDescriptor",                          \
    (int kind, void **descriptor))                                             \
  F(destroyDescriptor, "cudnnBackendDestroyDescriptor", (void *descriptor))    \
  F(setAttribute, "cudnnBackendSetAttribute",                                  \
    (void *descriptor, int attribute, int type, int64_t count,                 \
     const void *values))                                                      \
  F(getAttribute, "cudnnBackendGetAttribute",                                  \
    (void *descriptor, int attribute, int type, int64_t most, int64_t *count,  \
     void *values))                                                            \
  F(finalize, "cudnnBackendFinalize", (void *descriptor))                      \
  F(execute, "cudnnBackendExecute", (void *handle, void *plan, void *pack))

struct DnnApi {
#define F(member, symbol, parameters) int(*member) parameters = nullptr;
  BAECHI_CUDNN_FUNCTIONS(F)
#undef F
  const char *(*statusName)(int status) = nullptr;
  size_t (*version)() = nullptr;
};

/// Loads libcudnn.so.9, or what the environment variable BAECHI_CUDNN_LIBRARY
/// says, once (core/FindLibrary.h says from where). The error says what to
/// install.
Expected<const DnnApi *> loadDnnApi();

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDADNNAPI_H
