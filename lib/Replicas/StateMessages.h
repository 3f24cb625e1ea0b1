//===- StateMessages.h - What a replica elsewhere asks ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_REPLICAS_STATEMESSAGES_H
#define BAECHI_LIB_REPLICAS_STATEMESSAGES_H

#include <cstdint>

namespace baechi::replicas {

/// A question is this, and what more belongs to it. The processes are of one
/// version, on machines of one order of bytes.
struct StateQuestion {
  enum Kind : int32_t {
    Begin,  ///< answered by the clock of the replica and of the server
    Fetch,  ///< all rows of an array
    Sync,   ///< what it sends; answered by what has changed, and until when
    Wait,   ///< for a clock; answered by whether it is there
    Check,  ///< of a store that is checked: what it read of an array
    Finish, ///< with its reads, by how late they were
    Lose,   ///< with why
  };
  Kind kind = Begin;
  int32_t array = 0;
  int64_t clock = 0, sent = 0;
  uint64_t room = 0;            ///< bytes that it takes
  double limit = 0, waited = 0; ///< seconds
};

/// Before what is more of an answer.
struct StateAnswer {
  int64_t failed = 0; ///< with what more: why
  int64_t number = 0;
};

} // namespace baechi::replicas

#endif // BAECHI_LIB_REPLICAS_STATEMESSAGES_H
