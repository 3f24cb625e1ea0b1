//===- Generators.cpp - Training graphs of any size -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Generators.h"
#include "TrainingGraph.h"

#include "Model/Random.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::benchmarks;
using Value = TrainingGraph::Value;
using Rule = TrainingGraph::Rule;

namespace {

constexpr int64_t floatBytes = 4;

std::string numbered(const std::string &name, int32_t number) {
  return name + std::to_string(number);
}

/// Parts that models share; sizes are in elements.
class Layers {
public:
  explicit Layers(bool groupBackward) : graph(groupBackward) {}

  Value product(const std::string &name, int64_t rows, int64_t inner,
                int64_t columns, Value a, Value b) {
    return graph.add(name, Rule::Product,
                     timeOfFlops(2 * rows * inner * columns),
                     rows * columns * floatBytes, {a, b});
  }
  Value elementwise(const std::string &name, Rule rule, int64_t elements,
                    const std::vector<Value> &operands) {
    int64_t bytes = elements * floatBytes;
    auto tensors = static_cast<int64_t>(operands.size()) + 1;
    return graph.add(name, rule, timeOfBytes(bytes * tensors), bytes, operands);
  }
  Value weights(const std::string &name, int64_t elements) {
    return graph.parameter(name, elements * floatBytes);
  }

  TrainingGraph graph;
};

class Gnmt : Layers {
public:
  explicit Gnmt(int32_t steps) : Layers(/*groupBackward=*/true), steps(steps) {}
  Graph build();

private:
  static constexpr int64_t batch = 64, hidden = 1024, vocabulary = 32000;
  static constexpr int64_t state = batch * hidden;
  /// The attention looks at this many of the encoder's steps at most.
  static constexpr int64_t attended = 64;
  static constexpr int32_t depth = 4;

  struct Cell {
    std::string name;
    Value kernel, bias, c, h;
    int64_t inputs;
  };

  Cell cell(const std::string &name, int64_t inputs);
  Value run(Cell &cell, const std::string &step, Value x);
  Value residual(const std::string &name, Value x, Value y) {
    return elementwise(name, Rule::Linear, state, {x, y});
  }
  std::vector<Value> encode();
  Value attend(const std::string &step, Value query, Value memory);

  int32_t steps;
  Value zero;
  Value attentionKernel, attentionVector;
};

Gnmt::Cell Gnmt::cell(const std::string &name, int64_t inputs) {
  return {name,
          weights(name + "/kernel", (inputs + hidden) * 4 * hidden),
          weights(name + "/bias", 4 * hidden),
          zero,
          zero,
          inputs};
}

/// One step of an LSTM.
Value Gnmt::run(Cell &cell, const std::string &step, Value x) {
  std::string at = cell.name + "/" + step + "/";
  int64_t width = cell.inputs + hidden;
  Value joined =
      elementwise(at + "concat", Rule::Linear, batch * width, {x, cell.h});
  Value gates =
      product(at + "MatMul", batch, width, 4 * hidden, joined, cell.kernel);
  gates =
      elementwise(at + "BiasAdd", Rule::Linear, 4 * state, {gates, cell.bias});
  auto parts = graph.split(at + "split", state * floatBytes, 4, gates);
  auto activation = [&](const char *name, Value v) {
    return elementwise(at + name, Rule::FromResult, state, {v});
  };
  auto times = [&](const char *name, Value a, Value b) {
    return elementwise(at + name, Rule::Product, state, {a, b});
  };
  Value i = activation("Sigmoid_i", parts[0]);
  Value j = activation("Tanh_j", parts[1]);
  Value bias = graph.input(at + "forget_bias", floatBytes);
  Value f = elementwise(at + "add_f", Rule::Linear, state, {parts[2], bias});
  f = activation("Sigmoid_f", f);
  Value kept = times("mul_cf", cell.c, f), gained = times("mul_ij", i, j);
  cell.c = elementwise(at + "add_c", Rule::Linear, state, {kept, gained});
  Value shown = activation("Tanh_c", cell.c);
  Value o = activation("Sigmoid_o", parts[3]);
  return cell.h = times("mul_h", shown, o);
}

std::vector<Value> Gnmt::encode() {
  Value table = weights("enc/embedding", vocabulary * hidden);
  std::vector<Value> x(steps), forward(steps), backward(steps);
  for (int32_t t = 0; t < steps; ++t)
    x[t] =
        graph.add(numbered("enc/lookup/t", t), Rule::Lookup,
                  timeOfBytes(state * floatBytes), state * floatBytes, {table});
  Cell fw = cell("enc/fw", hidden), bw = cell("enc/bw", hidden);
  for (int32_t t = 0; t < steps; ++t)
    forward[t] = run(fw, numbered("t", t), x[t]);
  for (int32_t t = steps; t-- > 0;)
    backward[t] = run(bw, numbered("t", t), x[t]);
  for (int32_t t = 0; t < steps; ++t)
    x[t] = elementwise(numbered("enc/bi/t", t), Rule::Linear, 2 * state,
                       {forward[t], backward[t]});
  for (int32_t layer = 1; layer < depth; ++layer) {
    std::string name = numbered("enc/l", layer);
    Cell lstm = cell(name, layer == 1 ? 2 * hidden : hidden);
    for (int32_t t = 0; t < steps; ++t) {
      Value y = run(lstm, numbered("t", t), x[t]);
      x[t] = layer == 1 ? y : residual(numbered(name + "/res/t", t), x[t], y);
    }
  }
  return x;
}

Value Gnmt::attend(const std::string &step, Value query, Value memory) {
  std::string at = "att/" + step + "/";
  int64_t seen = std::min<int64_t>(steps, attended) * state;
  int64_t scores = seen / hidden;
  query = product(at + "query", batch, hidden, hidden, query, attentionKernel);
  Value v = elementwise(at + "add", Rule::Linear, seen, {memory, query});
  v = elementwise(at + "Tanh", Rule::FromResult, seen, {v});
  v = product(at + "score", scores, hidden, 1, v, attentionVector);
  v = elementwise(at + "Softmax", Rule::FromResult, scores, {v});
  v = elementwise(at + "mul_mem", Rule::Product, seen, {v, memory});
  return elementwise(at + "context", Rule::Linear, state, {v});
}

Graph Gnmt::build() {
  zero = graph.input("zero_state", state * floatBytes);
  std::vector<Value> encoded = encode();
  int64_t seen = std::min<int64_t>(steps, attended) * state;
  Value memory =
      graph.add("att/memory", Rule::Linear, timeOfBytes(2 * seen * floatBytes),
                seen * floatBytes, encoded);
  attentionKernel = weights("att/kernel", hidden * hidden);
  attentionVector = weights("att/vector", hidden);
  Value table = weights("dec/embedding", vocabulary * hidden);
  Value projection = weights("proj/kernel", hidden * vocabulary);
  std::vector<Cell> cells;
  for (int32_t layer = 0; layer < depth; ++layer)
    cells.push_back(cell(numbered("dec/l", layer), 2 * hidden));
  std::vector<Value> losses;
  Value context = zero;
  for (int32_t t = 0; t < steps; ++t) {
    std::string step = numbered("t", t);
    Value x =
        graph.add("dec/lookup/" + step, Rule::Lookup,
                  timeOfBytes(state * floatBytes), state * floatBytes, {table});
    for (Cell &lstm : cells) {
      Value both = elementwise(lstm.name + "/in/" + step, Rule::Linear,
                               2 * state, {x, context});
      Value y = run(lstm, step, both);
      bool first = &lstm == &cells.front();
      x = first ? y : residual(lstm.name + "/res/" + step, x, y);
      if (first)
        context = attend(step, y, memory);
    }
    x = product("proj/" + step + "/MatMul", batch, hidden, vocabulary, x,
                projection);
    losses.push_back(graph.add("loss/" + step + "/xent", Rule::FromResult,
                               timeOfBytes(2 * batch * vocabulary * floatBytes),
                               batch * floatBytes, {x}));
  }
  return std::move(graph).finish(losses);
}

class Transformer : Layers {
public:
  Transformer(int32_t layers, int32_t microBatches)
      : Layers(/*groupBackward=*/false), layers(layers),
        microBatches(microBatches) {}
  Graph build();

private:
  static constexpr int64_t tokens = 128, width = 1024, heads = 8;
  static constexpr int64_t headWidth = width / heads, vocabulary = 32000;

  struct Layer {
    std::string name;
    std::vector<Value> query, key, value; ///< a head each
    Value output, wide, narrow, norm1, norm2;
  };

  Layer layer(int32_t number);
  Value run(const Layer &layer, const std::string &batch, Value x);
  Value head(const Layer &layer, int32_t number, const std::string &at,
             Value x);

  int32_t layers, microBatches;
};

Transformer::Layer Transformer::layer(int32_t number) {
  Layer result;
  std::string at = result.name = numbered("l", number);
  for (int32_t h = 0; h < heads; ++h) {
    std::string name = at + numbered("/head", h);
    result.query.push_back(weights(name + "/query", width * headWidth));
    result.key.push_back(weights(name + "/key", width * headWidth));
    result.value.push_back(weights(name + "/value", width * headWidth));
  }
  result.output = weights(at + "/output", width * width);
  result.wide = weights(at + "/wide", width * 4 * width);
  result.narrow = weights(at + "/narrow", 4 * width * width);
  result.norm1 = weights(at + "/norm1", 2 * width);
  result.norm2 = weights(at + "/norm2", 2 * width);
  return result;
}

Value Transformer::head(const Layer &layer, int32_t number,
                        const std::string &at, Value x) {
  std::string name = at + numbered("/head", number);
  Value q =
      product(name + "/q", tokens, width, headWidth, x, layer.query[number]);
  Value k =
      product(name + "/k", tokens, width, headWidth, x, layer.key[number]);
  Value v =
      product(name + "/v", tokens, width, headWidth, x, layer.value[number]);
  Value scores = product(name + "/scores", tokens, headWidth, tokens, q, k);
  scores = elementwise(name + "/softmax", Rule::FromResult, tokens * tokens,
                       {scores});
  return product(name + "/mix", tokens, tokens, headWidth, scores, v);
}

Value Transformer::run(const Layer &layer, const std::string &batch, Value x) {
  constexpr int64_t all = tokens * width;
  std::string at = layer.name + "/" + batch;
  Value normed =
      elementwise(at + "/norm1", Rule::Product, all, {x, layer.norm1});
  std::vector<Value> mixed;
  for (int32_t h = 0; h < heads; ++h)
    mixed.push_back(head(layer, h, at, normed));
  Value y = elementwise(at + "/concat", Rule::Linear, all, mixed);
  y = product(at + "/output", tokens, width, width, y, layer.output);
  x = elementwise(at + "/res1", Rule::Linear, all, {x, y});
  y = elementwise(at + "/norm2", Rule::Product, all, {x, layer.norm2});
  y = product(at + "/wide", tokens, width, 4 * width, y, layer.wide);
  y = elementwise(at + "/gelu", Rule::FromResult, 4 * all, {y});
  y = product(at + "/narrow", tokens, 4 * width, width, y, layer.narrow);
  return elementwise(at + "/res2", Rule::Linear, all, {x, y});
}

Graph Transformer::build() {
  Value table = weights("embedding", vocabulary * width);
  std::vector<Layer> stack;
  for (int32_t k = 0; k < layers; ++k)
    stack.push_back(layer(k));
  std::vector<Value> losses;
  for (int32_t b = 0; b < microBatches; ++b) {
    std::string batch = numbered("b", b);
    constexpr int64_t bytes = tokens * width * floatBytes;
    Value x = graph.add("lookup/" + batch, Rule::Lookup, timeOfBytes(bytes),
                        bytes, {table});
    for (const Layer &layer : stack)
      x = run(layer, batch, x);
    x = product("proj/" + batch, tokens, width, vocabulary, x, table);
    losses.push_back(
        graph.add("loss/" + batch, Rule::FromResult,
                  timeOfBytes(2 * tokens * vocabulary * floatBytes),
                  tokens * floatBytes, {x}));
  }
  return std::move(graph).finish(losses);
}

/// The smallest graph of `build(1), build(2), ...` that has enough operators.
/// From 4 on sizes grow linearly; what is smaller lacks a few operators.
template <typename Build> Graph grow(int32_t operators, Build build) {
  auto size = [&](int32_t scale) {
    return static_cast<int32_t>(build(scale).ops.size());
  };
  int32_t four = size(4), each = size(5) - four, scale = 1;
  if (operators > four)
    scale = 4 + (operators - four) / each;
  Graph graph = build(scale);
  while (static_cast<int32_t>(graph.ops.size()) < operators)
    graph = build(++scale);
  return graph;
}

} // namespace

Graph baechi::placement::benchmarks::gnmtLike(int32_t steps) {
  return Gnmt(steps).build();
}

Graph baechi::placement::benchmarks::transformerLike(int32_t layers,
                                                     int32_t microBatches) {
  return Transformer(layers, microBatches).build();
}

Graph baechi::placement::benchmarks::randomLayered(int32_t forwardOperators,
                                                   int32_t width,
                                                   uint64_t seed) {
  Random random(seed);
  TrainingGraph graph(/*groupBackward=*/false);
  // The tensors of the last few layers, and those that nobody reads yet.
  constexpr size_t reach = 3;
  std::vector<std::vector<Value>> last{{graph.input("x", 1 << 20)}};
  std::vector<Value> all;
  std::vector<uint8_t> isRead;
  for (int32_t count = 0; count < forwardOperators;) {
    std::vector<Value> layer;
    int32_t size = 1 + random.below(2 * width - 1);
    for (int32_t k = 0; k < size && count < forwardOperators; ++k, ++count) {
      isRead.resize(graph.size(), 0);
      std::vector<Value> operands;
      for (int32_t reads = 1 + random.below(3); reads-- > 0;) {
        // Half of all reads are of the layer right before.
        size_t back = random.oneIn(2) ? 1 : 1 + random.below(reach);
        const auto &from = last[last.size() - std::min(back, last.size())];
        Value v = from[random.below(static_cast<int64_t>(from.size()))];
        bool isNew =
            std::none_of(operands.begin(), operands.end(),
                         [&](Value other) { return other.op == v.op; });
        if (isNew)
          operands.push_back(v);
        isRead[v.op] = 1;
      }
      std::string name = numbered("op", count);
      if (random.oneIn(4))
        operands.push_back(graph.parameter(name + "/weights",
                                           1024 * (1 + random.below(4096))));
      // Sizes and times over two orders of magnitude.
      int64_t bytes = 1024 * (1 + int64_t(random.below(64)) * random.below(64));
      int64_t timeNs = 2000 + int64_t(random.below(400)) * random.below(400);
      Rule rule = operands.size() == 1 ? Rule::FromResult
                  : random.oneIn(2)    ? Rule::Product
                                       : Rule::Linear;
      layer.push_back(graph.add(name, rule, timeNs, bytes, operands));
    }
    all.insert(all.end(), layer.begin(), layer.end());
    last.push_back(std::move(layer));
    if (last.size() > reach)
      last.erase(last.begin());
  }
  isRead.resize(graph.size(), 0);
  std::erase_if(all, [&](Value v) { return isRead[v.op] != 0; });
  return std::move(graph).finish(all);
}

const std::vector<std::string> &
baechi::placement::benchmarks::generatorNames() {
  static const std::vector<std::string> names{"gnmt", "transformer", "random"};
  return names;
}

Graph baechi::placement::benchmarks::generate(const std::string &name,
                                              int32_t operators) {
  if (name == "gnmt")
    return grow(operators, gnmtLike);
  if (name == "transformer") {
    constexpr double layerOperators = 230;
    int32_t batches = std::max(
        1, static_cast<int32_t>(std::sqrt(operators / layerOperators) / 4));
    return grow(operators, [&](int32_t layers) {
      return transformerLike(layers, batches);
    });
  }
  if (name == "random") {
    auto width = static_cast<int32_t>(std::cbrt(operators));
    // A small one tells how many operators come with a forward one.
    int32_t sample = 50 * width;
    auto all = static_cast<int64_t>(randomLayered(sample, width, 1).ops.size());
    auto forward =
        static_cast<int32_t>(operators * static_cast<int64_t>(sample) / all);
    Graph graph = randomLayered(forward, width, 1);
    while (static_cast<int32_t>(graph.ops.size()) < operators) {
      forward += forward / 100 + 1;
      graph = randomLayered(forward, width, 1);
    }
    return graph;
  }
  return {};
}

Machine baechi::placement::benchmarks::uniformMachine(int32_t count,
                                                      int64_t memory,
                                                      LinkModel linkModel) {
  Machine machine;
  machine.linkModel = linkModel;
  machine.links.assign(static_cast<size_t>(count) * count, Link{134000, 5701});
  for (int32_t d = 0; d < count; ++d) {
    machine.devices.push_back({numbered("gpu", d), "gpu", memory});
    machine.links[static_cast<size_t>(d) * count + d].reset();
  }
  return machine;
}
