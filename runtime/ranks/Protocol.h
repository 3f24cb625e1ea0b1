//===- Protocol.h - What ranks say to each other -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Between steps rank 0 sends commands, as texts (Ranks::send). During a step
/// ranks exchange the program's messages, straight between the devices' arenas,
/// and notices of fixed size:
///
///   others to rank 0   Beat*  [Failed]  Ended | Stopped
///   rank 0 to others   Beat*  Ended | Abort
///
/// Ended comes when all that a rank has to do in the step is done; rank 0 says
/// it when all have. The first failure goes to rank 0, which tells it to all;
/// each answers that it has stopped.
///
/// Of steps that overlap a receiver of the program's messages tells the sender,
/// once a step, that its devices have left it (tags::Left). Of calls that
/// overlap rank 0 tells as they come (tags::Calls, RankCalls.h).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_PROTOCOL_H
#define BAECHI_RUNTIME_RANKS_PROTOCOL_H

#include "Baechi/Runtime/Error.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace baechi::runtime {

class Ranks;

namespace tags {
/// What the messages of a program come after.
enum : int32_t { Size, Bytes, Notice, Times, Left, Calls, Pulse, FirstMessage };
/// Texts of more bytes go in several messages.
inline constexpr int64_t chunkBytes = int64_t(1) << 28;
} // namespace tags

struct Command {
  enum Kind : int32_t { Step, Steps, Calls, Write, Read, Close, Quit };

  Command() = default;
  explicit Command(Kind kind, int32_t device = 0, int64_t offset = 0,
                   int64_t size = 0)
      : kind(kind), device(device), offset(offset), size(size) {}

  std::string_view bytes() const {
    return {reinterpret_cast<const char *>(this), sizeof(*this)};
  }
  bool read(std::string_view text) {
    if (text.size() != sizeof(*this))
      return false;
    std::memcpy(static_cast<void *>(this), text.data(), sizeof(*this));
    return true;
  }

  Kind kind = Quit;
  int32_t device = 0;
  int64_t offset = 0;
  int64_t size = 0;
};

/// Rank 0: a command to all others.
Error commandAll(Ranks &ranks, Command::Kind kind);

struct Notice {
  enum Kind : int32_t { Beat, Failed, Abort, Ended, Stopped };
  Kind kind = Beat;
  int32_t reserved = 0;
  /// Beat: how often the devices have made progress. Stopped: 1 when one is
  /// still inside a kernel. Abort: 1 + the rank that was lost, if one was.
  int64_t value = 0;
  /// Why, cut to what fits.
  char text[1008] = {};

  void setText(const std::string &from) {
    size_t length = from.copy(text, sizeof(text) - 1);
    text[length] = 0;
  }
};
static_assert(sizeof(Notice) == 1024);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_PROTOCOL_H
