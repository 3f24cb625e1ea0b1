//===- DnnGraph.cpp - A convolution in cuDNN's descriptors ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/DnnGraph.h"

#include <algorithm>
#include <cstring>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// More than there are. cuDNN 9.19 tells their number only who asks for some.
static constexpr size_t mostNotes = 64, mostKnobs = 64;

Descriptor &Descriptor::set(int attribute,
                            const std::vector<Descriptor> &parts) {
  std::vector<void *> objects;
  for (const Descriptor &part : parts) {
    if (status == 0)
      status = part.status;
    objects.push_back(part.object);
  }
  return set(attribute, dnn::ofDescriptor, objects.data(), objects.size());
}

int64_t Descriptor::count(int attribute, int type) const {
  int64_t count = 0;
  return api->getAttribute(object, attribute, type, 0, &count, nullptr) == 0
             ? count
             : 0;
}

int Descriptor::get(int attribute, int kind, size_t most,
                    std::vector<Descriptor> &parts) const {
  std::vector<void *> objects;
  for (size_t i = 0; i < most; ++i) {
    Descriptor &part = parts.emplace_back(*api, kind);
    if (part.status)
      return part.status;
    objects.push_back(part.object);
  }
  int64_t known = 0;
  int answer = api->getAttribute(object, attribute, dnn::ofDescriptor,
                                 int64_t(most), &known, objects.data());
  parts.resize(answer ? 0 : std::min(most, size_t(known)));
  return answer;
}

std::vector<int> Descriptor::notes(int attribute, int type) const {
  std::vector<int> notes(mostNotes);
  int64_t known = 0;
  if (api->getAttribute(object, attribute, type, int64_t(mostNotes), &known,
                        notes.data()) != 0)
    known = 0;
  notes.resize(std::min(mostNotes, size_t(known)));
  return notes;
}

static int typeOf(const Convolution &c) {
  return c.type == BAECHI_CUDA_F32    ? dnn::float32
         : c.type == BAECHI_CUDA_BF16 ? dnn::bfloat16
                                      : dnn::float16;
}

DnnGraph::DnnGraph(const DnnApi &api, void *handle, const Convolution &c)
    : api(api), handle(handle), convolution(c) {
  auto spaces = size_t(c.spaces);
  const int64_t none[BAECHI_CUDA_MOST_SPACES] = {};
  auto tensor = [&](const baechi_cuda_space_tensor &from,
                    int64_t name) -> Descriptor & {
    Descriptor &to = parts.emplace_back(api, dnn::tensorDescriptor);
    to.set(dnn::tensorName, dnn::ofInt64, name)
        .set(dnn::tensorType, dnn::ofDataType, typeOf(c))
        .set(dnn::tensorAlignment, dnn::ofInt64, from.align)
        .set(dnn::tensorSizes, dnn::ofInt64, from.sizes, 2 + spaces)
        .set(dnn::tensorStrides, dnn::ofInt64, from.strides, 2 + spaces)
        .finalize();
    return to;
  };
  parts.reserve(5);
  ConvolutionTensors tensors = tensorsOf(c);
  Descriptor &a = tensor(*tensors.a, names[0]);
  Descriptor &b = tensor(*tensors.b, names[1]);
  Descriptor &written = tensor(*tensors.c, names[2]);
  Descriptor &how = parts.emplace_back(api, dnn::convolutionDescriptor);
  how.set(dnn::convolutionSpaces, dnn::ofInt64, c.spaces)
      .set(dnn::convolutionComputeType, dnn::ofDataType, dnn::float32)
      .set(dnn::convolutionMode, dnn::ofConvolutionMode, dnn::crossCorrelation)
      .set(dnn::convolutionPaddingBefore, dnn::ofInt64, none, spaces)
      .set(dnn::convolutionPaddingAfter, dnn::ofInt64, none, spaces)
      .set(dnn::convolutionSteps, dnn::ofInt64, c.steps, spaces)
      .set(dnn::convolutionDilations, dnn::ofInt64, c.dilations, spaces)
      .finalize();
  bool filters = c.of_filters != 0;
  Descriptor &operation = parts.emplace_back(
      api, filters ? dnn::convolutionOfFilters : dnn::convolutionForward);
  operation
      .set(filters ? dnn::filtersConvolution : dnn::forwardConvolution, how)
      .set(filters ? dnn::filtersImages : dnn::forwardImages, a)
      .set(filters ? dnn::filtersResults : dnn::forwardFilters, b)
      .set(filters ? dnn::filtersFilters : dnn::forwardResults, written)
      .set(filters ? dnn::filtersAlpha : dnn::forwardAlpha, dnn::ofFloat, 1.0F)
      .set(filters ? dnn::filtersBeta : dnn::forwardBeta, dnn::ofFloat, 0.0F)
      .finalize();
  graph = Descriptor(api, dnn::operationGraph);
  graph.set(dnn::graphHandle, dnn::ofHandle, handle)
      .set(dnn::graphOperations, operation)
      .finalize();
}

bool DnnGraph::mayUse(const std::vector<int> &notes) const {
  bool single = convolution.type == BAECHI_CUDA_F32;
  return std::none_of(notes.begin(), notes.end(), [&](int note) {
    switch (note) {
    case dnn::usesTensorCores: // which round single precision to TF32
      return single && convolution.math == BAECHI_CUDA_MATH_FP32;
    case dnn::shortensInputs:
    case dnn::shortensSums:
    case dnn::isNondeterministic:
    // Their errors are not those of a sum of products.
    case dnn::usesFft:
    case dnn::usesWinograd:
    case dnn::usesWinograd4:
    case dnn::usesWinograd6:
    case dnn::usesWinograd13:
      return true;
    default:
      return false;
    }
  });
}

Descriptor DnnGraph::plan(const Descriptor &configuration,
                          int64_t &workspaceBytes) {
  Descriptor plan(api, dnn::executionPlan);
  plan.set(dnn::planHandle, dnn::ofHandle, handle)
      .set(dnn::planConfiguration, configuration)
      .finalize();
  if (plan.status == 0)
    plan.status = plan.get(dnn::planWorkspace, dnn::ofInt64, workspaceBytes);
  return plan;
}

/// The words of a configuration; nothing where they are too few for it.
static bool describe(const Descriptor &configuration, int64_t index,
                     Engine &engine) {
  std::vector<Descriptor> knobs;
  if (configuration.get(dnn::configurationKnobs, dnn::knobChoice, mostKnobs,
                        knobs) ||
      knobs.size() > engine.size() - 2)
    return false;
  engine = {1 + index, int64_t(knobs.size())};
  for (size_t i = 0; i < knobs.size(); ++i) {
    int type = 0;
    int64_t value = 0;
    if (knobs[i].get(dnn::knobType, dnn::ofKnobType, type) ||
        knobs[i].get(dnn::knobValue, dnn::ofInt64, value) || value < 0 ||
        value > INT32_MAX)
      return false;
    engine[2 + i] = int64_t(type) << 32 | value;
  }
  return true;
}

int DnnGraph::propose(int way, size_t most,
                      std::vector<EngineProposal> &proposals) {
  Descriptor heuristics(api, dnn::heuristicsDescriptor);
  heuristics.set(dnn::heuristicsGraph, graph)
      .set(dnn::heuristicsMode, dnn::ofHeuristics, way)
      .finalize();
  std::vector<Descriptor> configurations;
  int status = heuristics.status;
  if (status == 0)
    status = heuristics.get(
        dnn::heuristicsResults, dnn::engineConfiguration,
        size_t(heuristics.count(dnn::heuristicsResults, dnn::ofDescriptor)),
        configurations);
  for (const Descriptor &configuration : configurations) {
    if (status || proposals.size() >= most)
      break;
    std::vector<Descriptor> engines;
    int64_t index = 0;
    EngineProposal proposal;
    if (configuration.get(dnn::configurationEngine, dnn::engineDescriptor, 1,
                          engines) ||
        engines.size() != 1 ||
        engines[0].get(dnn::engineIndex, dnn::ofInt64, index) ||
        !mayUse(engines[0].notes(dnn::engineNumericalNotes,
                                 dnn::ofNumericalNote)) ||
        !describe(configuration, index, proposal.engine) ||
        std::any_of(proposals.begin(), proposals.end(),
                    [&](const EngineProposal &known) {
                      return known.engine == proposal.engine;
                    }))
      continue;
    // As a profile's will be.
    Descriptor made = plan(proposal.engine, proposal.workspaceBytes);
    if (made.status == 0 &&
        proposal.workspaceBytes <= convolution.workspace_bytes)
      proposals.push_back(proposal);
  }
  return status;
}

Descriptor DnnGraph::plan(const Engine &words, int64_t &workspaceBytes) {
  Descriptor engine(api, dnn::engineDescriptor);
  engine.set(dnn::engineGraph, graph)
      .set(dnn::engineIndex, dnn::ofInt64, words[0] - 1)
      .finalize();
  std::vector<Descriptor> knobs;
  auto count =
      std::min(size_t(std::max<int64_t>(words[1], 0)), words.size() - 2);
  for (size_t i = 0; i < count; ++i)
    knobs.emplace_back(api, dnn::knobChoice)
        .set(dnn::knobType, dnn::ofKnobType, int(words[2 + i] >> 32))
        .set(dnn::knobValue, dnn::ofInt64, words[2 + i] & 0xFFFFFFFF)
        .finalize();
  Descriptor configuration(api, dnn::engineConfiguration);
  configuration.set(dnn::configurationEngine, engine);
  if (!knobs.empty())
    configuration.set(dnn::configurationKnobs, knobs);
  configuration.finalize();
  return plan(configuration, workspaceBytes);
}
