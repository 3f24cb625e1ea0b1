//===- Report.h - A placement in words and numbers --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_REPORT_H
#define BAECHI_TOOLS_BAECHI_PLACE_REPORT_H

#include "Baechi/Placement/Place.h"

#include <nlohmann/json.hpp>

/// For a person.
std::string reportText(const baechi::placement::Problem &problem,
                       const baechi::placement::PlaceOptions &options,
                       const baechi::placement::PlaceResult &result);

/// The same as data, with what was explained.
std::string reportJson(const baechi::placement::Problem &problem,
                       const baechi::placement::PlaceOptions &options,
                       const baechi::placement::PlaceResult &result,
                       const nlohmann::ordered_json &explanations);

#endif // BAECHI_TOOLS_BAECHI_PLACE_REPORT_H
