//===- CanMeasure.cpp - Kernels that run on any operands -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CanMeasure.h"
#include "DataAccesses.h"
#include "Operands.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/STLExtras.h"
#include <fstream>
#include <limits>

using namespace mlir;
using namespace baechi;

namespace {
/// The share of the available memory that operands may take.
constexpr int64_t kMemoryShare = 4;

/// What the system can give without swapping; no limit where it does not say.
int64_t availableMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    StringRef text = line;
    int64_t kibibytes;
    if (text.consume_front("MemAvailable:") &&
        !text.trim().consumeInteger(10, kibibytes))
      return kibibytes << 10;
  }
  return std::numeric_limits<int64_t>::max();
}

/// Invented divisors may be zero.
bool dividesByData(Operation *op) {
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
           arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
    return false;
  return getConstantIntValue(op->getOperand(1)).value_or(0) == 0;
}

/// Invented operands may make the loop endless.
bool loopsByData(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return isa<scf::WhileOp>(op) ||
         (loop && getConstantIntValue(loop.getStep()).value_or(0) == 0);
}

bool hasEmptyTensor(TypeRange types) {
  return llvm::any_of(types, [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && llvm::is_contained(tensor.getShape(), 0);
  });
}
} // namespace

std::string baechi::whyNotMeasured(func::FuncOp kernel) {
  bool divides = false, loops = false;
  bool empty = hasEmptyTensor(kernel.getArgumentTypes()) ||
               hasEmptyTensor(kernel.getResultTypes());
  kernel.walk([&](Operation *op) {
    divides |= dividesByData(op);
    loops |= loopsByData(op);
    empty |= hasEmptyTensor(op->getResultTypes());
  });
  if (divides)
    return "it divides integers by others that its operands decide";
  if (loops)
    return "its operands decide how often a loop runs";
  if (empty)
    return "it has a tensor without elements";
  if (findDataAccesses(kernel).computed)
    return "it computes positions in a tensor from its operands";
  if (Operands::bytesOfSet(kernel) > availableMemory() / kMemoryShare)
    return "its operands and results would take more than a quarter of the "
           "available memory";
  return {};
}
