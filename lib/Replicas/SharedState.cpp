//===- SharedState.cpp - Arrays that replicas see late --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/SharedState.h"
#include "StateRows.h"

using namespace baechi::replicas;
using baechi::store::ParameterStore;

std::unique_ptr<SharedState>
SharedState::create(const std::vector<SharedArray> &arrays,
                    const store::StoreOptions &options, std::string &error) {
  std::unique_ptr<SharedState> made(new SharedState);
  error = guarded([&] {
    made->store = std::make_unique<ParameterStore>(tablesOf(arrays), options);
  });
  made->arrays = arrays;
  return error.empty() ? std::move(made) : nullptr;
}

std::string SharedState::set(size_t array, const std::vector<float> &values) {
  return guarded([&] {
    setRows(arrays[array], values, [&](size_t row, const float *whole) {
      store->set(array, row, whole);
    });
  });
}

std::string SharedState::see(int replica, size_t array,
                             std::vector<float> &values) {
  return guarded([&] {
    getRows(arrays[array], values, [&](size_t row, float *whole) {
      store->get(replica, array, row, whole);
    });
  });
}

std::string SharedState::change(int replica, size_t array,
                                const std::vector<float> &before,
                                const std::vector<float> &after) {
  return guarded([&] {
    setRows(arrays[array],
            changeOf(arrays[array], before, after, store->options().workers),
            [&](size_t row, const float *whole) {
              store->inc(replica, array, row, whole);
            });
  });
}

std::string SharedState::end(int replica) {
  return guarded([&] { store->clock(replica); });
}

std::string SharedState::finish(int replica) {
  return guarded([&] { store->finish(replica); });
}

void SharedState::lose(int replica, const std::string &why) {
  store->moveBack(replica); // if it is elsewhere
  store->lose(replica, why);
}

std::string SharedState::drain() {
  return guarded([&] { store->drain(); });
}

std::string SharedState::read(size_t array, std::vector<float> &values) const {
  return guarded([&] {
    getRows(arrays[array], values,
            [&](size_t row, float *whole) { store->read(array, row, whole); });
  });
}
