//===- Cuttables.h - What of a model can be cut by its name -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUTS_CUTTABLES_H
#define BAECHI_DRIVER_CUTS_CUTTABLES_H

#include "Baechi/Placement/Model/Problem.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace baechi {

/// What can be named in the option `split`.
struct Cuttable {
  std::string name;
  mlir::RankedTensorType type;
};

/// What of a model can be cut.
class Cuttables {
public:
  /// \p step: of the model, before it is cut and kernels are formed.
  explicit Cuttables(mlir::FunctionOpInterface step);

  /// Of those that \p op, an operator of a formed step, was formed of, the
  /// largest, or what it has pieces of; but those that \p rules name. Others
  /// may have their names: then also these.
  std::vector<Cuttable> of(mlir::Operation *op, size_t most,
                           llvm::ArrayRef<std::string> rules = {}) const;
  /// One of each operator that makes an operand of \p op.
  std::vector<Cuttable> ofMakers(mlir::Operation *op,
                                 llvm::ArrayRef<std::string> rules = {}) const;

private:
  /// The name, which several may have, and how this one is called.
  std::vector<std::pair<std::string, Cuttable>> all;
};

/// Cuts of those of \p cut that have so many elements along dimension \p dim.
std::vector<std::string> rulesFor(llvm::ArrayRef<Cuttable> cut, size_t dim,
                                  int64_t pieces);

/// The operator of a formed step that needs most by itself.
struct Neediest {
  mlir::Operation *op = nullptr;
  std::string name;
  int64_t bytes = 0; ///< with what must be resident beside it
  /// What all that need more than the device has lack, together.
  int64_t lacking = 0;
  /// The largest device that computes, and what it has.
  std::string device;
  int64_t memory = 0;
  /// What operators need that need more than that: the most of those that are
  /// pieces of one.
  std::map<std::string, int64_t> tooLarge;

  bool fits() const { return bytes <= memory; }
  /// Whether this is what \p other is, or a piece of it, as far as names tell.
  bool isOf(const Neediest &other) const;
  /// What it is a piece of, or else its name.
  std::string nameOfWhole() const;
};

/// That of \p formed, whose step has costs, on \p target. With a pool, or other
/// devices, arguments need not be where it runs. Nullopt: the step has none.
std::optional<Neediest> neediestOf(mlir::ModuleOp formed,
                                   const placement::Machine &target);

} // namespace baechi

#endif // BAECHI_DRIVER_CUTS_CUTTABLES_H
