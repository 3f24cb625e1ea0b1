//===- BorderPlaces.h - Where arguments and results lie ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_DEVICES_BORDERPLACES_H
#define BAECHI_LIB_CONVERSION_DEVICES_BORDERPLACES_H

#include "LendableArguments.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/JSON.h"

namespace baechi {

/// Where the step's arguments and results lie in the devices' arenas, as a
/// manifest describes them.
class BorderPlaces {
public:
  explicit BorderPlaces(mlir::func::FuncOp whole) : whole(whole) {}

  /// What a device's part of the step holds.
  void add(mlir::func::FuncOp step, int64_t device);

  /// Every argument and every result is somewhere.
  mlir::LogicalResult checkPlaces();
  /// What is stored in pieces is updated by the same pieces.
  mlir::LogicalResult checkUpdates(llvm::ArrayRef<BorderTensor> arguments,
                                   llvm::ArrayRef<BorderTensor> results);

  llvm::json::Array writeArguments(llvm::ArrayRef<BorderTensor> arguments,
                                   llvm::ArrayRef<BorderTensor> results,
                                   const LendableArguments &lendable);
  llvm::json::Array writeResults(llvm::ArrayRef<BorderTensor> results);

private:
  /// A device, and an offset in its arena.
  using Place = std::pair<int64_t, int64_t>;

  llvm::json::Object writePlace(bool result, unsigned position,
                                mlir::Type type) const;
  llvm::json::Object writeTensor(const BorderTensor &border,
                                 llvm::StringRef fallback, bool result);
  std::string pieceName(const BorderTensor &border, unsigned number,
                        bool result);

  mlir::func::FuncOp whole;
  /// (is a result, position) -> where it is.
  llvm::DenseMap<std::pair<unsigned, int64_t>, Place> placeOf;
  /// Where copies of arguments are that others own.
  llvm::DenseMap<int64_t, llvm::SmallVector<Place, 1>> copiesOf;
};

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_DEVICES_BORDERPLACES_H
