//===- TrainingGraph.h - Forward passes that differentiate ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds the graph of a training step: the forward pass is written operator by
/// operator, the backward pass (reverse accumulation) and the optimizer's
/// updates follow from it, shaped as frameworks shape them: tensors that wait
/// from the forward to the backward pass, sums of gradients where a tensor has
/// several readers, an update per parameter that shares its device.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_BENCHMARKS_TRAININGGRAPH_H
#define BAECHI_BENCHMARKS_TRAININGGRAPH_H

#include "Baechi/Placement/Model/Problem.h"

namespace baechi::placement::benchmarks {

/// Time of an operator that reads and writes \p bytes: a launch of 2 us and
/// 200 bytes a nanosecond.
int64_t timeOfBytes(int64_t bytes);
/// Time of \p flops floating-point operations: 5 us and 10,000 a nanosecond.
int64_t timeOfFlops(int64_t flops);

class TrainingGraph {
public:
  /// A tensor: an output of an operator.
  struct Value {
    int32_t op = -1;
    int32_t output = 0;
  };

  /// What an operand's gradient is computed from, besides the gradients of the
  /// results.
  enum class Rule {
    Linear,     ///< nothing more: sums, concatenations, slices
    FromResult, ///< the results: activation functions
    Product,    ///< the other operands: products
    Lookup,     ///< nothing more, and it is as small as the result: slices
  };

  /// \p groupBackward: a backward operator is colocated with the forward one
  /// it belongs to, as TensorFlow's colocate_gradients_with_ops does.
  explicit TrainingGraph(bool groupBackward) : groupBackward(groupBackward) {}

  /// A tensor from outside the step.
  Value input(const std::string &name, int64_t bytes);
  /// A tensor that the optimizer updates; it and two moments stay resident.
  Value parameter(const std::string &name, int64_t bytes);
  /// An operator with one result of \p bytes.
  Value add(const std::string &name, Rule rule, int64_t timeNs, int64_t bytes,
            const std::vector<Value> &operands);
  /// An operator with \p count results of \p bytes each.
  std::vector<Value> split(const std::string &name, int64_t bytes,
                           int32_t count, Value operand);

  int32_t size() const { return static_cast<int32_t>(graph.ops.size()); }

  /// Adds the backward pass of the sum of \p losses and the updates, and
  /// returns the whole graph.
  Graph finish(const std::vector<Value> &losses) &&;

private:
  struct Node {
    Rule rule = Rule::Linear;
    bool needsGradient = false;
    bool isParameter = false;
    std::vector<Value> operands;
  };

  int32_t append(Operator op, Node node);
  int32_t appendBackward(const std::string &name, int32_t forward,
                         int64_t timeNs, int64_t bytes,
                         const std::vector<Value> &operands);
  int64_t bytesOf(Value v) const {
    return graph.ops[v.op].outputs[v.output].bytes;
  }
  void differentiate(int32_t op, std::vector<std::vector<Value>> &gradients);

  bool groupBackward;
  Graph graph;
  std::vector<Node> nodes;         ///< of the forward pass
  std::vector<size_t> firstTensor; ///< of the forward pass
  size_t numTensors = 0;
};

} // namespace baechi::placement::benchmarks

#endif // BAECHI_BENCHMARKS_TRAININGGRAPH_H
