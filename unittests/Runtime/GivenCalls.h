//===- GivenCalls.h - Calls that come one after the other -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_GIVENCALLS_H
#define BAECHI_UNITTESTS_RUNTIME_GIVENCALLS_H

#include "Baechi/Runtime/Session.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace baechi::runtime::test {

/// Calls that come one after the other, some of them late.
class Calls final : public CallSource {
public:
  Calls(int64_t first, std::vector<std::vector<const void *>> arguments,
        std::vector<std::vector<void *>> results)
      : first(first), arguments(std::move(arguments)),
        results(std::move(results)) {}

  Next next(int64_t call, Places &places) override {
    std::lock_guard<std::mutex> guard(mutex);
    auto place = size_t(call - first);
    if (place < arguments.size() && random() % 3 == 0)
      return Next::Later;
    if (place >= arguments.size())
      return Next::End;
    places = {arguments[place].data(), results[place].data(),
              lent.empty() ? nullptr : lent.data()};
    return Next::Call;
  }
  void ended(int64_t call) override {
    std::lock_guard<std::mutex> guard(mutex);
    EXPECT_EQ(call, first + endedCalls);
    ++endedCalls;
  }

  int64_t endedCalls = 0;
  /// Of each argument, in every call; empty: none is.
  std::vector<uint8_t> lent;

private:
  const int64_t first;
  std::vector<std::vector<const void *>> arguments;
  std::vector<std::vector<void *>> results;
  std::mutex mutex;
  std::mt19937 random{5};
};

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_GIVENCALLS_H
