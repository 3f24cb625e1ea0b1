//===- Boxes.cpp - Parts of tensors -----------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/Boxes.h"

#include <algorithm>

using namespace baechi::placement;

Box Box::whole(const std::vector<int64_t> &shape) {
  Box box;
  for (int64_t extent : shape)
    box.ranges.emplace_back(0, extent);
  return box;
}

int64_t Box::volume() const {
  int64_t product = 1;
  for (auto [begin, end] : ranges)
    product *= end - begin;
  return product;
}

bool Box::meets(const Box &other) const {
  for (size_t d = 0; d < ranges.size(); ++d)
    if (std::max(ranges[d].first, other.ranges[d].first) >=
        std::min(ranges[d].second, other.ranges[d].second))
      return false;
  return true;
}

bool Box::contains(const Box &other) const {
  for (size_t d = 0; d < ranges.size(); ++d)
    if (other.ranges[d].first < ranges[d].first ||
        other.ranges[d].second > ranges[d].second)
      return false;
  return true;
}

Layout::Layout(const Cut &cut, const std::vector<int64_t> &shape,
               int32_t pieces)
    : pieces(pieces) {
  if (cut.along < 0) {
    boxes.push_back(Box::whole(shape));
    return;
  }
  std::vector<int64_t> sizes = cut.sizes;
  // Even slices, the longer ones first.
  if (sizes.empty())
    for (int32_t i = 0; i < pieces; ++i)
      sizes.push_back(shape[cut.along] / pieces +
                      (i < shape[cut.along] % pieces ? 1 : 0));
  int64_t begin = 0;
  for (int64_t size : sizes) {
    boxes.push_back(Box::whole(shape));
    boxes.back().ranges[cut.along] = {begin, begin + size};
    begin += size;
  }
}

std::vector<Box>
baechi::placement::atoms(const Box &box,
                         const std::vector<const Box *> &readers) {
  std::vector<Box> found = {{}};
  for (size_t d = 0; d < box.ranges.size(); ++d) {
    auto [begin, end] = box.ranges[d];
    std::vector<int64_t> points = {begin, end};
    for (const Box *reader : readers)
      for (int64_t point : {reader->ranges[d].first, reader->ranges[d].second})
        if (begin < point && point < end)
          points.push_back(point);
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    std::vector<Box> longer;
    for (const Box &prefix : found)
      for (size_t k = 0; k + 1 < points.size(); ++k) {
        longer.push_back(prefix);
        longer.back().ranges.emplace_back(points[k], points[k + 1]);
      }
    found = std::move(longer);
  }
  return found;
}
