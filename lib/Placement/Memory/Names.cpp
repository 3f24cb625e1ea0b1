//===- Text.cpp - Bytes and culprits in words -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Names.h"
#include "Baechi/Placement/Model/Text.h"

#include <fmt/format.h>

using namespace baechi::placement;
using namespace baechi::placement::memory;

std::string baechi::placement::memory::sizeText(__int128 bytes,
                                                const char *what) {
  std::string text = fmt::format("{}{}", bytes, what);
  if (bytes >= 1024)
    text += fmt::format(" ({})", bytesText(static_cast<double>(bytes), 2));
  return text;
}

std::string baechi::placement::memory::nodeName(const Problem &problem,
                                                int32_t i) {
  return fmt::format("operator {} '{}'", i, problem.graph.ops[i].name);
}

std::string baechi::placement::memory::unitName(const Problem &problem,
                                                const Model &model, Unit u) {
  int32_t first = model.members[u].front();
  if (const auto &group = problem.graph.ops[first].group)
    return fmt::format("group '{}' ({} operators)", *group,
                       model.members[u].size());
  return nodeName(problem, first);
}
