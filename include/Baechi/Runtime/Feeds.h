//===- Feeds.h - What goes in and out between steps -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_FEEDS_H
#define BAECHI_RUNTIME_FEEDS_H

#include <cstddef>
#include <cstdint>

namespace baechi::runtime {

/// Values of an argument for each of several steps, one after the other.
struct Feed {
  size_t argument;
  const char *values;
};
/// Room for a result of each of several steps, one after the other.
struct Fetch {
  size_t result;
  char *values;
};

/// Who gives calls that overlap. All is asked on the devices' threads, and with
/// other ranks on rank 0's relay's and on the one that called `overlapCalls`.
class CallSource {
public:
  virtual ~CallSource() = default;

  /// Places as in `baechi_step_call`: null for what stays. `lent`: null, or as
  /// in Session::call, until the call has ended.
  struct Places {
    const void *const *arguments = nullptr;
    void *const *results = nullptr;
    const uint8_t *lent = nullptr;
  };
  enum class Next : int8_t {
    Later = -1, ///< not known yet: it is asked again
    End = 0,    ///< for every device the same: there is no such call
    Call = 1
  };
  /// The call of this number, for a device that has ended those before it.
  /// Waits for some milliseconds at most. The places stay until `ended`.
  virtual Next next(int64_t call, Places &places) = 0;
  /// All devices have ended their parts: what was asked for is in its place.
  virtual void ended(int64_t call) = 0;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_FEEDS_H
