//===- ServedState.cpp - Answers to replicas elsewhere --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/SharedState.h"
#include "StateMessages.h"
#include "StateRows.h"

#include <cstring>

using namespace baechi::replicas;
using namespace baechi::store;

std::string SharedState::answer(int replica, std::string_view asked,
                                bool &asksMore) {
  StateQuestion question;
  StateAnswer answer;
  std::string more;
  std::string why = guarded([&] {
    if (asked.size() < sizeof(question))
      throw StoreError("a question of another version of Baechi");
    std::memcpy(&question, asked.data(), sizeof(question));
    std::string_view given = asked.substr(sizeof(question));
    auto array = size_t(question.array);
    switch (question.kind) {
    case StateQuestion::Begin: {
      int64_t clock = 0, fresh = 0;
      if (!store->moveElsewhere(replica, clock, fresh))
        throw StoreError("a replica in another process cannot share its rows: "
                         "make the store with processes = 0");
      answer.number = fresh;
      return;
    }
    case StateQuestion::Fetch: {
      size_t width = store->numbersOf(array),
             rows = store->tables()[array].rows;
      std::vector<float> numbers(rows * width);
      for (size_t row = 0; row < rows; ++row)
        store->fetch(replica, array, row, numbers.data() + row * width);
      more.assign(reinterpret_cast<const char *>(numbers.data()),
                  numbers.size() * sizeof(float));
      return;
    }
    case StateQuestion::Sync:
      store->receive(replica, SentRows::parse(given), question.sent,
                     question.clock);
      more = store->send(replica, question.room, answer.number).text();
      return;
    case StateQuestion::Wait:
      answer.number = store->await(replica, question.clock, question.limit,
                                   question.waited);
      return;
    case StateQuestion::Check: {
      auto workers = size_t(store->options().workers);
      std::vector<float> counts(given.size() / sizeof(float));
      std::memcpy(counts.data(), given.data(), counts.size() * sizeof(float));
      for (size_t row = 0; (row + 1) * workers <= counts.size(); ++row)
        store->checkRead(replica, array, row, question.clock,
                         counts.data() + row * workers);
      return;
    }
    case StateQuestion::Finish: {
      std::vector<uint64_t> reads(given.size() / sizeof(uint64_t));
      std::memcpy(reads.data(), given.data(), reads.size() * sizeof(uint64_t));
      asksMore = false;
      store->countReads(replica, reads);
      store->moveBack(replica);
      store->finish(replica);
      return;
    }
    case StateQuestion::Lose:
      asksMore = false;
      lose(replica, std::string(given));
      return;
    }
    throw StoreError("a question of another version of Baechi");
  });
  if (!why.empty()) {
    answer.failed = 1;
    more = std::move(why);
  }
  std::string text(reinterpret_cast<const char *>(&answer), sizeof(answer));
  return text + more;
}
