//===- Abi.cpp - The C interface that programs call -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Abi.h"
#include "core/Exchange.h"

using namespace baechi::runtime;

int32_t baechi_send(baechi_context *context, int32_t queue, int32_t seq,
                    const void *source) {
  if (context->rehearses)
    return 0;
  return context->exchange.offer(*context, Side::Sender, queue, seq, source,
                                 nullptr);
}

int32_t baechi_recv(baechi_context *context, int32_t queue, int32_t seq,
                    void *destination) {
  if (context->rehearses)
    return 0;
  return context->exchange.offer(*context, Side::Receiver, queue, seq, nullptr,
                                 destination);
}

int32_t baechi_await_send(baechi_context *context, int32_t queue, int32_t seq) {
  if (context->rehearses)
    return 0;
  return context->exchange.await(*context, Side::Sender, queue, seq);
}

int32_t baechi_await_recv(baechi_context *context, int32_t queue, int32_t seq) {
  if (context->rehearses)
    return 0;
  return context->exchange.await(*context, Side::Receiver, queue, seq);
}

int32_t baechi_borrow(baechi_context *context, int32_t queue, int32_t seq,
                      const void **source) {
  if (context->rehearses) {
    *source = context->standIn;
    return 0;
  }
  return context->exchange.borrow(*context, queue, seq, source);
}

int32_t baechi_give_back(baechi_context *context, int32_t queue, int32_t seq) {
  if (context->rehearses)
    return 0;
  return context->exchange.giveBack(*context, queue, seq);
}

const void *baechi_argument(baechi_context *context, int32_t argument,
                            const void *place) {
  const void *lent = context->exchange.lentArgument(argument);
  return lent ? lent : place;
}

void baechi_operator_begin(baechi_context *context, int32_t op) {
  context->exchange.beginOperator(*context, op);
}

void baechi_operator_end(baechi_context *context, int32_t op) {
  context->exchange.endOperator(*context, op);
}

int32_t baechi_host_call(baechi_context *context, const char *name,
                         void *const *places) {
  return context->exchange.callHost(*context, name, places);
}

int32_t baechi_fail(baechi_context *context, const char *reason) {
  // It looks at data that are not there yet.
  if (context->rehearses)
    return Exchange::Stop;
  return context->exchange.fail(*context,
                                {reason ? reason : "no reason given"});
}

thread_local baechi_context *baechi::runtime::thisDevice = nullptr;

void baechi_divided_by_zero(void) {
  if (thisDevice)
    baechi_fail(thisDevice, "an integer is divided by zero");
}
