//===- UpdateLog.cpp - Updates that wait to be sent -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/UpdateLog.h"

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace baechi::store;

namespace {
/// Of the mean magnitude: what a value counts at least as.
constexpr double leastShare = 1e-3;
} // namespace

uint64_t SplitMix::next() {
  uint64_t mixed = (state += 0x9e3779b97f4a7c15);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

RowValues::RowValues(size_t rows, size_t width, size_t weighed)
    : width(width), weighed(weighed), values(rows * width, 0.0f) {}

double RowValues::weigh(size_t at, const float *update, SendOrder order) const {
  const float *value = row(at);
  float magnitude = 0;
  for (size_t i = 0; i < width; ++i)
    magnitude += std::fabs(update[i]);
  if (!std::isfinite(magnitude))
    return magnitude;
  double importance = magnitude;
  if (order == SendOrder::RelativeMagnitude) {
    float least =
        float(leastShare * sumOfMagnitudes / double(values.size())) + 1e-12f;
    float relative = 0;
    for (size_t i = 0; i < weighed; ++i)
      relative += std::fabs(update[i]) / std::max(std::fabs(value[i]), least);
    importance = relative;
  }
  return std::isfinite(importance) ? importance
                                   : std::numeric_limits<float>::max();
}

double RowValues::add(size_t at, const float *update, SendOrder order) {
  double importance = weigh(at, update, order);
  if (!std::isfinite(importance))
    return importance;
  float *value = row(at), change = 0;
  for (size_t i = 0; i < width; ++i) {
    float after = value[i] + update[i];
    change += std::fabs(after) - std::fabs(value[i]);
    value[i] = after;
  }
  sumOfMagnitudes += change;
  return importance;
}

void RowValues::set(size_t at, const float *value) {
  float *old = row(at);
  for (size_t i = 0; i < width; ++i) {
    sumOfMagnitudes += std::fabs(value[i]) - std::fabs(old[i]);
    old[i] = value[i];
  }
}

UpdateLog::UpdateLog(size_t rows, size_t width, std::atomic<uint64_t> &ages)
    : width(width), sums(rows * width, 0.0f), states(rows),
      places(rows, nowhere), ages(&ages) {}

void UpdateLog::add(size_t at, const float *update, double importance,
                    int64_t clock) {
  State &state = states[at];
  if (places[at] == nowhere) {
    places[at] = uint32_t(dirty.size());
    dirty.push_back(uint32_t(at));
    state = {0, clock, ages->fetch_add(1, std::memory_order_relaxed)};
  }
  state.importance += importance;
  state.clock = std::min(state.clock, clock);
  float *sum = sums.data() + at * width;
  for (size_t i = 0; i < width; ++i)
    sum[i] += update[i];
}

int64_t UpdateLog::take(size_t at, float *sum) {
  float *waiting = sums.data() + at * width;
  std::copy_n(waiting, width, sum);
  std::fill_n(waiting, width, 0.0f);
  uint32_t place = places[at];
  dirty[place] = dirty.back();
  places[dirty[place]] = place;
  dirty.pop_back();
  places[at] = nowhere;
  return states[at].clock;
}

void baechi::store::keepFirst(std::vector<Candidate> &rows, SendOrder order,
                              int64_t must, size_t bytes, Turn &turn) {
  auto place = [](const Candidate &row) {
    return (uint64_t(row.table) << 32) + row.row;
  };
  if (order == SendOrder::Random)
    for (Candidate &row : rows)
      row.importance = turn.random.uniform();
  if (order == SendOrder::RoundRobin)
    for (Candidate &row : rows)
      row.age = place(row) - turn.last - 1; // modulo 2^64: behind the last
  size_t all = 0;
  for (const Candidate &row : rows)
    all += row.bytes;
  if (all <= bytes)
    return; // sent together
  bool byAge = order == SendOrder::Age || order == SendOrder::RoundRobin;
  auto sooner = [&](const Candidate &a, const Candidate &b) {
    auto key = [&](const Candidate &row) {
      bool first = row.clock < must;
      return std::tuple(!first, byAge ? row.age : 0,
                        byAge ? 0 : -row.importance, row.table, row.row);
    };
    return key(a) < key(b);
  };
  // The rows of one round are few of many: sort no others. Widths differ by
  // table, so the first guess may hold too few bytes.
  size_t kept = 0, sum = 0;
  for (size_t sorted = 0; kept < rows.size();) {
    if (kept == sorted) {
      size_t guess = kept + bytes / rows.front().bytes + 1;
      sorted = std::min(rows.size(), guess);
      std::nth_element(rows.begin() + kept, rows.begin() + (sorted - 1),
                       rows.end(), sooner);
      std::sort(rows.begin() + kept, rows.begin() + sorted, sooner);
    }
    if (kept > 0 && sum + rows[kept].bytes > bytes)
      break;
    sum += rows[kept++].bytes;
  }
  rows.resize(kept);
  if (order == SendOrder::RoundRobin)
    turn.last = place(rows.back());
}
