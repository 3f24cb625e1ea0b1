//===- Expand.cpp - Operators in the ways that were chosen ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Alternatives.h"
#include "Model/Boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

using namespace baechi::placement;

namespace {

constexpr size_t mostOperators = 1'000'000, mostParts = 10'000'000;

/// The \p n-th share where shares end at \p before and \p after of \p all:
/// rounded down cumulatively, so that all shares add up to the value.
int64_t share(int64_t value, int64_t before, int64_t after, int64_t all) {
  auto upTo = [&](int64_t end) {
    return static_cast<int64_t>(static_cast<__int128>(value) * end / all);
  };
  return upTo(after) - upTo(before);
}

Output shareOf(const Output &output, int64_t before, int64_t after,
               int64_t all) {
  return {share(output.bytes, before, after, all),
          share(output.memory, before, after, all),
          share(output.copy, before, after, all)};
}

/// A data edge of the whole graph, and how the reader's pieces read it.
struct Reader {
  int32_t op = 0;
  Layout layout;
  int64_t extra = 0;
};

/// What of an output lies where.
struct Part {
  int32_t op = 0; ///< of the expansion
  std::vector<Box> boxes;
  int32_t first = 0;  ///< the output that has the first box; the others follow
  int32_t extra = -1; ///< the output that comes with any of them
};

class Expander {
public:
  Expander(const Graph &graph, const Alternatives &alternatives,
           const Ways &ways, Expansion &result)
      : graph(graph), alternatives(alternatives), ways(ways), result(result),
        firstOf(graph.ops.size()), readers(graph.ops.size()) {}

  void run() {
    for (size_t op = 0; op < graph.ops.size(); ++op)
      readers[op].resize(graph.ops[op].outputs.size());
    std::set<std::tuple<int32_t, int32_t, int32_t>> seen;
    for (const Edge &edge : graph.edges)
      if (edge.output >= 0 &&
          seen.emplace(edge.from, edge.output, edge.to).second)
        readers[edge.from][edge.output].push_back(readerOf(edge));
    for (size_t op = 0; op < graph.ops.size(); ++op)
      addOperator(static_cast<int32_t>(op));
    for (const Edge &edge : graph.edges)
      if (edge.output < 0)
        for (int32_t p = 0; p < pieces(edge.from); ++p)
          for (int32_t q = 0; q < pieces(edge.to); ++q)
            addEdge(firstOf[edge.from] + p, -1, firstOf[edge.to] + q);
    connect();
    for (size_t i = 0; i < result.graph.ops.size(); ++i)
      mendForward(i);
  }

private:
  /// What a reader's piece takes, which is known before the reader has an id.
  struct Wanted {
    int32_t from, output, op, piece;
  };

  const Alternative *way(int32_t op) const {
    return ways[op] < 0 ? nullptr : &alternatives.of[op][ways[op]];
  }
  int32_t pieces(int32_t op) const {
    const Alternative *taken = way(op);
    return taken ? static_cast<int32_t>(taken->pieces.size()) : 1;
  }
  std::vector<int64_t> shape(int32_t op, int32_t output) const {
    const auto &shapes = alternatives.shapes[op];
    return static_cast<size_t>(output) < shapes.size() ? shapes[output]
                                                       : std::vector<int64_t>();
  }

  Reader readerOf(const Edge &edge) const {
    InputCut whole;
    const InputCut *read = &whole;
    if (const Alternative *taken = way(edge.to))
      for (const InputCut &each : taken->inputs)
        if (each.from == edge.from && each.output == edge.output)
          read = &each;
    return {edge.to,
            Layout(read->cut, shape(edge.from, edge.output), pieces(edge.to)),
            read->extra};
  }

  int32_t addNode(Operator op, Expansion::Origin origin) {
    if (result.graph.ops.size() >= mostOperators)
      throw std::length_error("a million operators");
    result.graph.ops.push_back(std::move(op));
    result.origins.push_back(origin);
    return static_cast<int32_t>(result.graph.ops.size()) - 1;
  }

  void addEdge(int32_t from, int32_t output, int32_t to) {
    if (++parts > mostParts)
      throw std::length_error("ten million parts of tensors");
    result.graph.edges.push_back({from, output, to});
  }

  int32_t addOutput(int32_t id, const Output &output) {
    if (++parts > mostParts)
      throw std::length_error("ten million parts of tensors");
    auto &outputs = result.graph.ops[id].outputs;
    outputs.push_back(output);
    return static_cast<int32_t>(outputs.size()) - 1;
  }

  void addWanted(int32_t id, int32_t output, const Wanted &wanted) {
    later.push_back({id, output, wanted});
  }

  /// The pieces of an operator, in order, then its sums and its exchange.
  void addOperator(int32_t op) {
    const Operator &of = graph.ops[op];
    const Alternative *taken = way(op);
    int32_t count = pieces(op);
    firstOf[op] = static_cast<int32_t>(result.graph.ops.size());
    for (int32_t p = 0; p < count; ++p) {
      Operator piece = of;
      piece.outputs.clear();
      if (taken) {
        piece.timeNs = taken->pieces[p].timeNs;
        piece.scratch = taken->pieces[p].scratch;
        piece.resident = taken->pieces[p].resident;
        if (count > 1 && !taken->outputs.empty() &&
            std::all_of(taken->outputs.begin(), taken->outputs.end(),
                        [](const OutputCut &cut) { return cut.isPartial; }))
          piece.result = false;
      }
      if (count > 1) {
        piece.name += fmt::format("#{}", p);
        if (piece.group)
          *piece.group += fmt::format("#{}", p);
        else if (taken->exchange > 0)
          piece.group = piece.name;
      }
      addNode(std::move(piece), {op, count > 1 ? p : -1, false});
    }
    for (size_t o = 0; o < of.outputs.size(); ++o) {
      const OutputCut whole;
      const OutputCut &made =
          taken && !taken->outputs.empty() ? taken->outputs[o] : whole;
      if (made.isPartial && count > 1)
        addSums(op, static_cast<int32_t>(o), made, *taken);
      else
        addParts(op, static_cast<int32_t>(o), made);
    }
    if (taken && taken->exchange > 0)
      addExchange(op, *taken);
  }

  /// An output whose pieces are read as they are.
  void addParts(int32_t op, int32_t o, const OutputCut &made) {
    const Output &output = graph.ops[op].outputs[o];
    const std::vector<Reader> &all = readers[op][o];
    int32_t count = pieces(op);
    std::vector<int64_t> extents = shape(op, o);
    Layout layout(made.cut, extents, count);
    std::vector<std::vector<const Box *>> boxes(count);
    // What reader r's piece q takes with its first slice, and from whom.
    std::vector<std::vector<Wanted>> extras(count);
    std::vector<std::vector<int64_t>> extraBytes(count);
    for (const Reader &reader : all)
      for (int32_t q = 0; q < pieces(reader.op); ++q) {
        const Box &box = reader.layout.box(reader.layout.sliceOf(q));
        bool isFirst = true;
        for (int32_t s = 0; s < layout.slices(); ++s) {
          if (!layout.box(s).meets(box))
            continue;
          int32_t holder = layout.holder(s, q);
          boxes[holder].push_back(&box);
          if (isFirst && reader.extra > 0) {
            extras[holder].push_back({op, o, reader.op, q});
            extraBytes[holder].push_back(reader.extra);
          }
          isFirst = false;
        }
      }
    std::vector<Part> found;
    int64_t volume = Box::whole(extents).volume(), before = 0;
    for (int32_t s = 0; s < layout.slices(); ++s) {
      int64_t size = layout.box(s).volume();
      Output slice = shareOf(output, before, before + size, volume);
      before += size;
      for (int32_t c = 0; c < layout.copies(); ++c) {
        int32_t p = s * layout.copies() + c, id = firstOf[op] + p;
        found.push_back(addBoxes(id, slice, layout.box(s), boxes[p]));
        if (made.extra > 0)
          found.back().extra = addOutput(id, {made.extra, 0, 0});
        for (size_t e = 0; e < extras[p].size(); ++e)
          addWanted(id, addOutput(id, {extraBytes[p][e], 0, 0}), extras[p][e]);
      }
    }
    for (const Reader &reader : all)
      for (int32_t q = 0; q < pieces(reader.op); ++q) {
        const Box &box = reader.layout.box(reader.layout.sliceOf(q));
        for (int32_t s = 0; s < layout.slices(); ++s)
          if (layout.box(s).meets(box))
            take(found[layout.holder(s, q)], box, {op, o, reader.op, q});
      }
  }

  /// \p box of a piece, as one output for each part that is read.
  Part addBoxes(int32_t id, const Output &output, const Box &box,
                const std::vector<const Box *> &read) {
    Part part{id, atoms(box, read), 0, -1};
    int64_t volume = box.volume(), before = 0;
    for (size_t k = 0; k < part.boxes.size(); ++k) {
      int64_t size = part.boxes[k].volume();
      int32_t at =
          addOutput(id, shareOf(output, before, before + size, volume));
      before += size;
      if (k == 0)
        part.first = at;
    }
    return part;
  }

  void take(const Part &part, const Box &box, const Wanted &wanted) {
    for (size_t k = 0; k < part.boxes.size(); ++k)
      if (box.contains(part.boxes[k]))
        addWanted(part.op, part.first + static_cast<int32_t>(k), wanted);
    if (part.extra >= 0)
      addWanted(part.op, part.extra, wanted);
  }

  /// An output of which each piece has a summand: each range that somebody
  /// reads is added up by an operator of its own.
  void addSums(int32_t op, int32_t o, const OutputCut &made,
               const Alternative &taken) {
    const Operator &of = graph.ops[op];
    const std::vector<Reader> &all = readers[op][o];
    Box whole = Box::whole(shape(op, o));
    std::vector<Box> ranges;
    auto rangeOf = [&](const Box &box) {
      auto it = std::find(ranges.begin(), ranges.end(), box);
      if (it == ranges.end())
        it = ranges.insert(ranges.end(), box);
      return static_cast<size_t>(it - ranges.begin());
    };
    for (const Reader &reader : all)
      for (int32_t s = 0; s < reader.layout.slices(); ++s)
        rangeOf(reader.layout.box(s));
    if (ranges.empty() && of.result)
      ranges.push_back(whole);
    std::vector<const Box *> read;
    for (const Box &range : ranges)
      read.push_back(&range);
    std::vector<Part> summands;
    for (int32_t p = 0; p < pieces(op); ++p)
      summands.push_back(addBoxes(firstOf[op] + p, of.outputs[o], whole, read));
    std::vector<Part> sums;
    for (size_t r = 0; r < ranges.size(); ++r) {
      Operator sum;
      sum.name = fmt::format("{}+{}.{}", of.name, o, r);
      auto wide = static_cast<__int128>(taken.sumNs) * ranges[r].volume() *
                  (pieces(op) - 1);
      sum.timeNs = {{"", static_cast<int64_t>((wide + whole.volume() - 1) /
                                              whole.volume())}};
      sum.backward = of.backward;
      sum.result = of.result;
      int32_t id = addNode(std::move(sum), {op, -1, true});
      Output bytes;
      for (const Part &summand : summands)
        for (size_t k = 0; k < summand.boxes.size(); ++k) {
          if (!ranges[r].contains(summand.boxes[k]))
            continue;
          int32_t output = summand.first + static_cast<int32_t>(k);
          addEdge(summand.op, output, id);
          if (&summand != &summands.front())
            continue;
          const Output &part = result.graph.ops[summand.op].outputs[output];
          bytes.bytes += part.bytes;
          bytes.memory += part.memory;
          bytes.copy += part.copy;
        }
      sums.push_back({id, {ranges[r]}, addOutput(id, bytes), -1});
      if (made.extra > 0)
        sums.back().extra = addOutput(id, {made.extra, 0, 0});
    }
    for (const Reader &reader : all)
      for (int32_t q = 0; q < pieces(reader.op); ++q) {
        const Box &box = reader.layout.box(reader.layout.sliceOf(q));
        const Part &sum = sums[rangeOf(box)];
        take(sum, box, {op, o, reader.op, q});
        if (reader.extra > 0)
          addWanted(sum.op, addOutput(sum.op, {reader.extra, 0, 0}),
                    {op, o, reader.op, q});
      }
  }

  /// Each replica adds up a share of the updates and hands it to the others. An
  /// exchange and what keeps its result stand beside their piece.
  void addExchange(int32_t op, const Alternative &taken) {
    int32_t count = pieces(op), d = taken.replicas, t = count / d;
    std::vector<int32_t> exchanges(count), kept(count);
    for (auto [ids, word] :
         {std::pair(&exchanges, "exchange"), std::pair(&kept, "keep")})
      for (int32_t p = 0; p < count; ++p) {
        const Operator &piece = result.graph.ops[firstOf[op] + p];
        Operator helper;
        helper.name = fmt::format("{}+{}#{}", graph.ops[op].name, word, p);
        helper.timeNs = {{"", 0}};
        helper.group = piece.group;
        helper.backward = piece.backward;
        (*ids)[p] = addNode(std::move(helper), {op, p, true});
      }
    for (int32_t p = 0; p < count; ++p) {
      for (int32_t r = 0; r < d; ++r) {
        int64_t bytes = share(taken.exchange, r, r + 1, d);
        int32_t id = firstOf[op] + p;
        addEdge(id, addOutput(id, Output(bytes)), exchanges[r * t + p % t]);
      }
      int64_t bytes = share(taken.exchange, p / t, p / t + 1, d);
      int32_t output = addOutput(exchanges[p], Output(bytes));
      for (int32_t r = 0; r < d; ++r)
        addEdge(exchanges[p], output, kept[r * t + p % t]);
    }
  }

  void connect() {
    for (const Late &late : later)
      addEdge(late.id, late.output,
              firstOf[late.wanted.op] + late.wanted.piece);
  }

  /// A piece of the backward pass belongs to the piece of its number.
  void mendForward(size_t id) {
    Operator &op = result.graph.ops[id];
    if (!op.forward)
      return;
    int32_t piece = std::max(result.origins[id].piece, 0);
    int32_t of = *op.forward;
    op.forward = firstOf[of] + (piece < pieces(of) ? piece : 0);
  }

  struct Late {
    int32_t id, output;
    Wanted wanted;
  };

  const Graph &graph;
  const Alternatives &alternatives;
  const Ways &ways;
  Expansion &result;
  std::vector<int32_t> firstOf;
  std::vector<std::vector<std::vector<Reader>>> readers;
  std::vector<Late> later;
  size_t parts = 0;
};

} // namespace

std::string baechi::placement::expand(const Graph &graph,
                                      const Alternatives &alternatives,
                                      const Ways &ways,
                                      Expansion &expansion) try {
  expansion = {};
  Expander(graph, alternatives, ways, expansion).run();
  return "";
} catch (const std::length_error &e) {
  return fmt::format("in pieces the graph has more than {}: state fewer pieces",
                     e.what());
}
