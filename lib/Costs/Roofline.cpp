//===- Roofline.cpp - Costs of operators by the roofline model -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Roofline.h"
#include <cmath>

using namespace mlir;
using namespace baechi;

int64_t Roofline::timeNs(const Work &work) const {
  double seconds =
      std::max(work.flops / flopsPerSecond, work.bytes / bytesPerSecond);
  return launchNs + static_cast<int64_t>(std::ceil(seconds * 1e9));
}

SmallVector<Roofline> baechi::defaultRooflines() {
  return {{"host", 50e9, 10e9, 200}, {"cuda", 10e12, 600e9, 5000}};
}

std::optional<SmallVector<Roofline>>
baechi::parseRooflines(StringRef text, std::string &error) {
  SmallVector<Roofline> rooflines;
  SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries) {
    SmallVector<StringRef> fields;
    entry.split(fields, ':');
    double gflops, gbs;
    int64_t launch;
    if (fields.size() != 4 || fields[0].empty() ||
        fields[1].getAsDouble(gflops) || fields[2].getAsDouble(gbs) ||
        fields[3].getAsInteger(10, launch) || !(gflops > 0) || !(gbs > 0) ||
        launch < 0) {
      error = ("roofline '" + entry +
               "' is not KIND:GFLOPS:GBS:LAUNCH_NS, like host:50:10:200")
                  .str();
      return std::nullopt;
    }
    rooflines.push_back({fields[0].str(), gflops * 1e9, gbs * 1e9, launch});
  }
  return rooflines;
}
