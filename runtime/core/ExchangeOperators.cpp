//===- ExchangeOperators.cpp - What a device tells of its operators -------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where each begins and ends, and the functions that the host program computes
/// for it.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Denormals.h"
#include "core/Exchange.h"
#include "core/ExchangeWait.h"

using namespace baechi::runtime;

void Exchange::beginOperator(baechi_context &self, int32_t op) {
  advance(self);
  if (op < 0 || size_t(op) >= self.operators.size()) {
    fail(self, {"began an operator that does not exist"});
    return;
  }
  self.place.store(2 * op, std::memory_order_relaxed);
  if (injected(Call::BeginOperator))
    fail(self, {"injected fault: cannot begin the operator"});
  if (self.marks) {
    if (Problem problem = self.marks->begin(op, timeline))
      fail(self, {problem.reason, problem.detail});
  } else if (timeline) {
    self.operators[op].beginNs = elapsedNs();
  }
}

void Exchange::endOperator(baechi_context &self, int32_t op) {
  advance(self);
  if (op < 0 || self.place.load(std::memory_order_relaxed) != 2 * op) {
    fail(self, {"ended an operator that had not begun"});
    return;
  }
  if (injected(Call::EndOperator))
    fail(self, {"injected fault: the operator failed"});
  if (self.marks) {
    if (Problem problem = self.marks->end(op, timeline))
      fail(self, {problem.reason, problem.detail});
  } else if (timeline) {
    self.operators[op].endNs = elapsedNs();
  }
  self.place.store(2 * op + 1, std::memory_order_relaxed);
}

int32_t Exchange::callHost(baechi_context &self, const char *name,
                           void *const *places) {
  advance(self);
  if (aborted())
    return Stop;
  if (!hostCalls.function)
    return fail(self, {"no function is set for the host call", name});
  WithDenormals asTheHostProgram;
  self.hostError.front() = '\0';
  int failed = hostCalls.function(hostCalls.user, name, places,
                                  self.hostError.data(), self.hostError.size());
  advance(self);
  return failed ? fail(self, {"the host call failed", self.hostError.data()})
                : 0;
}
