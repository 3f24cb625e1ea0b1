//===- Problem.h - The placement problem ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A graph of operators and a machine of devices and links: what every placer
/// takes. Times are integer nanoseconds, sizes are bytes. Ids are dense: an
/// operator's id is its position in `Graph::ops`, a device's its position in
/// `Machine::devices`. The rules are those of docs/formats.md.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_MODEL_PROBLEM_H
#define BAECHI_PLACEMENT_MODEL_PROBLEM_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baechi::placement {

/// One output tensor of an operator.
struct Output {
  /// Bytes moved when the tensor is sent to another device.
  int64_t bytes = 0;
  /// Bytes held on the producer's device (0: an alias, or updated in place).
  int64_t memory = 0;
  /// Bytes held by a received copy.
  int64_t copy = 0;

  Output() = default;
  /// An ordinary tensor: moved, held and copied at its full size.
  explicit Output(int64_t size) : bytes(size), memory(size), copy(size) {}
  Output(int64_t bytes, int64_t memory, int64_t copy)
      : bytes(bytes), memory(memory), copy(copy) {}
};

struct Operator {
  std::string name;
  /// Compute time per device kind; the kind "" stands for every kind. A kind
  /// that is not listed (and no "") cannot run the operator.
  std::vector<std::pair<std::string, int64_t>> timeNs;
  std::vector<Output> outputs;
  /// Bytes held while the operator runs.
  int64_t scratch = 0;
  /// Bytes held as long as the program lives (parameters, optimizer state).
  int64_t resident = 0;
  /// Operators of one group are placed on one device.
  std::optional<std::string> group;
  /// Name of the device that the operator must be placed on.
  std::optional<std::string> pin;
  bool backward = false;
  /// The forward operator that a backward operator belongs to.
  std::optional<int32_t> forward;
  /// True: the outputs live until the end of the step.
  bool result = false;
  /// The part of the batch that it computes: replicas compute different parts.
  /// None: each replica has it.
  std::optional<int32_t> part;
  /// Bytes that replicas exchange of what it has made of their parts.
  int64_t exchange = 0;
};

/// Time of \p op on a device of \p kind; nullopt: it cannot run there. A kind
/// that is listed by name goes before the kind "" that stands for all.
std::optional<int64_t> timeOn(const Operator &op, std::string_view kind);

/// A data edge (output >= 0) or a control edge (output == -1).
struct Edge {
  int32_t from = 0;
  int32_t output = -1;
  int32_t to = 0;
};

struct Graph {
  std::vector<Operator> ops;
  std::vector<Edge> edges;
};

struct Device {
  std::string name;
  std::string kind;
  int64_t memory = 0;
};

struct Link {
  int64_t latencyNs = 0;
  int64_t bytesPerUs = 1;
  /// The two devices share one address space: the receiver reads the sender's
  /// tensor where it lies.
  bool lends = false;

  bool operator==(const Link &) const = default;

  /// What a transfer takes: the latency where the link lends, else copyNs.
  int64_t transferNs(int64_t bytes) const;
  /// latency + ceil(bytes * 1000 / bytesPerUs).
  int64_t copyNs(int64_t bytes) const;
};

/// Which transfers may not overlap.
enum class LinkModel {
  Unlimited,  ///< all may overlap (the theory's)
  Parallel,   ///< one at a time per directed link
  Duplex,     ///< one out and one in at a time per device
  Sequential, ///< one at a time per device (the paper's machines)
};

/// What the runtime takes on host devices beside operators and links. Placers
/// do not look at it; the lowered program's prediction does
/// (Analysis/StepSimulation.h).
struct RuntimeCosts {
  /// Starting a step and noticing its end.
  int64_t stepNs = 0;
  /// Beginning and ending an operator.
  int64_t operatorNs = 0;
  /// Waking a device that fell asleep over a message.
  int64_t wakeNs = 0;
  /// What operators take while several devices share caches and memory, in
  /// percent of what they take on one device alone.
  int64_t sharedPercent = 100;
  /// As `stepNs`, of a step that one device computes; -1: not known, the same.
  int64_t aloneNs = -1;
  /// Processors that the host devices share, the i-th being on processor
  /// i modulo `cores`; 0: each has one of its own.
  int64_t cores = 0;

  /// What starting a step takes, on several devices or on one.
  int64_t startNs(bool several) const {
    return several || aloneNs < 0 ? stepNs : aloneNs;
  }
};

/// Devices in nodes: links by where both ends are, and network cards that the
/// devices of a node share. A transfer between nodes occupies, beside what the
/// link model says, a card of each: the outgoing side of the sender's, the
/// incoming one of the receiver's; `Sequential` cards have one side,
/// `Unlimited` ones do not count.
struct Nodes {
  std::vector<int32_t> node; ///< per device
  std::vector<int32_t> card; ///< per device, numbered over all nodes
  int32_t numCards = 0;
  std::optional<Link> inside, between;
  /// Of a machine that stands for one of several replicas (Nodes/Replica.h): a
  /// device that stands for its like in the next replica has that device's
  /// copy engines and card, so that a message to it is one that each replica
  /// sends to the next at that time. Per device, whose they are; empty: its
  /// own.
  std::vector<int32_t> side;
  std::optional<Link> ring; ///< to the next replica
};

struct Machine {
  std::vector<Device> devices;
  /// Row-major devices x devices; nullopt: the pair cannot talk. The diagonal
  /// is unused. Empty where there are `nodes`.
  std::vector<std::optional<Link>> links;
  std::optional<Nodes> nodes;
  LinkModel linkModel = LinkModel::Sequential;
  /// For the objective max-load alone: the kind of the devices whose memory all
  /// transfers go through. A device then computes, sends or fetches; what it
  /// sends to any number of others it sends once. Devices of this kind do
  /// neither (Tarnawski et al., NeurIPS 2020). None: transfers go directly, and
  /// beside the computing.
  std::optional<std::string> stagedThrough;
  /// As `baechi-run --query-machine` and `--calibrate` measured it.
  std::optional<RuntimeCosts> runtime;
  /// What a written file says beside, for people: the text of a JSON value; "":
  /// nothing. Not read back.
  std::string meta;

  const std::optional<Link> &link(int32_t from, int32_t to) const {
    if (!nodes)
      return links[static_cast<size_t>(from) * devices.size() + to];
    if (nodes->node[from] == nodes->node[to])
      return nodes->inside;
    return sideOf(from) == sideOf(to) ? nodes->ring : nodes->between;
  }
  /// Whose copy engines a device uses.
  int32_t sideOf(int32_t device) const {
    return nodes && !nodes->side.empty() ? nodes->side[device] : device;
  }
  /// Whether a transfer occupies network cards.
  bool usesCards(int32_t from, int32_t to) const {
    return nodes && linkModel != LinkModel::Unlimited &&
           nodes->node[from] != nodes->node[to];
  }
  bool isStage(int32_t device) const {
    return stagedThrough && devices[device].kind == *stagedThrough;
  }
  /// The first device that transfers are staged through; -1: there is none.
  int32_t stage() const;
};

struct Problem {
  Graph graph;
  Machine machine;
};

/// Everything that is wrong with an input, one message each, empty when it is
/// well formed. Names the operator, device or edge and the mend.
std::vector<std::string> check(const Problem &problem);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_MODEL_PROBLEM_H
