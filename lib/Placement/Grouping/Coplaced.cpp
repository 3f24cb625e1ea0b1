//===- Coplaced.cpp - What bounded co-placement keeps together -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Grouping/Coplaced.h"
#include "Grouping/Clusters.h"
#include "Grouping/Coarsen.h"

#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace baechi::placement;
using namespace baechi::placement::grouping;

std::vector<int32_t> baechi::placement::coplacedGroups(const Problem &problem,
                                                       std::string &error) {
  try {
    if (auto errors = check(problem); !errors.empty()) {
      error = fmt::format("{}", fmt::join(errors, "\n"));
      return {};
    }
    Model model(problem);
    Coarsening coarsening = Coarsening::identity(model);
    coplace(model, coarsening);
    std::vector<int32_t> groups(model.numNodes);
    for (int32_t i = 0; i < model.numNodes; ++i)
      groups[i] = coarsening.unit[model.unit[i]];
    return groups;
  } catch (const std::exception &e) {
    error = fmt::format("grouping failed: {}", e.what());
    return {};
  }
}
