//===- NodesGraph.cpp - A graph with parts, exchanges and ways ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NodesGraph.h"
#include "NodeWays.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <set>
#include <tuple>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;
using placement::Alternative;

namespace {
class Writer : NodeWays {
public:
  using NodeWays::NodeWays;

  NodesGraph run() {
    int32_t n = whole.ops.size();
    ids.assign(n, {});
    indexEdges();
    nameGroups();
    if (batch.parts == 1) {
      for (int32_t id = 0; id < n; ++id)
        if (roleOf(id) == Role::OfPart)
          addOfPart(id, std::nullopt);
        else if (roleOf(id) != Role::Free)
          addShared(id);
    } else {
      // What one operator updates is on one device.
      for (int32_t id = 0; id < n; ++id)
        if (roleOf(id) == Role::OfAll && whole.ops[id].group)
          groupNow[*whole.ops[id].group] = groups.lookup(batch.joined[id]);
      for (int32_t id = 0; id < n; ++id)
        if (roleOf(id) == Role::Shared)
          addShared(id);
      for (int32_t part = 0; part < batch.parts; ++part)
        for (int32_t id = 0; id < n; ++id)
          if (roleOf(id) == Role::OfPart)
            addOfPart(id, part);
      llvm::MapVector<int32_t, SmallVector<int32_t>> joined;
      for (int32_t id = 0; id < n; ++id)
        if (roleOf(id) == Role::OfAll)
          joined[batch.joined[id]].push_back(id);
      for (const auto &[leader, members] : joined)
        addJoined(members);
      for (int32_t id = 0; id < n; ++id)
        if (roleOf(id) == Role::OfPart && whole.ops[id].result)
          addSums(id);
    }
    addEdges();
    addInputs();
    // Groups that share an operator are one.
    for (placement::Operator &op : made.graph.ops)
      if (op.group)
        op.group = joinedGroup(*op.group);
    return std::move(made);
  }

private:
  void indexEdges() {
    uses.assign(whole.ops.size(), {});
    reads.assign(whole.ops.size(), {});
    for (const placement::Edge &edge : whole.edges) {
      uses[edge.from].push_back(&edge);
      reads[edge.to].push_back(&edge);
    }
  }

  /// All that is one operator is in one group: its own, or of a name that is
  /// made for it.
  void nameGroups() {
    for (auto [id, leader] : llvm::enumerate(batch.joined))
      if (roleOf(id) == Role::OfAll && whole.ops[id].group)
        groups.try_emplace(leader, *whole.ops[id].group);
    for (auto [id, leader] : llvm::enumerate(batch.joined))
      if (roleOf(id) == Role::OfAll)
        groups.try_emplace(leader, whole.ops[leader].name + ".sum");
  }

  int32_t add(placement::Operator op, SmallVector<Alternative> ways,
              std::vector<std::vector<int64_t>> shapes) {
    made.graph.ops.push_back(std::move(op));
    made.alternatives.of.emplace_back(ways.begin(), ways.end());
    made.alternatives.shapes.push_back(std::move(shapes));
    return int32_t(made.graph.ops.size()) - 1;
  }

  /// Every replica does it, and every piece of the batch.
  void addShared(int32_t id) {
    placement::Operator op = whole.ops[id];
    if (op.group)
      if (auto now = groupNow.find(*op.group); now != groupNow.end())
        op.group = now->second;
    Ways ways;
    if (isParted())
      for (int64_t count : pieces)
        ways.push_back(way("data", count, op));
    std::vector<std::vector<int64_t>> shapes;
    for (int32_t o = 0, n = op.outputs.size(); o < n; ++o)
      shapes.push_back(isParted() ? extents(id, o) : std::vector<int64_t>());
    addTensorWays(ways, op, {id});
    ids[id] = {add(std::move(op), std::move(ways), std::move(shapes))};
  }

  void addOfPart(int32_t id, std::optional<int32_t> part) {
    placement::Operator op = share(id, batch.parts);
    if (part) {
      std::string prefix = "p" + std::to_string(*part) + "/";
      op.part = part;
      op.name = prefix + op.name;
      if (op.group)
        op.group = prefix + *op.group;
    }
    std::vector<std::vector<int64_t>> shapes;
    bool isSum = false;
    for (int32_t o = 0, n = op.outputs.size(); o < n; ++o) {
      shapes.push_back(shapeOf(id, o));
      if (!isSummand(id, o))
        continue;
      isSum = true;
      if (!part)
        continue;
      // They are added up where they are made, in what `OfAll` holds.
      op.outputs[o].memory = 0;
    }
    if (isSum && part) {
      // What a person wants beside it is there, too.
      std::string reader = groupOfReader(id);
      if (op.group)
        joinGroups(reader, *op.group);
      op.group = reader;
      // Their sum is a result, if they are.
      op.result &= llvm::any_of(llvm::seq<int32_t>(0, op.outputs.size()),
                                [&](int32_t o) { return !isSummand(id, o); });
    }
    Ways ways;
    for (int64_t count : pieces) {
      Alternative found = way("data", count, share(id, batch.parts * count));
      for (int32_t o = 0, n = op.outputs.size(); o < n; ++o) {
        placement::OutputCut output;
        if (!isSummand(id, o) || part)
          output.cut = cutOf(id, o, count);
        else
          output.isPartial = true;
        if (isSummand(id, o) && part)
          output.extra = op.outputs[o].bytes - op.outputs[o].bytes / count;
        if (output.isPartial)
          found.sumNs = std::max(found.sumNs, sumNs(op.outputs[o].bytes));
        found.outputs.push_back(std::move(output));
      }
      ways.push_back(std::move(found));
    }
    addTensorWays(ways, op, {id});
    ids[id].push_back(add(std::move(op), std::move(ways), std::move(shapes)));
  }

  /// What parts add up lies where it is used.
  std::string groupOfReader(int32_t id) const {
    for (const placement::Edge *edge : uses[id])
      if (roleOf(edge->to) == Role::OfAll)
        return groups.lookup(batch.joined[edge->to]);
    return whole.ops[id].name;
  }

  /// The most bytes that members of what is one operator hold at a time, one
  /// running after the other: rows that are gathered for them and what they
  /// make, until it is last read, and what one needs while it runs. Results are
  /// outputs, and parts' sums resident.
  int64_t mostLive(ArrayRef<int32_t> members) const {
    llvm::DenseMap<int32_t, size_t> place;
    for (auto [at, id] : llvm::enumerate(members))
      place[id] = at;
    std::vector<int64_t> ends(members.size(), 0);
    int64_t live = 0, most = 0;
    std::map<std::pair<int32_t, int32_t>, size_t> gathered;
    for (auto [at, id] : llvm::enumerate(members))
      for (const placement::Edge *edge : reads[id])
        if (isGathered(*edge))
          gathered[{edge->from, edge->output}] = at;
    for (const auto &[read, last] : gathered) {
      int64_t bytes = llvm::alignTo(
          whole.ops[read.first].outputs[read.second].bytes, kAlignment);
      live += bytes;
      ends[last] += bytes;
    }
    for (auto [at, id] : llvm::enumerate(members)) {
      const placement::Operator &member = whole.ops[id];
      for (int32_t o = 0, n = member.outputs.size(); o < n; ++o) {
        if (member.result)
          continue;
        size_t last = at;
        for (const placement::Edge *edge : uses[id])
          if (auto user = place.find(edge->to);
              edge->output == o && user != place.end())
            last = std::max(last, user->second);
        live += member.outputs[o].memory;
        ends[last] += member.outputs[o].memory;
      }
      most = std::max(most, live + member.scratch);
      live -= ends[at];
    }
    return most;
  }

  /// Whether rows of all parts are read, no sum of them.
  bool isGathered(const placement::Edge &edge) const {
    return edge.output >= 0 && roleOf(edge.from) == Role::OfPart &&
           !isSummand(edge.from, edge.output);
  }

  /// The operators that read what all parts make, as one: parts' sums are
  /// resident, results outputs, and what is between them scratch. An exchange
  /// gives each replica's share to all and gets as much (all-reduce): of rows
  /// that are gathered it is half, as these go one way.
  void addJoined(ArrayRef<int32_t> members) {
    placement::Operator op;
    op.name = whole.ops[members.back()].name;
    op.group = groups.lookup(batch.joined[members.front()]);
    op.scratch = mostLive(members);
    llvm::SmallMapVector<StringRef, int64_t, 2> times;
    std::set<std::pair<int32_t, int32_t>> seen;
    bool hasGathered = false;
    for (int32_t id : members) {
      const placement::Operator &member = whole.ops[id];
      op.backward |= member.backward;
      op.result |= member.result;
      if (member.pin)
        op.pin = member.pin;
      for (const auto &[kind, ns] : member.timeNs)
        times[kind] += ns;
      if (member.result)
        op.outputs.insert(op.outputs.end(), member.outputs.begin(),
                          member.outputs.end());
      for (const placement::Edge *edge : reads[id]) {
        if (edge->output < 0 || roleOf(edge->from) != Role::OfPart ||
            !seen.emplace(edge->from, edge->output).second)
          continue;
        int64_t bytes = whole.ops[edge->from].outputs[edge->output].bytes;
        op.exchange += isGathered(*edge) ? llvm::divideCeil(bytes, 2) : bytes;
        if (isGathered(*edge))
          hasGathered = true;
        else
          op.resident += llvm::alignTo(bytes, kAlignment);
      }
    }
    for (const auto &[kind, ns] : times)
      if (llvm::all_of(members, [&](int32_t id) {
            return placement::timeOn(whole.ops[id], kind).has_value();
          }))
        op.timeNs.emplace_back(kind.str(), ns);
    Ways ways;
    for (int64_t count : pieces) {
      ways.push_back(way("data", count, op));
      ways.back().replicas = int32_t(count);
      ways.back().exchange = op.exchange;
    }
    std::vector<std::vector<int64_t>> shapes;
    for (int32_t id : members)
      for (int32_t o = 0, n = whole.ops[id].outputs.size(); o < n; ++o)
        if (whole.ops[id].result)
          shapes.push_back(extents(id, o));
    // Each piece would hold the rows, of all columns, and wait for them.
    if (!hasGathered)
      addTensorWays(ways, op, members);
    int32_t made = add(std::move(op), std::move(ways), std::move(shapes));
    for (int32_t id : members)
      ids[id] = {made};
  }

  /// What is returned as parts add it up.
  void addSums(int32_t id) {
    placement::Operator op;
    op.name = whole.ops[id].name + ".sum";
    op.timeNs = {{"", 0}};
    op.group = groupOfReader(id);
    op.result = true;
    SmallVector<int32_t> summands;
    for (auto [number, output] : llvm::enumerate(whole.ops[id].outputs)) {
      auto o = int32_t(number);
      bool isRead = llvm::any_of(uses[id], [&](const auto *edge) {
        return edge->output == o && roleOf(edge->to) == Role::OfAll;
      });
      if (!isSummand(id, o) || isRead)
        continue;
      op.exchange += output.bytes;
      op.resident += output.memory;
      op.outputs.emplace_back(output.bytes, 0, output.copy);
      summands.push_back(o);
    }
    if (summands.empty())
      return;
    Ways ways;
    for (int64_t count : pieces) {
      Alternative &found = ways.emplace_back(way("data", count, op));
      found.replicas = int32_t(count);
      found.exchange = op.exchange;
      for (int32_t from : ids[id])
        for (int32_t o : summands)
          found.inputs.push_back({from, o, cutOf(id, o, count)});
    }
    std::vector<std::vector<int64_t>> shapes(op.outputs.size());
    int32_t sum = add(std::move(op), std::move(ways), std::move(shapes));
    for (int32_t from : ids[id])
      for (int32_t o : summands)
        made.graph.edges.push_back({from, o, sum});
  }

  /// Parts read their own, what is of all reads every part.
  void addEdges() {
    std::set<std::tuple<int32_t, int32_t, int32_t>> seen;
    auto connect = [&](int32_t from, int32_t output, int32_t to) {
      if (from != to && seen.emplace(from, output, to).second)
        made.graph.edges.push_back({from, output, to});
    };
    for (const placement::Edge &edge : whole.edges) {
      ArrayRef<int32_t> from = ids[edge.from], to = ids[edge.to];
      if (roleOf(edge.from) == Role::OfPart &&
          roleOf(edge.to) == Role::OfPart) {
        for (auto [a, b] : llvm::zip_equal(from, to))
          connect(a, edge.output, b);
        continue;
      }
      for (int32_t a : from)
        for (int32_t b : to)
          connect(a, edge.output, b);
    }
  }

  /// What pieces of matrices read.
  void addTensorInputs() {
    for (const TensorWays &tensor : tensors)
      for (const placement::Edge &edge : whole.edges) {
        if (edge.output < 0 || ids[edge.from].empty() || ids[edge.to].empty())
          continue;
        std::optional<unsigned> dim =
            tensor.dimReadBy(edge.to, edge.from, edge.output);
        if (!dim || !stated(edge.from, edge.output, *dim))
          continue;
        bool isOwn = roleOf(edge.from) == Role::OfPart &&
                     roleOf(edge.to) == Role::OfPart;
        placement::Cut cut =
            tensorCut(edge.from, edge.output, *dim, tensor.count);
        auto read = [&](int32_t from, int32_t to) {
          if (from != to)
            addInput(to, "tensor/", tensor.count, {from, edge.output, cut});
        };
        if (isOwn) {
          for (auto [from, to] : llvm::zip_equal(ids[edge.from], ids[edge.to]))
            read(from, to);
          continue;
        }
        for (int32_t from : ids[edge.from])
          for (int32_t to : ids[edge.to])
            read(from, to);
      }
  }

  void addInput(int32_t reader, StringRef word, int64_t count,
                placement::InputCut input) {
    for (auto [number, way] : llvm::enumerate(made.alternatives.of[reader]))
      if (StringRef(way.name).starts_with(word) &&
          int64_t(way.pieces.size()) == count &&
          inputsSeen.emplace(reader, number, input.from, input.output).second)
        way.inputs.push_back(input);
  }

  void joinGroups(const std::string &a, const std::string &b) {
    std::string group = joinedGroup(a), other = joinedGroup(b);
    if (group != other)
      groupInto[other] = group;
  }

  std::string joinedGroup(std::string group) const {
    for (auto it = groupInto.find(group); it != groupInto.end();
         it = groupInto.find(group))
      group = it->second;
    return group;
  }

  /// What pieces read of what parts make.
  void addInputs() {
    addTensorInputs();
    for (const placement::Edge &edge : whole.edges) {
      if (edge.output < 0 || roleOf(edge.from) != Role::OfPart)
        continue;
      bool isSum = isSummand(edge.from, edge.output);
      bool isOfPart = roleOf(edge.to) == Role::OfPart;
      if (isOfPart ? isSum || !batch.readsOwn(edge) : !isParted() || !isSum)
        continue;
      ArrayRef<int32_t> from = ids[edge.from], to = ids[edge.to];
      for (auto [number, id] : llvm::enumerate(from))
        for (int64_t count : pieces)
          addInput(isOfPart ? to[number] : to.front(), "data/", count,
                   {id, edge.output, cutOf(edge.from, edge.output, count)});
    }
  }

  std::vector<SmallVector<int32_t, 1>> ids; ///< in the graph, by operator
  /// By operators: edges from them, and to them.
  std::vector<SmallVector<const placement::Edge *, 2>> uses, reads;
  llvm::DenseMap<int32_t, std::string> groups; ///< by `joined`
  std::map<std::string, std::string> groupNow;
  std::map<std::string, std::string> groupInto; ///< one group with another
  /// Operator, way, who makes it, which output.
  std::set<std::tuple<int32_t, size_t, int32_t, int32_t>> inputsSeen;
  NodesGraph made;
};
} // namespace

NodesGraph split::nodesGraph(const BatchRoles &batch,
                             const NodesOptions &options) {
  return Writer(batch, options).run();
}
