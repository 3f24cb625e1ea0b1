//===- DnnGraph.h - A convolution in cuDNN's descriptors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_DNNGRAPH_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_DNNGRAPH_H

#include "drivers/cuda/CudaDnn.h"

#include <initializer_list>

namespace baechi::runtime::cuda {

/// One of cuDNN's descriptors. What goes wrong with it is its status; nothing
/// is done after that.
class Descriptor {
public:
  Descriptor() = default;
  Descriptor(const DnnApi &api, int kind) : api(&api) {
    status = api.createDescriptor(kind, &object);
  }
  Descriptor(Descriptor &&other) noexcept { *this = std::move(other); }
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(api, other.api);
    std::swap(object, other.object);
    std::swap(status, other.status);
    return *this;
  }
  ~Descriptor() {
    if (object)
      api->destroyDescriptor(object);
  }

  template <typename T>
  Descriptor &set(int attribute, int type, const T *values, size_t count) {
    if (status == 0)
      status =
          api->setAttribute(object, attribute, type, int64_t(count), values);
    return *this;
  }
  template <typename T> Descriptor &set(int attribute, int type, T value) {
    return set(attribute, type, &value, 1);
  }
  Descriptor &set(int attribute, const Descriptor &part) {
    if (status == 0)
      status = part.status;
    return set(attribute, dnn::ofDescriptor, part.object);
  }
  Descriptor &set(int attribute, const std::vector<Descriptor> &parts);
  Descriptor &finalize() {
    if (status == 0)
      status = api->finalize(object);
    return *this;
  }

  /// How many values an attribute has; 0 where that is not told.
  int64_t count(int attribute, int type) const;
  /// The only value of an attribute.
  template <typename T> int get(int attribute, int type, T &value) const {
    int64_t count = 0;
    int answer = api->getAttribute(object, attribute, type, 1, &count, &value);
    return answer == 0 && count != 1 ? dnn::notSupported : answer;
  }
  /// Makes `parts`, of that kind, what the attribute holds, at most so many.
  int get(int attribute, int kind, size_t most,
          std::vector<Descriptor> &parts) const;
  /// What an attribute that holds numbers says.
  std::vector<int> notes(int attribute, int type) const;

  void *get() const { return object; }

  int status = 0;

private:
  const DnnApi *api = nullptr;
  void *object = nullptr;
};

/// The graph of one convolution. Its parts live as long.
class DnnGraph {
public:
  DnnGraph(const DnnApi &api, void *handle, const Convolution &convolution);
  int status() const { return graph.status; }

  /// Adds engines that may be used to `proposals`, until there are `most`; by
  /// a way of the heuristics.
  int propose(int way, size_t most, std::vector<EngineProposal> &proposals);
  /// The plan of an engine, and its workspace.
  Descriptor plan(const Engine &engine, int64_t &workspaceBytes);

  /// The names of A, B and C in a pack.
  static constexpr int64_t names[] = {1, 2, 3};

private:
  bool mayUse(const std::vector<int> &notes) const;
  Descriptor plan(const Descriptor &configuration, int64_t &workspaceBytes);

  const DnnApi &api;
  void *const handle;
  const Convolution convolution;
  std::vector<Descriptor> parts;
  Descriptor graph;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_DNNGRAPH_H
