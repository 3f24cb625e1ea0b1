//===- Program.h - What a compiled program says about itself ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The program manifest (docs/program-format.md) as plain structs. Devices,
/// queues, messages, operators, arguments and results are named by position.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_PROGRAM_H
#define BAECHI_RUNTIME_PROGRAM_H

#include "Baechi/Runtime/Error.h"
#include "Baechi/Runtime/Timeline.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::runtime {

enum class ElementType { F64, F32, F16, BF16, I64, I32, I16, I8, I1 };

/// Bytes of one element in an arena (i1: one).
int64_t elementBytes(ElementType type);
/// "f32".
std::string_view elementName(ElementType type);
std::optional<ElementType> parseElementType(std::string_view name);

/// An operator of a device's program, with the times the plan predicted.
struct OperatorInfo {
  std::string name;
  std::string kernel;
  int64_t startNs = 0;
  int64_t timeNs = 0;
  /// In the whole step, whose arguments come first. -1: not known.
  int32_t id = -1;
};

struct DeviceInfo {
  std::string name;
  /// Which driver runs it: "host", "null", ...
  std::string kind;
  /// Symbol of the device's step function.
  std::string entry;
  int64_t arenaBytes = 0;
  /// The limit that the plan was proven against.
  int64_t memory = 0;
  std::vector<OperatorInfo> operators;
};

struct MessageInfo {
  std::string name;
  int64_t bytes = 0;
  int64_t startNs = 0;
  int64_t endNs = 0;
  /// Transports that move messages one after the other take those of lower
  /// groups first. -1: not known.
  int64_t group = -1;
  /// The operator or argument whose output it is, by its id. -1: not known.
  int32_t producer = -1;
  int32_t output = 0;
  /// The receiver reads the sender's buffer and gives it back.
  bool lent = false;
  /// Offered in one step and awaited in the next: an await is for the message
  /// of the step before, and the last step's are awaited at its end.
  bool carried = false;
  /// Of a program with an exchange: smaller ones are moved first.
  int64_t priority = 0;
};

/// A link of a simulated network: how long a message takes that would else be
/// copied at once.
struct SimulatedLink {
  int64_t latencyNs = 0;
  int64_t bytesPerUs = 1;
  /// Queues whose links have a lane in common move one message at a time.
  std::vector<int32_t> lanes;

  /// latency + ceil(bytes * 1000 / bytesPerUs), as placers have it.
  int64_t transferNs(int64_t bytes) const;
};

/// The messages from one device to another, in the order of their `seq`.
struct QueueInfo {
  int32_t from = 0;
  int32_t to = 0;
  std::vector<MessageInfo> messages;
  /// None: messages take what they take.
  std::optional<SimulatedLink> link = std::nullopt;
};

/// How simulated links move messages: by priority, then as they are ready, and
/// cut in slices, between which others may go first.
struct ExchangeOrder {
  /// None: messages are whole.
  std::optional<int64_t> sliceBytes = std::nullopt;
};

/// A place in a device's arena.
struct Place {
  int32_t device = 0;
  int64_t offset = 0;
};

/// A part of a tensor at a fixed place in a device's arena. It has elements
/// `start` to `start + size` of the dimension that the tensor is cut along.
struct PieceInfo {
  std::string name;
  int32_t device = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t start = 0;
  int64_t size = 0;
  /// Of an argument: where other devices keep the value of the step's start.
  std::vector<Place> copies = {};
};

/// A tensor at a fixed place in a device's arena, or in pieces in several.
struct BufferInfo {
  std::string name;
  /// Of a tensor in pieces: the first one's.
  int32_t device = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  /// The dimension that pieces are of, and how many others it has joined: a
  /// piece has its elements of each of so many parts of the dimension.
  int32_t dim = 0;
  int64_t outer = 1;
  /// One behind the other; none where the tensor is whole.
  std::vector<PieceInfo> pieces = {};
  /// As those of a piece, where the tensor is whole.
  std::vector<Place> copies = {};

  /// All that is stored somewhere: the pieces, or the whole as the only one.
  std::vector<PieceInfo> parts() const;
  /// Whether other devices keep the value, or that of a piece, too.
  bool hasCopies() const;
};

/// A piece as ranges of the whole's bytes: `rows` ranges of `length`, the first
/// at `start`, each `stride` behind the one before.
struct PieceRows {
  int64_t rows = 0, stride = 0, start = 0, length = 0;
};
/// Of a buffer that keeps the rules.
PieceRows rowsOf(const BufferInfo &buffer, const PieceInfo &piece);

struct ArgumentInfo : BufferInfo {
  /// The result whose value the argument holds after a step.
  std::optional<int32_t> updatedBy;
  /// The step only reads it, and asks where it lies (baechi_argument).
  bool lendable = false;
};

/// What the compiler predicted of a step.
struct Prediction {
  /// Of the placement, by the rules of placers.
  int64_t makespanNs = 0;
  /// Of the lowered program, by the runtime's rules; 0: not simulated.
  int64_t stepNs = 0;
  /// From one of several steps that overlap to the next; 0: not simulated.
  int64_t periodNs = 0;
  /// Of simulated links, from one of several steps that overlap to the next,
  /// or where that was not simulated in a step.
  LaneRecord links;
  int64_t lowerBoundNs = 0;
  std::string placer;
  std::string winner;
};

struct Program {
  std::string function;
  std::vector<DeviceInfo> devices;
  std::vector<QueueInfo> queues;
  std::vector<ArgumentInfo> arguments;
  std::vector<BufferInfo> results;
  /// Extensions of the instruction set that the host code was compiled for, by
  /// the system's names; a session is refused where one is missing.
  std::vector<std::string> processor;
  /// Processors that the planned machine could keep busy; a session is refused
  /// where there are fewer and host devices would have to share. 0: not known.
  int32_t cores = 0;
  /// Every device's part of a step surely ends once what it waits for is there:
  /// no loop without a bound, nothing that another program computes.
  bool ends = false;
  /// None: simulated links move what the plan starts first.
  std::optional<ExchangeOrder> exchange = std::nullopt;
  Prediction predicted;

  /// Reads a manifest and checks it. The error names the place in the file.
  static Expected<Program> parse(std::string_view json);

  /// The rules of docs/program-format.md: positions exist, buffers lie aligned
  /// and whole inside their arenas, sizes match types and shapes, arguments do
  /// not overlap. Reports the first breach.
  Error check() const;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_PROGRAM_H
