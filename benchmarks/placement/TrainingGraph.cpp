//===- TrainingGraph.cpp - Forward passes that differentiate ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainingGraph.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::benchmarks;

int64_t baechi::placement::benchmarks::timeOfBytes(int64_t bytes) {
  return 2000 + bytes / 200;
}

int64_t baechi::placement::benchmarks::timeOfFlops(int64_t flops) {
  return 5000 + flops / 10000;
}

int32_t TrainingGraph::append(Operator op, Node node) {
  int32_t id = size();
  for (Value v : node.operands) {
    graph.edges.push_back({v.op, v.output, id});
    node.needsGradient |= nodes[v.op].needsGradient;
  }
  firstTensor.push_back(numTensors);
  numTensors += op.outputs.size();
  graph.ops.push_back(std::move(op));
  nodes.push_back(std::move(node));
  return id;
}

TrainingGraph::Value TrainingGraph::input(const std::string &name,
                                          int64_t bytes) {
  Operator op;
  op.name = name;
  op.timeNs = {{"", 0}};
  op.outputs.emplace_back(bytes);
  return {append(std::move(op), {}), 0};
}

TrainingGraph::Value TrainingGraph::parameter(const std::string &name,
                                              int64_t bytes) {
  Operator op;
  op.name = name;
  op.timeNs = {{"", 0}};
  op.outputs.emplace_back(bytes, /*memory=*/0, /*copy=*/bytes);
  op.resident = 3 * bytes;
  op.group = name;
  Node node;
  node.needsGradient = node.isParameter = true;
  return {append(std::move(op), std::move(node)), 0};
}

TrainingGraph::Value TrainingGraph::add(const std::string &name, Rule rule,
                                        int64_t timeNs, int64_t bytes,
                                        const std::vector<Value> &operands) {
  Operator op;
  op.name = name;
  op.timeNs = {{"", timeNs}};
  op.outputs.emplace_back(bytes);
  if (groupBackward)
    op.group = name;
  Node node;
  node.rule = rule;
  node.operands = operands;
  return {append(std::move(op), std::move(node)), 0};
}

std::vector<TrainingGraph::Value> TrainingGraph::split(const std::string &name,
                                                       int64_t bytes,
                                                       int32_t count,
                                                       Value operand) {
  Value first =
      add(name, Rule::Linear, timeOfBytes(bytes * count), bytes, {operand});
  graph.ops[first.op].outputs.resize(count, Output(bytes));
  numTensors += count - 1;
  std::vector<Value> results;
  for (int32_t k = 0; k < count; ++k)
    results.push_back({first.op, k});
  return results;
}

int32_t TrainingGraph::appendBackward(const std::string &name, int32_t forward,
                                      int64_t timeNs, int64_t bytes,
                                      const std::vector<Value> &operands) {
  int32_t id = size();
  for (Value v : operands)
    graph.edges.push_back({v.op, v.output, id});
  Operator op;
  op.name = name;
  op.timeNs = {{"", timeNs}};
  op.outputs.emplace_back(bytes);
  op.backward = true;
  op.forward = forward;
  if (groupBackward || nodes[forward].isParameter)
    op.group = graph.ops[forward].group;
  graph.ops.push_back(std::move(op));
  return id;
}

/// Adds the gradients of the operands of \p op, whose results' gradients have
/// all their parts.
void TrainingGraph::differentiate(int32_t op,
                                  std::vector<std::vector<Value>> &gradients) {
  const Node &node = nodes[op];
  const std::string name = "grad/" + graph.ops[op].name;
  int64_t timeNs = graph.ops[op].timeNs.front().second;
  auto outputs = static_cast<int32_t>(graph.ops[op].outputs.size());
  std::vector<Value> known; // the gradients of the results
  for (int32_t k = 0; k < outputs; ++k) {
    auto &parts = gradients[firstTensor[op] + k];
    if (parts.empty())
      continue;
    if (parts.size() > 1) {
      int64_t bytes = bytesOf({op, k});
      int64_t touched = bytes;
      for (Value part : parts)
        touched += bytesOf(part);
      parts = {{appendBackward(name + "/AddN", op, timeOfBytes(touched), bytes,
                               parts)}};
    }
    known.push_back(parts.front());
  }
  if (known.empty())
    return;
  if (node.isParameter) {
    known.push_back({op, 0});
    int64_t bytes = 3 * bytesOf({op, 0});
    int32_t update = appendBackward("train/" + graph.ops[op].name, op,
                                    timeOfBytes(bytes), 0, known);
    graph.ops[update].outputs.clear();
    return;
  }
  if (node.rule == Rule::FromResult)
    for (int32_t k = 0; k < outputs; ++k)
      known.push_back({op, k});
  for (size_t k = 0; k < node.operands.size(); ++k) {
    Value operand = node.operands[k];
    if (!nodes[operand.op].needsGradient)
      continue;
    std::vector<Value> reads = known;
    if (node.rule == Rule::Product)
      for (size_t other = 0; other < node.operands.size(); ++other)
        if (other != k)
          reads.push_back(node.operands[other]);
    bool copies = node.rule == Rule::Linear || node.rule == Rule::Lookup;
    int64_t bytes = bytesOf(node.rule == Rule::Lookup ? Value{op, 0} : operand);
    int32_t gradient =
        appendBackward(name + "/" + std::to_string(k), op,
                       copies ? timeOfBytes(2 * bytes) : timeNs, bytes, reads);
    gradients[firstTensor[operand.op] + operand.output].push_back(
        {gradient, 0});
  }
}

Graph TrainingGraph::finish(const std::vector<Value> &losses) && {
  std::vector<Value> ends;
  for (Value loss : losses)
    if (nodes[loss.op].needsGradient)
      ends.push_back(loss);
  Value total = add("loss", Rule::Linear, timeOfBytes(8), 8, ends);
  graph.ops[total.op].result = true;
  std::vector<std::vector<Value>> gradients(numTensors);
  gradients[firstTensor[total.op]] = {
      {appendBackward("grad/one", total.op, 0, 8, {total})}};
  for (int32_t op = static_cast<int32_t>(nodes.size()); op-- > 0;)
    if (nodes[op].needsGradient)
      differentiate(op, gradients);
  return std::move(graph);
}
