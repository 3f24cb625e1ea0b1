//===- Constrain.cpp - Pins, groups and cuts by pattern ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Analysis/Splits.h"
#include "Baechi/Dialect/Pieces.h"
#include "Baechi/Placement/Study/Explain.h"
#include "Baechi/Transforms/Passes.h"
#include "PlacementRemarks.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace baechi {
#define GEN_PASS_DEF_CONSTRAIN
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// What a rule asks for, in the words of its diagnostics.
struct Wish {
  StringRef attribute; ///< kPin or kGroup
  StringRef option;    ///< "pins"
  StringRef shape;     ///< "PATTERN=DEVICE"
  StringRef verb;      ///< "pinned to"
  StringRef remark;    ///< "pinned"
};

struct Constrain : public baechi::impl::ConstrainBase<Constrain> {
  using ConstrainBase::ConstrainBase;

  FunctionOpInterface step;
  SmallVector<Operation *> operators;
  placement::Graph names;              ///< operators with names alone
  std::vector<int32_t> wholeArguments; ///< asked for in one piece
  SmallVector<std::string> rules;      ///< the pins, with devices' own names

  Location locationOf(int32_t id) {
    int32_t arguments = step.getNumArguments();
    return id < arguments ? step.getArgument(id).getLoc()
                          : operators[id - arguments]->getLoc();
  }

  /// The operators that a pattern names; with a leading '@' those at the
  /// locations that it names.
  LogicalResult find(StringRef pattern, const Wish &wish,
                     std::vector<int32_t> &found) {
    if (!pattern.starts_with("@")) {
      std::string error = placement::findOperators(names, pattern.str(), found);
      if (error.empty())
        return success();
      // What is stored in pieces has a name of its own, too.
      for (unsigned number = 0; number < step.getNumArguments(); ++number)
        if (auto piece =
                dyn_cast_or_null<PieceAttr>(step.getArgAttr(number, kPiece));
            piece && piece.getOf() == pattern)
          found.push_back(number);
      if (!found.empty())
        return success();
      return emitError(step.getLoc()) << wish.option << ": " << error;
    }
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(pattern.drop_front());
    if (!glob)
      return emitError(step.getLoc())
             << wish.option << ": '" << pattern
             << "': " << llvm::toString(glob.takeError());
    for (int32_t id = 0, n = names.ops.size(); id < n; ++id) {
      std::string text;
      llvm::raw_string_ostream(text) << locationOf(id);
      // As in diagnostics: model.py:12:3.
      llvm::erase(text, '"');
      StringRef inner = text;
      if (inner.consume_front("loc("))
        inner.consume_back(")");
      if (glob->match(inner))
        found.push_back(id);
    }
    if (found.empty())
      return emitError(step.getLoc())
             << wish.option << ": no operator's location matches '"
             << pattern.drop_front() << "'; print them with "
             << "--mlir-print-debuginfo";
    return success();
  }

  /// What a rule names, and its value.
  LogicalResult read(StringRef rule, const Wish &wish,
                     std::vector<int32_t> &found, StringRef &value) {
    auto [pattern, last] = rule.rsplit('=');
    value = last;
    if (pattern.empty() || value.empty())
      return emitError(step.getLoc())
             << wish.option << ": '" << rule << "' must be " << wish.shape;
    return find(pattern, wish, found);
  }

  LogicalResult apply(StringRef rule, const Wish &wish) {
    std::vector<int32_t> found;
    StringRef value;
    if (failed(read(rule, wish, found, value)))
      return failure();
    auto attribute = StringAttr::get(&getContext(), value);
    for (int32_t id : found) {
      StringAttr there = stringAttrOf(step, operators, id, wish.attribute);
      if (there && there != attribute)
        return emitError(locationOf(id))
               << "'" << names.ops[id].name << "' is to be " << wish.verb
               << " '" << value << "', but it is " << wish.verb << " '"
               << there.getValue() << "' already";
      if (auto remark = remark::passed(
              locationOf(id), remarkOn(wish.remark, "baechi-constrain", step)))
        remark << remark::metric("Operator", names.ops[id].name)
               << remark::metric("To", value.str())
               << remark::metric("Reason", "asked for by " + wish.option.str() +
                                               "=" + rule.str());
      int32_t arguments = step.getNumArguments();
      if (id < arguments)
        step.setArgAttr(id, wish.attribute, attribute);
      else
        operators[id - arguments]->setAttr(wish.attribute, attribute);
    }
    return success();
  }

  /// Even pieces of one dimension of all that \p rule names: of arguments only
  /// where it names no operator, as `mlp/*` names weights, too.
  LogicalResult applySplit(StringRef rule) {
    const Wish wish{BaechiDialect::kSplit, "splits",
                    "PATTERN=DIM:PIECES or PATTERN=whole", "cut as", "cut"};
    std::vector<int32_t> found;
    StringRef value;
    if (failed(read(rule, wish, found, value)))
      return failure();
    auto [dimText, piecesText] = value.split(':');
    int64_t dim = 0, pieces = 1;
    if (value != "whole" &&
        (dimText.getAsInteger(10, dim) || piecesText.getAsInteger(10, pieces) ||
         dim < 0 || pieces < 2))
      return emitError(step.getLoc())
             << wish.option << ": '" << rule << "' must be " << wish.shape;
    int32_t arguments = step.getNumArguments();
    bool isAlone = found.size() == 1;
    llvm::erase_if(found, [&](int32_t id) {
      return id >= arguments &&
             followsReaders(operators[id - arguments], dim, isAlone);
    });
    if (found.empty() && pieces > 1)
      return emitError(step.getLoc())
             << wish.option << ": '" << rule
             << "' names nothing but constants, buffers and paddings, which "
                "are cut with what reads them";
    if (!found.empty() && found.back() >= arguments)
      llvm::erase_if(found, [&](int32_t id) { return id < arguments; });
    for (int32_t id : found)
      if (failed(split(id, dim, pieces, rule)))
        return failure();
    return success();
  }

  /// What an operator writes to, and constants, are cut as their readers are;
  /// so are the paddings of windows and the zeros between elements, which have
  /// their names.
  static bool followsReaders(Operation *op, int64_t dim, bool isAlone) {
    if (isa<tensor::EmptyOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
      return true;
    if (isAlone)
      return false;
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      return dim < pad.getType().getRank() &&
             (pad.getStaticLow()[dim] != 0 || pad.getStaticHigh()[dim] != 0);
    auto spread = dyn_cast<tensor::InsertSliceOp>(op);
    return spread && dim < spread.getType().getRank() &&
           spread.getStaticStrides()[dim] != 1;
  }

  LogicalResult split(int32_t id, int64_t dim, int64_t pieces, StringRef rule) {
    int32_t arguments = step.getNumArguments();
    Operation *op = id < arguments ? nullptr : operators[id - arguments];
    auto error = [&] {
      return emitError(locationOf(id))
             << "splits: '" << rule << "': '" << names.ops[id].name << "' ";
    };
    if (op && op->getNumResults() == 0)
      return error() << "has no result";
    Type type =
        op ? op->getResult(0).getType() : step.getArgument(id).getType();
    auto tensor = dyn_cast<RankedTensorType>(type);
    bool hasDimension =
        tensor && tensor.hasStaticShape() && dim < tensor.getRank();
    // An argument, or a scalar, is whole, but not where it is cut as well.
    if (pieces == 1 && !op)
      wholeArguments.push_back(id);
    if (!op && llvm::is_contained(wholeArguments, id) &&
        (pieces > 1 || step.getArgAttr(id, BaechiDialect::kSplit)))
      return error() << "is to be cut, and to be whole";
    if (pieces == 1 && (!op || !hasDimension))
      return success();
    if (!hasDimension)
      return error() << "is " << type << ", which has no dimension " << dim;
    int64_t extent = tensor.getDimSize(dim);
    if (extent < pieces)
      return error() << "has " << extent << " elements along dimension " << dim
                     << ", too few for " << pieces << " pieces";
    auto attribute =
        SplitAttr::get(&getContext(), dim, evenPieces(extent, pieces));
    auto there =
        op ? op->getAttrOfType<SplitAttr>(BaechiDialect::kSplit)
           : step.getArgAttrOfType<SplitAttr>(id, BaechiDialect::kSplit);
    if (there && there != attribute)
      return error() << "is to be cut as " << attribute << ", and as " << there
                     << " already";
    if (op)
      op->setAttr(BaechiDialect::kSplit, attribute);
    else
      step.setArgAttr(id, BaechiDialect::kSplit, attribute);
    return success();
  }

  /// An unknown device is better said here than by the placer. `devN` is the
  /// device of number N on any machine.
  LogicalResult resolveDevices() {
    if (machine.empty() && !getOperation()->hasAttr(BaechiDialect::kMachine))
      return success();
    std::optional<placement::Machine> target =
        machineOf(getOperation(), machine);
    if (!target)
      return failure();
    for (std::string &rule : rules) {
      auto [pattern, device] = StringRef(rule).rsplit('=');
      if (device.empty())
        return emitError(step.getLoc())
               << "pins: '" << rule << "' names no device: give PATTERN=DEVICE";
      if (llvm::any_of(target->devices, [&](const placement::Device &each) {
            return each.name == device;
          }))
        continue;
      StringRef digits = device;
      size_t number = 0;
      if (digits.consume_front("dev") && !digits.getAsInteger(10, number) &&
          number < target->devices.size()) {
        rule = (pattern + "=" + target->devices[number].name).str();
        continue;
      }
      std::vector<StringRef> known;
      for (const placement::Device &each : target->devices)
        known.push_back(each.name);
      return emitError(step.getLoc())
             << "pins: '" << rule << "': the machine has no device '" << device
             << "'; its devices are " << llvm::join(known, ", ");
    }
    return success();
  }

  void takeOff() {
    for (StringRef name :
         {BaechiDialect::kPin, BaechiDialect::kGroup, BaechiDialect::kSplit}) {
      for (unsigned i = 0; i < step.getNumArguments(); ++i)
        step.removeArgAttr(i, StringAttr::get(&getContext(), name));
      for (Operation *op : operators)
        removeAttribute(op, name);
    }
  }

  void runOnOperation() override {
    FailureOr<FunctionOpInterface> found = findStep(getOperation());
    if (failed(found))
      return signalPassFailure();
    step = *found;
    operators = operatorsOf(step);
    names.ops.clear();
    wholeArguments.clear();
    for (std::string &name : namesOf(step))
      names.ops.emplace_back().name = std::move(name);
    rules.assign(pins.begin(), pins.end());
    if (failed(resolveDevices()))
      return signalPassFailure();
    if (replace)
      takeOff();
    const Wish pin{BaechiDialect::kPin, "pins", "PATTERN=DEVICE", "pinned to",
                   "pinned"};
    const Wish group{BaechiDialect::kGroup, "groups", "PATTERN=GROUP",
                     "in group", "grouped"};
    for (StringRef rule : rules)
      if (failed(apply(rule, pin)))
        return signalPassFailure();
    for (StringRef rule : groups)
      if (failed(apply(rule, group)))
        return signalPassFailure();
    for (StringRef rule : splits)
      if (failed(applySplit(rule)))
        return signalPassFailure();
  }
};
} // namespace
