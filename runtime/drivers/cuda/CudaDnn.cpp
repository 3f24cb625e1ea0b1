//===- CudaDnn.cpp - Convolutions through cuDNN -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaDnn.h"
#include "drivers/cuda/DnnGraph.h"

#include <algorithm>
#include <bit>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

struct Dnn::Plan {
  std::unique_ptr<DnnGraph> graph;
  Descriptor plan;
};

Dnn::Dnn() = default;
Dnn::~Dnn() { close(); }

void Dnn::close() {
  plans.clear();
  if (handle)
    api->destroy(handle);
  handle = nullptr;
  current = nullptr;
}

static Problem problem(const DnnApi &api, int status, const char *what) {
  if (status == 0)
    return {};
  return {what, api.statusName(status)};
}

Problem Dnn::open() {
  if (!api) {
    Expected<const DnnApi *> loaded = loadDnnApi();
    if (!loaded) {
      missing = loaded.error().message();
      return {"convolutions need cuDNN, which cannot be loaded",
              missing.c_str()};
    }
    api = *loaded;
  }
  return handle
             ? Problem()
             : problem(*api, api->create(&handle), "cuDNN cannot be started");
}

/// Those of the second way where the first has none.
static int collect(DnnGraph &graph, size_t most,
                   std::vector<EngineProposal> &proposals) {
  int status = graph.status();
  if (status)
    return status;
  for (int way : {dnn::heuristicsA, dnn::heuristicsFallback})
    if (proposals.empty())
      status = graph.propose(way, most, proposals);
  if (!proposals.empty())
    return 0;
  return status ? status : dnn::notSupported;
}

static constexpr const char *noEngine =
    "cuDNN has no engine for a convolution of this math and this workspace on "
    "this GPU; compile with --cuda-convolutions=generated";

Problem Dnn::propose(const Convolution &convolution, size_t most,
                     std::vector<EngineProposal> &proposals) {
  if (Problem problem = open())
    return problem;
  DnnGraph graph(*api, handle, convolution);
  return problem(*api, collect(graph, most, proposals), noEngine);
}

Problem Dnn::find(const Convolution &c, Plan *&found) {
  auto [entry, isNew] = plans.try_emplace(std::bit_cast<Words>(c));
  if (!isNew) {
    found = entry->second.get();
    return {};
  }
  auto plan = std::make_unique<Plan>();
  plan->graph = std::make_unique<DnnGraph>(*api, handle, c);
  Engine engine;
  std::copy_n(c.engine, engine.size(), engine.begin());
  const char *what = "the profile's engine for a convolution cannot run here; "
                     "measure on this GPU with this cuDNN";
  int64_t workspaceBytes = 0;
  int status = plan->graph->status();
  if (engine == Engine()) {
    what = noEngine;
    std::vector<EngineProposal> proposals;
    status = collect(*plan->graph, 1, proposals);
    if (status == 0)
      engine = proposals.front().engine;
  }
  if (status == 0) {
    plan->plan = plan->graph->plan(engine, workspaceBytes);
    status = plan->plan.status;
  }
  Problem wrong = problem(*api, status, what);
  if (!wrong && workspaceBytes > c.workspace_bytes)
    wrong = {what, "its workspace is larger than planned"};
  if (wrong) {
    plans.erase(entry);
    return wrong;
  }
  entry->second = std::move(plan);
  found = entry->second.get();
  return {};
}

Problem Dnn::prepare(const Convolution &convolution,
                     const ConvolutionOperands &operands, Stream stream) {
  return plans.count(std::bit_cast<Words>(convolution))
             ? Problem()
             : convolve(convolution, operands, stream);
}

Problem Dnn::convolve(const Convolution &convolution,
                      const ConvolutionOperands &operands, Stream stream) {
  if (Problem problem = open())
    return problem;
  Plan *plan = nullptr;
  if (Problem problem = find(convolution, plan))
    return problem;
  const char *what = "a convolution cannot be started";
  if (current != stream)
    if (Problem wrong = problem(*api, api->setStream(handle, stream), what))
      return wrong;
  current = stream;
  const void *const pointers[] = {operands.a, operands.b, operands.c};
  Descriptor pack(*api, dnn::variantPack);
  pack.set(dnn::packNames, dnn::ofInt64, DnnGraph::names, 3)
      .set(dnn::packPointers, dnn::ofPointer, pointers, 3)
      .set(dnn::packWorkspace, dnn::ofPointer, operands.workspace)
      .finalize();
  int status = pack.status;
  if (status == 0)
    status = api->execute(handle, plan->plan.get(), pack.get());
  return problem(*api, status, what);
}
