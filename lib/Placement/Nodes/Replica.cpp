//===- Replica.cpp - One of several replicas of a step ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Nodes/Replica.h"
#include "Baechi/Placement/Model/Nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

using namespace baechi::placement;

namespace {

int32_t numParts(const Graph &graph) {
  int32_t parts = 0;
  for (const Operator &op : graph.ops)
    parts = std::max(parts, op.part.value_or(-1) + 1);
  return parts;
}

bool areAlike(const Operator &a, const Operator &b) {
  auto sameOutput = [](const Output &x, const Output &y) {
    return std::tie(x.bytes, x.memory, x.copy) ==
           std::tie(y.bytes, y.memory, y.copy);
  };
  return a.timeNs == b.timeNs && a.scratch == b.scratch &&
         a.resident == b.resident && a.backward == b.backward &&
         a.result == b.result && a.pin == b.pin &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(),
                    b.outputs.end(), sameOutput);
}

/// But for what they read.
bool areAlike(const std::vector<Alternative> &a,
              const std::vector<Alternative> &b) {
  auto sameCut = [](const OutputCut &x, const OutputCut &y) {
    return x.cut == y.cut && x.isPartial == y.isPartial && x.extra == y.extra;
  };
  auto samePiece = [](const Piece &x, const Piece &y) {
    return std::tie(x.timeNs, x.scratch, x.resident) ==
           std::tie(y.timeNs, y.scratch, y.resident);
  };
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [&](const Alternative &x, const Alternative &y) {
        return x.name == y.name && x.sumNs == y.sumNs &&
               x.replicas == y.replicas && x.exchange == y.exchange &&
               std::equal(x.pieces.begin(), x.pieces.end(), y.pieces.begin(),
                          y.pieces.end(), samePiece) &&
               std::equal(x.outputs.begin(), x.outputs.end(), y.outputs.begin(),
                          y.outputs.end(), sameCut);
      });
}

/// What the parts of a batch are, and whether they are alike.
class Parts {
public:
  Parts(const Graph &graph, const Alternatives &alternatives)
      : graph(graph), alternatives(alternatives), local(graph.ops.size(), 0),
        members(numParts(graph)) {
    for (size_t op = 0; op < graph.ops.size(); ++op)
      if (auto part = graph.ops[op].part) {
        local[op] = static_cast<int32_t>(members[*part].size());
        members[*part].push_back(static_cast<int32_t>(op));
      }
  }

  std::string problem() const {
    for (size_t part = 1; part < members.size(); ++part) {
      if (members[part].size() != members[0].size())
        return fmt::format("part {} of the batch has {} operators, part 0 {}",
                           part, members[part].size(), members[0].size());
      for (size_t k = 0; k < members[part].size(); ++k) {
        int32_t a = members[0][k], b = members[part][k];
        if (!areAlike(graph.ops[a], graph.ops[b]) ||
            !areAlike(alternatives.of[a], alternatives.of[b]) ||
            !readAlike(alternatives.of[a], alternatives.of[b]))
          return fmt::format("'{}' and '{}', of two parts of the batch, are "
                             "not alike",
                             graph.ops[a].name, graph.ops[b].name);
      }
    }
    std::vector<std::vector<std::tuple<int32_t, int32_t, int32_t>>> edges(
        members.size());
    for (const Edge &edge : graph.edges) {
      auto from = graph.ops[edge.from].part, to = graph.ops[edge.to].part;
      if (from && to && *from != *to)
        return fmt::format("'{}' reads from '{}', of another part of the batch",
                           graph.ops[edge.to].name, graph.ops[edge.from].name);
      const Operator &reader = graph.ops[edge.to];
      if (from && !to && edge.output >= 0 && reader.exchange == 0)
        return fmt::format("'{}' reads what a part of the batch makes, and "
                           "states no \"exchange\" with other replicas",
                           reader.name);
      if (graph.ops[edge.from].exchange > 0 && edge.output >= 0)
        return fmt::format("'{}' reads what '{}' exchanges in the same step",
                           reader.name, graph.ops[edge.from].name);
      if (from || to)
        edges[from ? *from : *to].emplace_back(keyOf(edge.from), edge.output,
                                               keyOf(edge.to));
    }
    for (auto &of : edges)
      std::sort(of.begin(), of.end());
    for (size_t part = 1; part < edges.size(); ++part)
      if (edges[part] != edges[0])
        return fmt::format("operators of part {} of the batch read otherwise "
                           "than those of part 0",
                           part);
    return "";
  }

  int32_t count() const { return static_cast<int32_t>(members.size()); }
  int32_t firstOf(int32_t op) const {
    return graph.ops[op].part ? members[0][local[op]] : op;
  }

private:
  bool readAlike(const std::vector<Alternative> &a,
                 const std::vector<Alternative> &b) const {
    auto same = [&](const InputCut &x, const InputCut &y) {
      return keyOf(x.from) == keyOf(y.from) && x.output == y.output &&
             x.cut == y.cut && x.extra == y.extra;
    };
    for (size_t way = 0; way < a.size(); ++way)
      if (!std::equal(a[way].inputs.begin(), a[way].inputs.end(),
                      b[way].inputs.begin(), b[way].inputs.end(), same))
        return false;
    return true;
  }

  /// The same for the likes of all parts; below zero what all parts share.
  int32_t keyOf(int32_t op) const {
    return graph.ops[op].part ? local[op] : ~op;
  }

  const Graph &graph;
  const Alternatives &alternatives;
  std::vector<int32_t> local; ///< place among those of its part
  std::vector<std::vector<int32_t>> members;
};

/// Transfers of one device that stand for one message each way: with duplex
/// links all send at once. Where a device does one transfer at a time, of two
/// that exchange one sends first; of a ring every other one, and the last of an
/// odd number alone.
int64_t turnsOf(const ReplicaShape &shape, LinkModel linkModel) {
  if (linkModel != LinkModel::Sequential)
    return 1;
  return shape.replicas % 2 ? 3 : 2;
}

/// Messages that follow each other: of whole nodes whose number is a power of
/// two by halving and doubling (their devices' likes exchange through their own
/// node's card), else around the ring.
int64_t messagesOf(const Machine &machine, const ReplicaShape &shape) {
  auto replicas = static_cast<uint32_t>(shape.replicas);
  bool isWhole = shape.devices % shapeOf(machine).devicesPerNode == 0;
  if (isWhole && std::has_single_bit(replicas))
    return 2 * static_cast<int64_t>(std::bit_width(replicas) - 1);
  return 2 * (int64_t(shape.replicas) - 1);
}

/// Bytes of all messages of an exchange: shares padded so that each takes whole
/// nanoseconds, and one transfer as long as all.
int64_t exchangeBytes(int64_t bytes, const ReplicaShape &shape,
                      const Link &link, LinkModel linkModel) {
  int64_t unit = link.bytesPerUs / std::gcd(link.bytesPerUs, int64_t(1000));
  int64_t share = (bytes + shape.replicas - 1) / shape.replicas;
  share = (share + unit - 1) / unit * unit;
  return share * 2 * (shape.replicas - 1) * turnsOf(shape, linkModel);
}

/// The link that the messages wait for: some go to another node, unless all
/// replicas are in the first.
const Link &slowest(const Machine &machine, const ReplicaShape &shape) {
  const Nodes &nodes = *machine.nodes;
  int32_t last = shape.replicas * shape.devices - 1;
  bool isInside = nodes.node[last] == nodes.node[0] || shape.replicas == 1 ||
                  !nodes.between;
  return isInside ? *nodes.inside : *nodes.between;
}

class RingAdder {
public:
  RingAdder(const ReplicaGraph &replica, const Ways &ways,
            const ReplicaShape &shape, const Machine &machine,
            Expansion &expansion, std::vector<Ring> &rings)
      : replica(replica), ways(ways), shape(shape),
        link(slowest(machine, shape)), linkModel(machine.linkModel),
        graph(expansion.graph), expansion(expansion), rings(rings) {}

  void run() {
    size_t before = graph.ops.size();
    std::vector<std::vector<int32_t>> pieces(replica.graph.ops.size());
    for (size_t i = 0; i < before; ++i) {
      const Expansion::Origin &origin = expansion.origins[i];
      if (replica.graph.ops[origin.op].exchange > 0 &&
          (!origin.isHelper || origin.piece >= 0))
        pieces[origin.op].push_back(static_cast<int32_t>(i));
    }
    for (size_t op = 0; op < pieces.size(); ++op)
      if (!pieces[op].empty())
        addFor(static_cast<int32_t>(op), pieces[op]);
  }

private:
  void addFor(int32_t op, const std::vector<int32_t> &found) {
    const Alternative *way =
        ways[op] < 0 ? nullptr : &replica.alternatives.of[op][ways[op]];
    auto count = way ? static_cast<int32_t>(way->pieces.size()) : 1;
    if (!way || way->exchange == 0) {
      int64_t bytes = (replica.graph.ops[op].exchange + count - 1) / count;
      for (int32_t p = 0; p < count; ++p)
        addRing(op, p, found[p], bytes);
      return;
    }
    // Pieces, then what adds up their shares, then what keeps the sums: these
    // get the sums of all replicas.
    for (int32_t p = 0; p < count; ++p) {
      int32_t exchange = found[count + p];
      int64_t bytes = graph.ops[exchange].outputs[0].bytes;
      int32_t ring = addRing(op, p, exchange, bytes);
      Operator sum;
      sum.name = fmt::format("{}+sum#{}", replica.graph.ops[op].name, p);
      sum.timeNs = {{"", 0}};
      sum.group = graph.ops[exchange].group;
      sum.backward = graph.ops[exchange].backward;
      sum.outputs = {Output(bytes)};
      int32_t id = add(std::move(sum), op, p);
      for (Edge &edge : graph.edges)
        if (edge.from == exchange && edge.output == 0)
          edge.from = id;
      graph.edges.push_back({exchange, 0, id});
      graph.edges.push_back({ring, -1, id});
    }
  }

  int32_t addRing(int32_t op, int32_t piece, int32_t of, int64_t bytes) {
    auto output = static_cast<int32_t>(graph.ops[of].outputs.size());
    graph.ops[of].outputs.emplace_back(
        exchangeBytes(bytes, shape, link, linkModel), 0, 0);
    Operator ring;
    ring.name = fmt::format("{}+ring#{}", replica.graph.ops[op].name, piece);
    ring.timeNs = {{"", 0}};
    ring.backward = graph.ops[of].backward;
    int32_t id = add(std::move(ring), op, piece);
    graph.edges.push_back({of, output, id});
    rings.push_back({id, of});
    return id;
  }

  int32_t add(Operator op, int32_t of, int32_t piece) {
    graph.ops.push_back(std::move(op));
    expansion.origins.push_back({of, piece, true});
    return static_cast<int32_t>(graph.ops.size()) - 1;
  }

  const ReplicaGraph &replica;
  const Ways &ways;
  const ReplicaShape &shape;
  const Link &link;
  LinkModel linkModel;
  Graph &graph;
  Expansion &expansion;
  std::vector<Ring> &rings;
};

} // namespace

std::string baechi::placement::whyNoReplicas(const Problem &problem,
                                             const Alternatives &alternatives,
                                             const ReplicaShape &shape) {
  NodeShape nodes = shapeOf(problem.machine);
  int64_t all = int64_t(nodes.nodes) * nodes.devicesPerNode;
  if (shape.replicas < 1 || shape.devices < 1 ||
      int64_t(shape.replicas) * shape.devices > all)
    return fmt::format("{} replicas of {} devices do not fit {} devices",
                       shape.replicas, shape.devices, all);
  bool isPart = nodes.devicesPerNode % shape.devices == 0;
  if (!isPart && shape.devices % nodes.devicesPerNode != 0)
    return fmt::format("a replica of {} devices is neither an equal part of a "
                       "node of {} nor whole nodes",
                       shape.devices, nodes.devicesPerNode);
  if (shape.replicas == 1) {
    int32_t needed = devicesOfPins(problem);
    return needed <= shape.devices
               ? ""
               : fmt::format("operators are pinned to the first {} devices, of "
                             "which {} are used",
                             needed, shape.devices);
  }
  if (isPart && shape.devices % nodes.cardsPerNode != 0 &&
      nodes.cardsPerNode > 1)
    return fmt::format("{} devices share {} network cards of a node unevenly",
                       shape.devices, nodes.cardsPerNode);
  Parts parts(problem.graph, alternatives);
  if (parts.count() == 0)
    return "no operator says of which \"part\" of the batch it is";
  if (parts.count() % shape.replicas != 0)
    return fmt::format("{} parts of the batch cannot be shared by {} replicas",
                       parts.count(), shape.replicas);
  for (const Operator &op : problem.graph.ops)
    if (op.pin)
      return fmt::format("'{}' is pinned to a device", op.name);
  return parts.problem();
}

ReplicaGraph baechi::placement::replicaGraph(const Graph &graph,
                                             const Alternatives &alternatives,
                                             int32_t replicas) {
  Parts parts(graph, alternatives);
  int32_t kept = parts.count() / replicas;
  ReplicaGraph result;
  std::vector<int32_t> idOf(graph.ops.size(), -1);
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (graph.ops[op].part.value_or(-1) >= kept)
      continue;
    idOf[op] = static_cast<int32_t>(result.original.size());
    result.original.push_back(static_cast<int32_t>(op));
  }
  for (int32_t op : result.original) {
    Operator copy = graph.ops[op];
    if (copy.forward)
      copy.forward = idOf[*copy.forward];
    if (copy.forward && *copy.forward < 0)
      copy.forward.reset();
    result.graph.ops.push_back(std::move(copy));
    std::vector<Alternative> ways = alternatives.of[op];
    for (Alternative &way : ways) {
      // What a whole operator reads from other replicas' parts it does not.
      std::erase_if(way.inputs, [&](const InputCut &input) {
        return idOf[input.from] < 0;
      });
      for (InputCut &input : way.inputs)
        input.from = idOf[input.from];
    }
    result.alternatives.of.push_back(std::move(ways));
    result.alternatives.shapes.push_back(
        alternatives.shapes.empty() ? std::vector<std::vector<int64_t>>()
                                    : alternatives.shapes[op]);
    result.first.push_back(idOf[parts.firstOf(op)]);
  }
  for (const Edge &edge : graph.edges)
    if (idOf[edge.from] >= 0 && idOf[edge.to] >= 0)
      result.graph.edges.push_back(
          {idOf[edge.from], edge.output, idOf[edge.to]});
  return result;
}

int32_t baechi::placement::devicesOfPins(const Problem &problem) {
  const std::vector<Device> &devices = problem.machine.devices;
  size_t needed = 1;
  for (const Operator &op : problem.graph.ops)
    for (size_t d = needed; op.pin && d < devices.size(); ++d)
      if (devices[d].name == *op.pin)
        needed = d + 1;
  return static_cast<int32_t>(needed);
}

Machine baechi::placement::replicaMachine(const Machine &machine,
                                          const ReplicaShape &shape) {
  Machine result;
  result.linkModel = machine.linkModel;
  const Nodes &all = *machine.nodes;
  Nodes nodes;
  nodes.inside = all.inside;
  nodes.between = all.between;
  nodes.numCards = all.numCards;
  for (int32_t d = 0; d < shape.devices; ++d) {
    result.devices.push_back(machine.devices[d]);
    nodes.node.push_back(all.node[d]);
    nodes.card.push_back(all.card[d]);
  }
  if (shape.replicas > 1) {
    const Link &link = slowest(machine, shape);
    nodes.ring = link;
    nodes.ring->latencyNs *=
        messagesOf(machine, shape) * turnsOf(shape, machine.linkModel);
    // In one node no message leaves it: no two share a card.
    bool usesCards = &link != &*all.inside;
    if (!usesCards) {
      nodes.numCards = shape.devices;
      std::iota(nodes.card.begin(), nodes.card.end(), 0);
    }
    for (int32_t d = 0; d < shape.devices; ++d)
      nodes.side.push_back(d);
    for (int32_t d = 0; d < shape.devices; ++d) {
      Device next = machine.devices[d];
      next.name = "next." + next.name;
      result.devices.push_back(std::move(next));
      nodes.side.push_back(d);
      nodes.card.push_back(nodes.card[d]);
      // A node of its own, as it is none of the replica's.
      nodes.node.push_back(all.node.back() + 1 + d);
    }
  }
  result.nodes = std::move(nodes);
  return result;
}

int32_t baechi::placement::nextReplica(const ReplicaShape &shape,
                                       int32_t device) {
  return shape.devices + device;
}

std::string baechi::placement::expandReplica(
    const ReplicaGraph &replica, const Ways &ways, const ReplicaShape &shape,
    const Machine &machine, Expansion &expansion, std::vector<Ring> &rings) {
  rings.clear();
  if (std::string error =
          expand(replica.graph, replica.alternatives, ways, expansion);
      !error.empty())
    return error;
  if (shape.replicas > 1)
    RingAdder(replica, ways, shape, machine, expansion, rings).run();
  return "";
}

std::string baechi::placement::replicaProblem(const Problem &problem,
                                              const Alternatives &alternatives,
                                              const Ways &ways,
                                              const ReplicaShape &shape,
                                              Problem &result) {
  if (std::string why = whyNoReplicas(problem, alternatives, shape);
      !why.empty())
    return why;
  ReplicaGraph replica =
      replicaGraph(problem.graph, alternatives, shape.replicas);
  Ways own;
  for (int32_t op : replica.original)
    own.push_back(ways[op]);
  Expansion expansion;
  std::vector<Ring> rings;
  if (std::string error =
          expandReplica(replica, own, shape, problem.machine, expansion, rings);
      !error.empty())
    return error;
  result.graph = std::move(expansion.graph);
  result.machine = replicaMachine(problem.machine, shape);
  return "";
}
