//===- FindRace.cpp - Blocks that touch the same elements ------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Schedule.h"
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

using namespace baechi::loops;

namespace {
/// Calls \p touch with every element, by its number, that \p access may have.
void forElements(const Array &array, const Access &access,
                 const std::vector<int64_t> &key,
                 const std::function<void(int64_t)> &touch) {
  std::function<void(size_t, int64_t)> walk = [&](size_t i, int64_t base) {
    if (i == array.extents.size())
      return touch(base);
    const Subscript &subscript = access.subscripts[i];
    bool at = subscript.kind == Subscript::Kind::At;
    int64_t first = at ? subscript.at.of(key) : 0;
    int64_t size = at ? subscript.size : array.extents[i];
    for (int64_t x = first; x < first + size; ++x)
      walk(i + 1, base * array.extents[i] + x);
  };
  walk(0, 0);
}

/// Who has touched an element in a clock.
struct Touch {
  int32_t block = -1; ///< the first that did
  bool written = false, byOthers = false;
};
} // namespace

std::optional<std::string>
baechi::loops::findRace(const Loop &loop, const Verdict &verdict,
                        const Schedule &schedule,
                        const std::vector<std::vector<int64_t>> &entries) {
  std::map<std::vector<int32_t>, int32_t> blockOf;
  for (size_t block = 0; block < schedule.blocks.size(); ++block)
    blockOf[schedule.blocks[block].parts] = static_cast<int32_t>(block);
  // By clock, array, element.
  std::map<std::tuple<int32_t, int32_t, int64_t>, Touch> touched;
  std::optional<std::string> race;
  for (const std::vector<int64_t> &key : entries) {
    auto found = blockOf.find(schedule.partsOf(key));
    if (found == blockOf.end())
      return "an entry is in no block";
    int32_t block = found->second;
    for (const Access &access : loop.accesses) {
      const Array &array = loop.arrays[access.array];
      if (array.buffered || std::count(verdict.reduced.begin(),
                                       verdict.reduced.end(), access.array))
        continue;
      bool writes = access.kind != AccessKind::Read;
      forElements(array, access, key, [&](int64_t element) {
        Touch &touch =
            touched[{schedule.blocks[block].clock, access.array, element}];
        if (touch.block < 0)
          touch.block = block;
        touch.byOthers |= touch.block != block;
        touch.written |= writes;
        if (touch.byOthers && touch.written)
          race = "blocks " + std::to_string(touch.block) + " and " +
                 std::to_string(block) + " at element " +
                 std::to_string(element) + " of '" + array.name + "'";
      });
      if (race)
        return race;
    }
  }
  return std::nullopt;
}
