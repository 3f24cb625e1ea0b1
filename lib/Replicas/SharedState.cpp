//===- SharedState.cpp - Arrays that replicas see late --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/SharedState.h"

#include <algorithm>

using namespace baechi::replicas;
using baechi::store::ParameterStore;

namespace {

/// Numbers of a row, which the store sends at once.
constexpr size_t widest = 1024;

size_t widthOf(const SharedArray &array) {
  return std::min(array.elements, widest);
}

size_t rowsOf(const SharedArray &array) {
  return (array.elements + widest - 1) / widest;
}

template <typename Call> std::string guarded(Call &&call) {
  try {
    call();
    return "";
  } catch (const std::exception &error) {
    return error.what();
  }
}

/// Calls \p row with each row's number, where its elements are and how many;
/// the last row may have fewer.
template <typename Float, typename Row>
void forRows(const SharedArray &array, Float *values, Row &&row) {
  size_t width = widthOf(array), whole = array.elements / width;
  for (size_t i = 0; i < whole; ++i)
    row(i, values + i * width, width);
  if (size_t rest = array.elements - whole * width)
    row(whole, values + whole * width, rest);
}

} // namespace

std::unique_ptr<SharedState>
SharedState::create(const std::vector<SharedArray> &arrays,
                    const store::StoreOptions &options, std::string &error) {
  std::unique_ptr<SharedState> made(new SharedState);
  error = guarded([&] {
    std::vector<store::TableShape> tables;
    for (const SharedArray &array : arrays)
      tables.push_back({array.name, rowsOf(array), widthOf(array)});
    made->store = std::make_unique<ParameterStore>(std::move(tables), options);
  });
  made->arrays = arrays;
  return error.empty() ? std::move(made) : nullptr;
}

std::string SharedState::set(size_t array, const std::vector<float> &values) {
  return guarded([&] {
    std::vector<float> whole(widthOf(arrays[array]));
    forRows(arrays[array], values.data(),
            [&](size_t row, const float *from, size_t count) {
              std::fill(std::copy_n(from, count, whole.begin()), whole.end(),
                        0.0f);
              store->set(array, row, whole.data());
            });
  });
}

std::string SharedState::see(int replica, size_t array,
                             std::vector<float> &values) {
  values.resize(arrays[array].elements);
  return guarded([&] {
    std::vector<float> whole(widthOf(arrays[array]));
    forRows(arrays[array], values.data(),
            [&](size_t row, float *to, size_t count) {
              store->get(replica, array, row, whole.data());
              std::copy_n(whole.begin(), count, to);
            });
  });
}

std::string SharedState::change(int replica, size_t array,
                                const std::vector<float> &before,
                                const std::vector<float> &after) {
  auto replicas = float(store->options().workers);
  return guarded([&] {
    std::vector<float> whole(widthOf(arrays[array]));
    forRows(arrays[array], after.data(),
            [&](size_t row, const float *to, size_t count) {
              const float *from = before.data() + (to - after.data());
              std::fill(std::transform(to, to + count, from, whole.begin(),
                                       [&](float next, float seen) {
                                         return (next - seen) / replicas;
                                       }),
                        whole.end(), 0.0f);
              store->inc(replica, array, row, whole.data());
            });
  });
}

std::string SharedState::end(int replica) {
  return guarded([&] { store->clock(replica); });
}

void SharedState::finish(int replica) { store->finish(replica); }

void SharedState::lose(int replica, const std::string &why) {
  store->lose(replica, why);
}

std::string SharedState::drain() {
  return guarded([&] { store->drain(); });
}

std::string SharedState::read(size_t array, std::vector<float> &values) const {
  values.resize(arrays[array].elements);
  return guarded([&] {
    std::vector<float> whole(widthOf(arrays[array]));
    forRows(arrays[array], values.data(),
            [&](size_t row, float *to, size_t count) {
              store->read(array, row, whole.data());
              std::copy_n(whole.begin(), count, to);
            });
  });
}
