//===- Alternatives.cpp - What is wrong with alternatives -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Alternatives.h"

#include <fmt/format.h>

#include <set>
#include <tuple>

using namespace baechi::placement;

namespace {

/// As many pieces as no machine has devices for, and as many dimensions as no
/// tensor has.
constexpr size_t mostPieces = 4096, mostDimensions = 16;
constexpr int64_t largest = int64_t(1) << 60;

class Checker {
public:
  Checker(const Graph &graph, const Alternatives &alternatives)
      : graph(graph), alternatives(alternatives) {
    for (const Edge &edge : graph.edges)
      edges.emplace(edge.from, edge.output, edge.to);
  }

  std::vector<std::string> run() {
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      checkShapes(op);
      std::set<std::string> names;
      for (const Alternative &each : alternatives.of[op]) {
        at = fmt::format("operator {} '{}', alternative '{}'", op,
                         graph.ops[op].name, each.name);
        if (each.name.empty())
          error("has no name: give it one");
        else if (!names.insert(each.name).second)
          error("is not the only one of its name: give each its own");
        checkPieces(each);
        checkOutputs(op, each);
        checkInputs(op, each);
      }
    }
    return std::move(errors);
  }

private:
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args &&...args) {
    errors.push_back(fmt::format(
        "{}: {}", at, fmt::format(format, std::forward<Args>(args)...)));
  }

  void checkShapes(size_t op) {
    at = fmt::format("operator {} '{}'", op, graph.ops[op].name);
    for (const auto &shape : alternatives.shapes[op]) {
      if (shape.size() > mostDimensions)
        error("an output has {} dimensions: {} at most", shape.size(),
              mostDimensions);
      __int128 volume = 1;
      for (int64_t extent : shape) {
        if (extent < 1)
          error("an output has an extent of {}: it must be 1 or more", extent);
        volume =
            volume > largest ? volume : volume * std::max<int64_t>(extent, 1);
      }
      if (volume > largest)
        error("an output has more elements than 2^60");
    }
  }

  void checkNumber(const char *what, int64_t value) {
    if (value < 0 || value > largest)
      error("has {} of {}: it must be 0 or more, and 2^60 at most", what,
            value);
  }

  void checkPieces(const Alternative &each) {
    size_t count = each.pieces.size();
    if (count == 0 || count > mostPieces)
      error("has {} pieces: 1 to {} can be", count, mostPieces);
    for (const Piece &piece : each.pieces) {
      if (piece.timeNs.empty())
        error("has a piece without a time: give it one per kind of device");
      for (const auto &[kind, ns] : piece.timeNs)
        checkNumber("a time", ns);
      checkNumber("a scratch", piece.scratch);
      checkNumber("resident bytes", piece.resident);
    }
    checkNumber("a sum_ns", each.sumNs);
    checkNumber("an exchange", each.exchange);
    if (each.replicas < 1 ||
        (count != 0 && count % static_cast<size_t>(each.replicas) != 0))
      error("has {} pieces and {} replicas: the pieces must be a multiple of "
            "the replicas",
            count, each.replicas);
    if (each.exchange > 0 && each.replicas < 2)
      error("has an exchange, but one replica: say how many hold the same");
  }

  void checkCut(const Cut &cut, size_t pieces, const std::string &what,
                const std::vector<int64_t> *shape) {
    if (cut.along < 0) {
      if (cut.along < -1 || !cut.sizes.empty())
        error("{} has sizes, but no dimension 'along' which they lie", what);
      return;
    }
    if (!shape || static_cast<size_t>(cut.along) >= shape->size()) {
      error("{} is cut along dimension {}, which its shape does not have: "
            "state the output's 'shape'",
            what, cut.along);
      return;
    }
    int64_t extent = (*shape)[cut.along];
    if (cut.sizes.empty()) {
      if (static_cast<size_t>(extent) < pieces)
        error("{} has an extent of {}, too little for {} pieces", what, extent,
              pieces);
      return;
    }
    if (pieces == 0 || pieces % cut.sizes.size() != 0)
      error("{} has {} slices for {} pieces: the pieces must be a multiple of "
            "the slices",
            what, cut.sizes.size(), pieces);
    __int128 sum = 0;
    for (int64_t size : cut.sizes) {
      if (size < 1)
        error("{} has a slice of {}: it must be 1 or more", what, size);
      sum += size;
    }
    if (sum != extent)
      error("{} has slices of {} in all, but the extent of dimension {} is {}",
            what, static_cast<int64_t>(std::min<__int128>(sum, largest)),
            cut.along, extent);
  }

  const std::vector<int64_t> *shapeOf(size_t op, int32_t output) const {
    if (op >= alternatives.shapes.size())
      return nullptr;
    const auto &shapes = alternatives.shapes[op];
    bool has = output >= 0 && static_cast<size_t>(output) < shapes.size();
    return has ? &shapes[output] : nullptr;
  }

  void checkOutputs(size_t op, const Alternative &each) {
    size_t count = graph.ops[op].outputs.size();
    if (!each.outputs.empty() && each.outputs.size() != count)
      error("says how {} outputs are made, but the operator has {}",
            each.outputs.size(), count);
    for (size_t o = 0; o < each.outputs.size() && o < count; ++o) {
      const OutputCut &made = each.outputs[o];
      std::string what = fmt::format("output {}", o);
      checkCut(made.cut, each.pieces.size(), what,
               shapeOf(op, static_cast<int32_t>(o)));
      checkNumber("extra bytes", made.extra);
      if (made.isPartial && made.cut.along >= 0)
        error("{} is both partial and cut: a summand is of all of it", what);
    }
  }

  void checkInputs(size_t op, const Alternative &each) {
    std::set<std::pair<int32_t, int32_t>> seen;
    for (const InputCut &read : each.inputs) {
      std::string what = fmt::format("input from operator {}, output {},",
                                     read.from, read.output);
      if (read.output < 0 ||
          !edges.count({read.from, read.output, static_cast<int32_t>(op)})) {
        error("{} is none of the operator's: there is no such edge", what);
        continue;
      }
      if (!seen.insert({read.from, read.output}).second)
        error("{} is there twice", what);
      checkNumber("extra bytes", read.extra);
      checkCut(read.cut, each.pieces.size(), what,
               shapeOf(read.from, read.output));
    }
  }

  const Graph &graph;
  const Alternatives &alternatives;
  std::set<std::tuple<int32_t, int32_t, int32_t>> edges;
  std::string at;
  std::vector<std::string> errors;
};

} // namespace

std::vector<std::string>
baechi::placement::checkAlternatives(const Graph &graph,
                                     const Alternatives &alternatives) {
  return Checker(graph, alternatives).run();
}
