//===- Roofline.cpp - Costs of operators by the roofline model -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Roofline.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <cmath>

using namespace mlir;
using namespace baechi;

namespace {
/// Arithmetic operations of a scalar body.
double arithmeticOf(Region &region) {
  double operations = 0;
  region.walk([&](Operation *op) {
    if (op->getNumRegions() == 0 && op->getNumResults() == 1 &&
        op->getNumOperands() > 0 && !op->hasTrait<OpTrait::IsTerminator>())
      ++operations;
  });
  return operations;
}

double elementsOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped && shaped.hasStaticShape() ? shaped.getNumElements() : 1;
}

double flopsOf(Operation &op);

double flopsOf(Region &region) {
  double flops = 0;
  for (Block &block : region)
    for (Operation &op : block)
      flops += flopsOf(op);
  return flops;
}

double flopsOf(Operation &op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    double points = 1;
    for (int64_t range : linalgOp.getStaticLoopRanges())
      points *= ShapedType::isDynamic(range) ? 1 : range;
    return points * std::max(1.0, arithmeticOf(op.getRegion(0)));
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    return flopsOf(loop.getRegion()) * (trips ? trips->getSExtValue() : 1);
  }
  double flops = 0;
  for (Region &region : op.getRegions())
    flops += flopsOf(region);
  return flops;
}
} // namespace

Work baechi::workOf(Operation *op) {
  if (auto stated = dyn_cast<CostOpInterface>(op))
    if (std::optional<Work> work = stated.getWork())
      return *work;
  Work work;
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      work.bytes += tensorBytes(type, false).value_or(0);
  if (func::FuncOp kernel = kernelOf(op)) {
    if (!kernel.isDeclaration())
      work.flops = flopsOf(kernel.getBody());
  } else {
    work.flops = flopsOf(*op);
  }
  // An operation that is no loop nest does something once an element.
  if (work.flops == 0)
    for (Type type : op->getResultTypes())
      work.flops += elementsOf(type);
  return work;
}

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
