//===- Text.cpp - Loops and verdicts in words ------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Verdict.h"
#include <algorithm>

using namespace baechi::loops;

std::string baechi::loops::text(const Loop &loop, const Affine &sum) {
  std::string made;
  auto term = [&](int64_t number, const std::string &of) {
    int64_t size = number < 0 ? -number : number;
    made +=
        number < 0 ? (made.empty() ? "-" : " - ") : (made.empty() ? "" : " + ");
    made += of.empty()  ? std::to_string(size)
            : size == 1 ? of
                        : std::to_string(size) + " * " + of;
  };
  for (size_t k = 0; k < sum.coefficients.size(); ++k)
    if (sum.coefficients[k] != 0)
      term(sum.coefficients[k], loop.keys[k].name);
  for (size_t s = 0; s < sum.symbols.size(); ++s)
    if (sum.symbols[s] != 0)
      term(sum.symbols[s], loop.symbols[s]);
  if (sum.constant != 0 || made.empty())
    term(sum.constant, "");
  return made;
}

namespace {
std::string join(const std::vector<std::string> &words, const char *last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return text;
}

std::string text(const Distance &distance) {
  auto [least, most] = distance;
  if (!least && !most)
    return "any";
  if (!most)
    return ">=" + std::to_string(*least);
  if (!least)
    return "<=" + std::to_string(*most);
  if (*least == *most)
    return std::to_string(*least);
  return std::to_string(*least) + ".." + std::to_string(*most);
}

std::string nameOf(const Loop &loop, const Access &access) {
  std::string made = loop.arrays[access.array].name;
  for (size_t i = 0; i < access.subscripts.size(); ++i) {
    const Subscript &subscript = access.subscripts[i];
    made += i == 0 ? "[" : ", ";
    if (subscript.kind == Subscript::Kind::All) {
      made += ":";
    } else if (subscript.kind == Subscript::Kind::Unknown) {
      made += "?";
    } else {
      made += text(loop, subscript.at);
      if (subscript.size != 1)
        made += " : +" + std::to_string(subscript.size);
    }
  }
  return made + (access.subscripts.empty() ? "" : "]");
}

bool isUnknown(const Access &access) {
  return std::any_of(access.subscripts.begin(), access.subscripts.end(),
                     [](const Subscript &subscript) {
                       return subscript.kind == Subscript::Kind::Unknown;
                     });
}

/// The least and the most of \p at over the keys.
std::pair<int64_t, int64_t> rangeOf(const Loop &loop, const Affine &at) {
  std::pair<int64_t, int64_t> range(at.constant, at.constant);
  for (size_t k = 0; k < at.coefficients.size(); ++k) {
    int64_t c = at.coefficients[k];
    int64_t a = c * loop.keys[k].lower, b = c * (loop.keys[k].upper - 1);
    range.first += std::min(a, b);
    range.second += std::max(a, b);
  }
  return range;
}
} // namespace

std::string baechi::loops::check(const Loop &loop) {
  // What the sums above can hold, and more than any memory.
  constexpr int64_t kMost = int64_t(1) << 40;
  constexpr int64_t kMostCoefficient = int64_t(1) << 20;
  if (loop.keys.empty())
    return "the loop has no keys: give it one at least";
  for (const Key &key : loop.keys) {
    if (key.upper <= key.lower)
      return "key '" + key.name + "' has no values: [" +
             std::to_string(key.lower) + ", " + std::to_string(key.upper) +
             ") is empty";
    if (key.lower < -kMost || key.upper > kMost)
      return "key '" + key.name + "' is beyond 2^40";
  }
  for (const Access &access : loop.accesses) {
    if (access.array < 0 ||
        access.array >= static_cast<int32_t>(loop.arrays.size()))
      return "an access is of array " + std::to_string(access.array) +
             ", of which there is none";
    const Array &array = loop.arrays[access.array];
    std::string what = text(loop, access);
    if (access.subscripts.size() != array.extents.size())
      return what + ": it has " + std::to_string(access.subscripts.size()) +
             " subscripts, the array " + std::to_string(array.extents.size()) +
             " dimensions";
    for (size_t i = 0; i < access.subscripts.size(); ++i) {
      const Subscript &subscript = access.subscripts[i];
      if (subscript.kind != Subscript::Kind::At)
        continue;
      std::vector<int64_t> factors = subscript.at.coefficients;
      if (factors.size() > loop.keys.size() ||
          subscript.at.symbols.size() > loop.symbols.size())
        return what + ": a subscript has more coefficients than there are keys";
      factors.insert(factors.end(), subscript.at.symbols.begin(),
                     subscript.at.symbols.end());
      if (std::any_of(factors.begin(), factors.end(), [](int64_t c) {
            return c > kMostCoefficient || c < -kMostCoefficient;
          }))
        return what + ": a coefficient is beyond 2^20";
      bool known =
          std::all_of(subscript.at.symbols.begin(), subscript.at.symbols.end(),
                      [](int64_t c) { return c == 0; });
      // What restricts the keys is not looked at: positions may be less far.
      if (!known || !access.always || !loop.domain.empty() ||
          array.extents[i] < 0)
        continue;
      auto [least, most] = rangeOf(loop, subscript.at);
      if (least < 0 || most + subscript.size > array.extents[i])
        return what + ": with the keys' bounds that is from " +
               std::to_string(least) + " to " +
               std::to_string(most + subscript.size - 1) + ", and dimension " +
               std::to_string(i) + " of '" + array.name + "' has " +
               std::to_string(array.extents[i]) +
               " elements: make the bounds of the keys narrower" +
               (least < 0 ? ", or add to the position, which does not count "
                            "from the end"
                          : ", or the array larger");
    }
  }
  return "";
}

std::string baechi::loops::text(const Dependence &dependence) {
  std::vector<std::string> words;
  for (const Distance &distance : dependence.distances)
    words.push_back(::text(distance));
  return "(" + join(words, ", ") + ")";
}

std::string baechi::loops::text(const Loop &loop, const Access &access) {
  std::string done = access.kind == AccessKind::Read    ? "read"
                     : access.kind == AccessKind::Write ? "written"
                     : access.combiner.empty()          ? "added to"
                     : access.combiner == kOneNumber
                         ? "set to one number"
                         : "updated by " + access.combiner;
  return nameOf(loop, access) + " is " + done +
         (access.place.empty() ? "" : " (" + access.place + ")");
}

std::string baechi::loops::schemeText(const Loop &loop,
                                      const Verdict &verdict) {
  std::vector<std::string> names;
  for (int32_t key : verdict.keys)
    names.push_back(loop.keys[key].name);
  std::string made;
  switch (verdict.scheme) {
  case Scheme::Independent:
    made = "independent";
    break;
  case Scheme::Disjoint:
    made = std::to_string(names.size()) + "D over " + join(names, " and ");
    break;
  case Scheme::Wavefront:
    made = "wavefront over " + join(names, " and ");
    break;
  case Scheme::Skewed:
    made = "1D over " + ::text(loop, Affine{verdict.form, 0});
    break;
  case Scheme::Timed:
    made = "one after the other in " + ::text(loop, Affine{verdict.form, 0}) +
           ", those of one value at once";
    break;
  case Scheme::Serial:
    made = "serial";
    break;
  }
  std::vector<std::string> sums, copies;
  for (int32_t array : verdict.reduced) {
    auto access =
        std::find_if(loop.accesses.begin(), loop.accesses.end(),
                     [&](const Access &of) { return of.array == array; });
    const std::string &how = access->combiner;
    bool isCopied = how == kOneNumber || how == kMinimum || how == kMaximum;
    (isCopied ? copies : sums).push_back("'" + loop.arrays[array].name + "'");
  }
  if (!sums.empty())
    made += " with sums of " + join(sums, " and ");
  if (!copies.empty())
    made += (sums.empty() ? " with copies of " : " and copies of ") +
            join(copies, " and ");
  return made;
}

std::string baechi::loops::explain(const Loop &loop, const Verdict &verdict) {
  std::string made = schemeText(loop, verdict);
  if (!verdict.obstacle)
    return made;
  const Access &from = loop.accesses[verdict.obstacle->first];
  const Access &to = loop.accesses[verdict.obstacle->second];
  std::string name = loop.arrays[from.array].name;
  made += ", no more: " + text(loop, from);
  made += verdict.obstacle->first == verdict.obstacle->second
              ? ", by several entries at once"
              : ", " + text(loop, to);
  if (verdict.scheme != Scheme::Serial)
    return made;
  bool adds = std::all_of(
      loop.accesses.begin(), loop.accesses.end(), [&](const Access &access) {
        return access.array != from.array || access.kind == AccessKind::Add;
      });
  bool unknown = isUnknown(from) || isUnknown(to);
  if (unknown)
    made += ", at positions that depend on data";
  // What is ordered has no buffers.
  if (adds && !loop.reassociate && !loop.arrays[from.array].anyOrder)
    return made + "; allow its sums another order (reassociate)" +
           (loop.ordered ? "" : ", or buffer '" + name + "'");
  if (loop.ordered)
    return made + "; if any order of the entries is right, say so (unordered)";
  return made + "; buffer '" + name + "' to let its writes be seen late";
}
