//===- Explain.h - Explanations of operators --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_EXPLAIN_H
#define BAECHI_TOOLS_BAECHI_PLACE_EXPLAIN_H

#include "Baechi/Placement/Explain.h"

#include <nlohmann/json.hpp>

/// Explanations for a person, and the same as data.
struct Explanations {
  std::string text;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
};

/// Explains the operators that each of \p patterns names; all patterns have
/// been found by `findOperators`.
Explanations explainAll(const baechi::placement::Problem &problem,
                        const baechi::placement::Placement &placement,
                        baechi::placement::Objective objective,
                        const std::vector<std::string> &patterns);

#endif // BAECHI_TOOLS_BAECHI_PLACE_EXPLAIN_H
