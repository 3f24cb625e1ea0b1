//===- Collectives.cpp - StableHLO's collectives, of all replicas ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The operations are of a dialect that is not registered: what they mean is in
/// their names and attributes, as StableHLO's specification has it.
///
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

Value split::partOf(OpBuilder &builder, Location loc, Value whole, unsigned dim,
                    int64_t number, int64_t count) {
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(builder.getContext(), type.getShape());
  int64_t size = type.getDimSize(dim) / count;
  offsets[dim] = builder.getIndexAttr(number * size);
  sizes[dim] = builder.getIndexAttr(size);
  return tensor::ExtractSliceOp::create(builder, loc, whole, offsets, sizes,
                                        strides);
}

Value split::concatenate(OpBuilder &builder, Location loc,
                         ArrayRef<Value> parts, unsigned dim) {
  auto type = cast<RankedTensorType>(parts.front().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= int64_t(parts.size());
  Value whole =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(builder.getContext(), type.getShape());
  for (auto [number, part] : llvm::enumerate(parts)) {
    SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
    offsets[dim] = builder.getIndexAttr(int64_t(number) * type.getDimSize(dim));
    whole = tensor::InsertSliceOp::create(builder, loc, part, whole, offsets,
                                          sizes, strides);
  }
  return whole;
}

using Groups = SmallVector<SmallVector<int64_t>>;

static DenseIntElementsAttr tableOf(Operation *op, StringRef name) {
  auto table = op->getAttrOfType<DenseIntElementsAttr>(name);
  bool isTable = table && table.getType().getRank() == 2 &&
                 table.getElementType().isSignlessInteger(64);
  return isTable ? table : nullptr;
}

/// Rows of numbers; -1 fills rows that are shorter.
static Groups rowsOf(DenseIntElementsAttr table) {
  Groups rows;
  if (!table || table.getNumElements() == 0)
    return rows;
  int64_t length = table.getType().getDimSize(1);
  for (auto [at, value] : llvm::enumerate(table.getValues<APInt>())) {
    if (int64_t(at) % length == 0)
      rows.emplace_back();
    if (value.getSExtValue() >= 0)
      rows.back().push_back(value.getSExtValue());
  }
  return rows;
}

int64_t split::replicasNamedBy(Operation *op) {
  int64_t count = 0;
  for (StringRef name : {"replica_groups", "source_target_pairs"})
    for (ArrayRef<int64_t> row : rowsOf(tableOf(op, name)))
      for (int64_t each : row)
        count = std::max(count, each + 1);
  return count;
}

/// Groups of \p op, which have each replica once; all replicas where it says
/// none.
static FailureOr<Groups> groupsOf(Operation *op, int64_t replicas) {
  Groups groups = rowsOf(tableOf(op, "replica_groups"));
  if (groups.empty())
    groups.push_back(llvm::to_vector(llvm::seq(replicas)));
  SmallVector<bool> seen(replicas);
  int64_t named = 0;
  for (ArrayRef<int64_t> group : groups)
    for (int64_t each : group) {
      bool isNew = each < replicas && !seen[each];
      if (isNew)
        seen[each] = true;
      named += isNew ? 1 : replicas + 1;
    }
  bool isEven = llvm::all_of(groups, [&](const auto &group) {
    return group.size() == groups.front().size();
  });
  if (named != replicas || !isEven)
    return op->emitOpError("has replica_groups that do not divide the ")
           << replicas << " replicas: give groups of one size that have each "
           << "of them once";
  return groups;
}

/// Both arguments of \p block, in any order.
static bool areArgumentsOf(Block &block, ValueRange values) {
  return values.size() == 2 && values[0] != values[1] &&
         llvm::all_of(values, [&](Value value) {
           auto argument = dyn_cast<BlockArgument>(value);
           return argument && argument.getOwner() == &block &&
                  argument.getArgNumber() < 2;
         });
}

/// arith's name for an operation of StableHLO that joins two numbers; empty
/// for another.
static StringRef arithOf(StringRef name, Type element) {
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  auto choose = [&](StringRef floats, StringRef integers, StringRef bools) {
    return isFloat ? floats : isBool ? bools : integers;
  };
  return llvm::StringSwitch<StringRef>(name)
      .Case("stablehlo.add", choose("arith.addf", "arith.addi", "arith.ori"))
      .Case("stablehlo.multiply",
            choose("arith.mulf", "arith.muli", "arith.andi"))
      .Case("stablehlo.maximum",
            choose("arith.maximumf", "arith.maxsi", "arith.ori"))
      .Case("stablehlo.minimum",
            choose("arith.minimumf", "arith.minsi", "arith.andi"))
      .Case("stablehlo.and", choose("", "arith.andi", "arith.andi"))
      .Case("stablehlo.or", choose("", "arith.ori", "arith.ori"))
      .Case("stablehlo.xor", choose("", "arith.xori", "arith.xori"))
      .Default("");
}

/// The name of what \p op joins two numbers with, in arith; empty where it is
/// not known. It is StableHLO's, or what its lowering makes of that.
static StringRef combinerNameOf(Operation *op, Type element) {
  if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock())
    return "";
  Block &body = op->getRegion(0).front();
  if (body.empty() || body.back().getNumOperands() != 1 ||
      body.getNumArguments() != 2)
    return "";
  Operation *join = body.back().getOperand(0).getDefiningOp();
  if (!join || join->getBlock() != &body || join->getNumResults() != 1)
    return "";
  if (areArgumentsOf(body, join->getOperands()))
    return arithOf(join->getName().getStringRef(), element);
  auto generic = dyn_cast<linalg::GenericOp>(join);
  if (!generic || generic.getNumLoops() != 0 ||
      !areArgumentsOf(body, generic.getInputs()))
    return "";
  Operation *scalar =
      generic.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  bool isKnown = scalar &&
                 areArgumentsOf(*generic.getBody(), scalar->getOperands()) &&
                 isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp,
                     arith::MaximumFOp, arith::MinimumFOp, arith::MaxSIOp,
                     arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp,
                     arith::AndIOp, arith::OrIOp, arith::XOrIOp>(scalar);
  return isKnown ? scalar->getName().getStringRef() : "";
}

/// What \p op joins two numbers with, as an operation on \p element in \p
/// scratch; null where it is not known.
static Operation *combinerOf(Operation *op, Type element, Block &scratch) {
  if (!isa<FloatType>(element) && !element.isSignlessInteger())
    return nullptr;
  StringRef name = combinerNameOf(op, element);
  if (name.empty())
    return nullptr;
  scratch.addArguments({element, element}, {op->getLoc(), op->getLoc()});
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&scratch);
  OperationState state(op->getLoc(), name);
  state.addOperands(scratch.getArguments());
  state.addTypes(element);
  return builder.create(state);
}

/// A number among the attributes of \p op, for the dimension of a tensor of
/// rank \p rank.
static std::optional<unsigned> dimOf(Operation *op, StringRef name,
                                     int64_t rank) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  if (!attr || !attr.getType().isSignlessInteger(64) || attr.getInt() < 0 ||
      attr.getInt() >= rank)
    return std::nullopt;
  return unsigned(attr.getInt());
}

namespace {
class Exchange {
public:
  Exchange(OpBuilder &builder, Operation *op, ArrayRef<Value> operands)
      : builder(builder), op(op), loc(op->getLoc()), operands(operands),
        name(op->getName().stripDialect()),
        type(dyn_cast<RankedTensorType>(operands.front().getType())) {}

  FailureOr<SmallVector<Value>> run(unsigned number) {
    if (!type || !type.hasStaticShape())
      return op->emitOpError("exchanges no tensor of static shape");
    if (name == "collective_permute")
      return permute();
    FailureOr<Groups> groups = groupsOf(op, operands.size());
    if (failed(groups))
      return failure();
    SmallVector<Value> results(operands.size());
    for (ArrayRef<int64_t> group : *groups) {
      SmallVector<Value> values;
      for (int64_t member : group)
        values.push_back(operands[member]);
      FailureOr<SmallVector<Value>> made = ofGroup(values);
      if (failed(made))
        return failure();
      for (auto [member, value] : llvm::zip_equal(group, *made))
        results[member] = value;
    }
    if (results.front().getType() != op->getResult(number).getType())
      return op->emitOpError("makes ")
             << results.front().getType() << " of its operand, and says "
             << op->getResult(number).getType();
    return results;
  }

private:
  FailureOr<SmallVector<Value>> ofGroup(ArrayRef<Value> values) {
    auto count = int64_t(values.size());
    auto sameForAll = [&](Value value) {
      return SmallVector<Value>(values.size(), value);
    };
    if (name == "all_gather") {
      std::optional<unsigned> dim = dimOf(op, "all_gather_dim", type.getRank());
      if (!dim)
        return unknownForm();
      return sameForAll(concatenate(builder, loc, values, *dim));
    }
    if (name == "all_to_all") {
      std::optional<unsigned> from =
          dimOf(op, "split_dimension", type.getRank());
      std::optional<unsigned> to =
          dimOf(op, "concat_dimension", type.getRank());
      if (!from || !to || type.getDimSize(*from) % count != 0)
        return unknownForm();
      SmallVector<Value> results;
      for (int64_t number = 0; number < count; ++number)
        results.push_back(
            concatenate(builder, loc, parts(values, *from, number), *to));
      return results;
    }
    Block scratch;
    Operation *combiner = combinerOf(op, type.getElementType(), scratch);
    if (!combiner)
      return op->emitOpError(
          "joins values by something else than one add, multiply, maximum, "
          "minimum, and, or or xor of its two arguments: exchange values by "
          "one of these");
    if (name == "all_reduce")
      return sameForAll(joinInPairs(builder, loc, values, combiner));
    std::optional<unsigned> dim =
        dimOf(op, "scatter_dimension", type.getRank());
    if (!dim || type.getDimSize(*dim) % count != 0)
      return unknownForm();
    SmallVector<Value> results;
    for (int64_t number = 0; number < count; ++number)
      results.push_back(
          joinInPairs(builder, loc, parts(values, *dim, number), combiner));
    return results;
  }

  /// Part \p number of each.
  SmallVector<Value> parts(ArrayRef<Value> values, unsigned dim,
                           int64_t number) {
    SmallVector<Value> parts;
    for (Value value : values)
      parts.push_back(
          partOf(builder, loc, value, dim, number, int64_t(values.size())));
    return parts;
  }

  FailureOr<SmallVector<Value>> permute() {
    SmallVector<Value> results(operands.size());
    for (ArrayRef<int64_t> pair : rowsOf(tableOf(op, "source_target_pairs"))) {
      if (pair.size() != 2 || pair[0] >= int64_t(operands.size()) ||
          pair[1] >= int64_t(operands.size()) || results[pair[1]])
        return unknownForm();
      results[pair[1]] = operands[pair[0]];
    }
    for (Value &result : results)
      if (!result) // what nobody sends to
        result =
            arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
    return results;
  }

  LogicalResult unknownForm() {
    return op->emitOpError(
        "has attributes that do not fit its operand and the replicas");
  }

  OpBuilder &builder;
  Operation *op;
  Location loc;
  ArrayRef<Value> operands;
  StringRef name;
  RankedTensorType type;
};
} // namespace

FailureOr<SmallVector<Value>> split::exchange(OpBuilder &builder, Operation *op,
                                              unsigned number,
                                              ArrayRef<Value> operands) {
  StringRef name = op->getName().getStringRef();
  bool isKnown = llvm::StringSwitch<bool>(name)
                     .Cases({"stablehlo.all_reduce", "stablehlo.all_gather",
                             "stablehlo.reduce_scatter", "stablehlo.all_to_all",
                             "stablehlo.collective_permute"},
                            true)
                     .Default(false);
  if (!isKnown || operands.empty() ||
      op->getNumOperands() != op->getNumResults())
    return op->emitOpError(
        "is not known of replicas: all_reduce, all_gather, reduce_scatter, "
        "all_to_all, collective_permute, replica_id and partition_id are; "
        "lower what else is of StableHLO to linalg before");
  return Exchange(builder, op, operands).run(number);
}
