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

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_FEEDS_H
