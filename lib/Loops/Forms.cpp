//===- Forms.cpp - Sums of keys that blocks may be cut along ---*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include <algorithm>
#include <functional>

using namespace baechi::loops;

namespace {
/// The largest coefficient that the sum of a transformed loop may have: there
/// are (2 * most + 1)^keys sums.
int64_t mostOfForm(const Loop &loop) { return loop.keys.size() > 4 ? 1 : 2; }
} // namespace

Form baechi::loops::unit(const Loop &loop, int32_t key) {
  Form form(loop.keys.size(), 0);
  form[key] = 1;
  return form;
}

int64_t baechi::loops::bytesOf(const Array &array) {
  int64_t bytes = array.elementBytes;
  for (int64_t extent : array.extents)
    bytes *= std::max<int64_t>(extent, 1);
  return bytes;
}

int64_t baechi::loops::homeBytes(const Loop &loop, const Form &form) {
  int64_t bytes = 0;
  for (size_t array = 0; array < loop.arrays.size(); ++array)
    if (homeOf(loop, array, form))
      bytes += bytesOf(loop.arrays[array]);
  return bytes;
}

bool baechi::loops::isSame(const Loop &loop, const Form &form) {
  for (size_t key = 0; key < form.size(); ++key)
    if (form[key] && loop.keys[key].upper - loop.keys[key].lower > 1)
      return false;
  return true;
}

std::vector<std::vector<int32_t>> baechi::loops::subsets(const Loop &loop,
                                                         size_t size) {
  std::vector<std::vector<int32_t>> found;
  std::vector<int32_t> chosen;
  std::function<void(int32_t)> extend = [&](int32_t next) {
    if (chosen.size() == size) {
      found.push_back(chosen);
      return;
    }
    for (; next < static_cast<int32_t>(loop.keys.size()); ++next) {
      if (isSame(loop, unit(loop, next)))
        continue;
      chosen.push_back(next);
      extend(next + 1);
      chosen.pop_back();
    }
  };
  extend(0);
  std::vector<int64_t> bytes;
  for (size_t key = 0; key < loop.keys.size(); ++key)
    bytes.push_back(homeBytes(loop, unit(loop, key)));
  auto total = [&](const std::vector<int32_t> &keys) {
    int64_t sum = 0;
    for (int32_t key : keys)
      sum += bytes[key];
    return sum;
  };
  for (std::vector<int32_t> &keys : found)
    std::stable_sort(keys.begin(), keys.end(),
                     [&](int32_t a, int32_t b) { return bytes[a] > bytes[b]; });
  std::stable_sort(
      found.begin(), found.end(),
      [&](const auto &a, const auto &b) { return total(a) > total(b); });
  return found;
}

std::vector<Form> baechi::loops::unitsOf(const Loop &loop,
                                         const std::vector<int32_t> &keys) {
  std::vector<Form> forms;
  for (int32_t key : keys)
    forms.push_back(unit(loop, key));
  return forms;
}

std::vector<Form> baechi::loops::simpleForms(const Loop &loop, bool units) {
  std::vector<Form> found;
  int64_t largest = mostOfForm(loop);
  Form form(loop.keys.size(), -largest);
  auto weight = [](const Form &of) {
    int64_t sum = 0;
    for (int64_t c : of)
      sum += c < 0 ? -c : c;
    return sum;
  };
  while (true) {
    auto first =
        std::find_if(form.begin(), form.end(), [](int64_t c) { return c; });
    if (first != form.end() && *first > 0 && (units || weight(form) > 1))
      found.push_back(form);
    size_t k = 0;
    while (k < form.size() && form[k] == largest)
      form[k++] = -largest;
    if (k == form.size())
      break;
    ++form[k];
  }
  std::stable_sort(
      found.begin(), found.end(),
      [&](const Form &a, const Form &b) { return weight(a) < weight(b); });
  return found;
}

bool baechi::loops::areParallel(const Form &a, const Form &b) {
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (a[i] * b[j] != a[j] * b[i])
        return false;
  return true;
}
