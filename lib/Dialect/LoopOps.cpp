//===- LoopOps.cpp - Serial loops over keys -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/LoopOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace baechi;

#define GET_OP_CLASSES
#include "Baechi/Dialect/LoopOps.cpp.inc"

static constexpr int64_t kDynamic = ShapedType::kDynamic;

std::string ForeachOp::nameOfKey(unsigned key) {
  static constexpr StringLiteral kNames = "ijklm";
  return key < kNames.size() ? std::string(1, kNames[key])
                             : "key" + std::to_string(key);
}

ValueRange ForeachOp::getKeys() {
  return getBody().getArguments().take_front(getNumKeys());
}

ValueRange ForeachOp::getEntryValues() {
  return getBody().getArguments().slice(getNumKeys(), getValues().size());
}

ValueRange ForeachOp::getBodyArrays() {
  return getBody().getArguments().take_back(getArrays().size());
}

bool ForeachOp::isBuffered(unsigned array) {
  return getBuffered() && llvm::is_contained(*getBuffered(), array);
}

/// Bound \p which of the lower, then of the upper bounds.
static OpFoldResult boundOf(ForeachOp op, unsigned which) {
  SmallVector<int64_t> all(op.getLowers());
  llvm::append_range(all, op.getUppers());
  if (all[which] != kDynamic)
    return Builder(op.getContext()).getIndexAttr(all[which]);
  return op.getBounds()[llvm::count(ArrayRef(all).take_front(which), kDynamic)];
}

OpFoldResult ForeachOp::getLower(unsigned key) { return boundOf(*this, key); }

OpFoldResult ForeachOp::getUpper(unsigned key) {
  return boundOf(*this, getNumKeys() + key);
}

/// Beside the body's.
void ForeachOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &array : getKeyArraysMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &array);
  bool gives = getBody().front().getTerminator()->getNumOperands() != 0;
  for (OpOperand &array : getValuesMutable()) {
    effects.emplace_back(MemoryEffects::Read::get(), &array);
    if (gives)
      effects.emplace_back(MemoryEffects::Write::get(), &array);
  }
}

void ForeachOp::getAsmBlockArgumentNames(Region &,
                                         OpAsmSetValueNameFn setName) {
  for (auto [number, key] : llvm::enumerate(getKeys()))
    setName(key, nameOfKey(number));
}

//===----------------------------------------------------------------------===//
// Text: docs/dialect.md shows it
//===----------------------------------------------------------------------===//

namespace {
using Operand = OpAsmParser::UnresolvedOperand;
using Argument = OpAsmParser::Argument;

/// What the operands of a loop are before they are resolved.
struct Operands {
  SmallVector<Operand> operands;
  SmallVector<Type> types;
};

ParseResult parseBound(OpAsmParser &parser, SmallVectorImpl<int64_t> &numbers,
                       SmallVectorImpl<Operand> &operands) {
  int64_t number;
  OptionalParseResult isNumber = parser.parseOptionalInteger(number);
  if (isNumber.has_value()) {
    numbers.push_back(number);
    return *isNumber;
  }
  numbers.push_back(kDynamic);
  return parser.parseOperand(operands.emplace_back());
}

/// `%x = %operand : type`, with `buffered` before the type where \p buffered
/// takes it.
ParseResult parseBinding(OpAsmParser &parser, Operands &into,
                         SmallVectorImpl<Argument> &arguments,
                         SmallVectorImpl<int64_t> *buffered) {
  Argument &argument = arguments.emplace_back();
  if (parser.parseArgument(argument) || parser.parseEqual() ||
      parser.parseOperand(into.operands.emplace_back()))
    return failure();
  if (buffered && succeeded(parser.parseOptionalKeyword("buffered")))
    buffered->push_back(into.operands.size() - 1);
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseColonType(argument.type))
    return failure();
  into.types.push_back(argument.type);
  if (buffered)
    return success();
  auto type = dyn_cast<MemRefType>(argument.type);
  if (!type || type.getRank() != 1)
    return parser.emitError(place)
           << "what has an element an entry is a memref of one dimension, not "
           << argument.type;
  argument.type = type.getElementType();
  return success();
}
} // namespace

ParseResult ForeachOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr orderedName = getOrderedAttrName(result.name);
  if (succeeded(parser.parseOptionalKeyword("ordered")))
    result.addAttribute(orderedName, builder.getUnitAttr());
  else if (parser.parseKeyword("unordered"))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("reassociate")))
    result.addAttribute(getReassociateAttrName(result.name),
                        builder.getUnitAttr());

  SmallVector<Argument> arguments;
  Operands keyArrays, values, arrays;
  SmallVector<int64_t> lowers, uppers, buffered;
  SmallVector<Operand> lowerOperands, upperOperands;
  auto parseKey = [&]() -> ParseResult {
    Argument &key = arguments.emplace_back();
    if (parser.parseArgument(key))
      return failure();
    key.type = builder.getIndexType();
    if (succeeded(parser.parseOptionalEqual()) &&
        (parser.parseOperand(keyArrays.operands.emplace_back()) ||
         parser.parseColonType(keyArrays.types.emplace_back())))
      return failure();
    return failure(parser.parseKeyword("in") ||
                   parseBound(parser, lowers, lowerOperands) ||
                   parser.parseKeyword("to") ||
                   parseBound(parser, uppers, upperOperands));
  };
  using Delimiter = OpAsmParser::Delimiter;
  if (parser.parseCommaSeparatedList(Delimiter::Paren, parseKey))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("where"))) {
    IntegerSetAttr where;
    if (parser.parseAttribute(where, getWhereAttrName(result.name),
                              result.attributes))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("values")) &&
      parser.parseCommaSeparatedList(Delimiter::Paren, [&] {
        return parseBinding(parser, values, arguments, nullptr);
      }))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("arrays")) &&
      parser.parseCommaSeparatedList(Delimiter::Paren, [&] {
        return parseBinding(parser, arrays, arguments, &buffered);
      }))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("verdict"))) {
    LoopVerdictAttr verdict;
    if (parser.parseAttribute(verdict, getVerdictAttrName(result.name),
                              result.attributes))
      return failure();
  }
  SMLoc place = parser.getCurrentLocation();
  llvm::append_range(lowerOperands, upperOperands);
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(keyArrays.operands, keyArrays.types, place,
                             result.operands) ||
      parser.resolveOperands(lowerOperands, builder.getIndexType(),
                             result.operands) ||
      parser.resolveOperands(values.operands, values.types, place,
                             result.operands) ||
      parser.resolveOperands(arrays.operands, arrays.types, place,
                             result.operands))
    return failure();
  auto count = [](auto &of) { return static_cast<int32_t>(of.size()); };
  result.addAttribute(getOperandSegmentSizeAttr(),
                      builder.getDenseI32ArrayAttr(
                          {count(keyArrays.operands), count(lowerOperands),
                           count(values.operands), count(arrays.operands)}));
  result.addAttribute(getLowersAttrName(result.name),
                      builder.getDenseI64ArrayAttr(lowers));
  result.addAttribute(getUppersAttrName(result.name),
                      builder.getDenseI64ArrayAttr(uppers));
  if (!buffered.empty())
    result.addAttribute(getBufferedAttrName(result.name),
                        builder.getDenseI64ArrayAttr(buffered));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ForeachOp::print(OpAsmPrinter &printer) {
  printer << (getOrdered() ? " ordered" : " unordered")
          << (getReassociate() ? " reassociate" : "") << " (";
  auto printBound = [&](OpFoldResult bound) {
    if (auto number = dyn_cast<Attribute>(bound))
      printer << cast<IntegerAttr>(number).getInt();
    else
      printer << cast<Value>(bound);
  };
  llvm::interleaveComma(llvm::enumerate(getKeys()), printer, [&](auto key) {
    printer << key.value();
    if (isSparse()) {
      Value array = getKeyArrays()[key.index()];
      printer << " = " << array << " : " << array.getType();
    }
    printer << " in ";
    printBound(getLower(key.index()));
    printer << " to ";
    printBound(getUpper(key.index()));
  });
  printer << ")";
  if (getWhere())
    printer << " where " << getWhereAttr();
  auto printBindings = [&](StringRef word, ValueRange operands,
                           ValueRange arguments, bool mayBeBuffered) {
    if (operands.empty())
      return;
    printer << " " << word << "(";
    unsigned number = 0;
    llvm::interleaveComma(
        llvm::zip(arguments, operands), printer, [&](auto of) {
          auto [argument, operand] = of;
          printer << argument << " = " << operand
                  << (mayBeBuffered && isBuffered(number) ? " buffered" : "")
                  << " : " << operand.getType();
          ++number;
        });
    printer << ")";
  };
  printBindings("values", getValues(), getEntryValues(), false);
  printBindings("arrays", getArrays(), getBodyArrays(), true);
  if (getVerdict())
    printer << " verdict " << getVerdictAttr();
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getOperandSegmentSizeAttr(), getLowersAttrName(), getUppersAttrName(),
       getOrderedAttrName(), getReassociateAttrName(), getWhereAttrName(),
       getBufferedAttrName(), getVerdictAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// What is right
//===----------------------------------------------------------------------===//

static LogicalResult verifyBounds(ForeachOp op) {
  ArrayRef<int64_t> lowers = op.getLowers(), uppers = op.getUppers();
  if (lowers.empty())
    return op.emitOpError("has no keys: give it one at least");
  if (lowers.size() != uppers.size())
    return op.emitOpError() << "has " << lowers.size() << " lower bounds and "
                            << uppers.size() << " upper ones";
  size_t open = llvm::count(lowers, kDynamic) + llvm::count(uppers, kDynamic);
  if (open != op.getBounds().size())
    return op.emitOpError()
           << "has " << op.getBounds().size() << " operands for " << open
           << " bounds that are not constant";
  for (auto [number, lower, upper] : llvm::enumerate(lowers, uppers)) {
    auto wrong = [&, number = number] {
      return op.emitOpError()
             << "key '" << ForeachOp::nameOfKey(number) << "' ";
    };
    for (int64_t bound : {lower, upper})
      if (bound != kDynamic &&
          (bound > ForeachOp::kMostOfKey || bound < -ForeachOp::kMostOfKey))
        return wrong() << "is beyond 2^40: " << bound;
    if (lower != kDynamic && upper != kDynamic && lower > upper)
      return wrong() << "begins at " << lower << ", after its end at " << upper;
  }
  if (!op.getWhere())
    return success();
  if (op.isSparse())
    return op.emitOpError("has entries of key arrays: 'where' is of ranges; "
                          "leave the entries out of the arrays");
  if (op.getWhere()->getNumDims() != lowers.size() ||
      op.getWhere()->getNumSymbols() != 0)
    return op.emitOpError() << "has " << lowers.size()
                            << " keys: 'where' is a set of as many dimensions "
                               "and no symbols";
  return success();
}

/// One element an entry: as many in all of them.
static LogicalResult verifyEntries(ForeachOp op) {
  size_t keys = op.getNumKeys();
  if (op.isSparse() && op.getKeyArrays().size() != keys)
    return op.emitOpError()
           << "has " << op.getKeyArrays().size() << " key arrays for " << keys
           << " keys: all keys have one, or none";
  if (!op.isSparse() && !op.getValues().empty())
    return op.emitOpError("has keys of ranges: values are of entries of key "
                          "arrays; name what they lie in in 'arrays'");
  int64_t entries = kDynamic;
  for (ValueRange range :
       {ValueRange(op.getKeyArrays()), ValueRange(op.getValues())})
    for (Value array : range) {
      auto type = cast<MemRefType>(array.getType());
      if (type.getRank() != 1)
        return op.emitOpError() << "has values in " << type
                                << ": one element an entry is one dimension";
      int64_t size = type.getDimSize(0);
      if (size != kDynamic && entries != kDynamic && size != entries)
        return op.emitOpError() << "has " << entries << " entries by one of "
                                << "its operands and " << size << " by another";
      entries = size != kDynamic ? size : entries;
    }
  return success();
}

static LogicalResult verifyArrays(ForeachOp op) {
  llvm::SmallPtrSet<Value, 8> arrays, entries;
  for (ValueRange range :
       {ValueRange(op.getKeyArrays()), ValueRange(op.getValues())})
    entries.insert(range.begin(), range.end());
  for (auto [number, array] : llvm::enumerate(op.getArrays())) {
    if (!arrays.insert(array).second)
      return op.emitOpError()
             << "has array " << number << " twice: name it once";
    if (entries.contains(array))
      return op.emitOpError()
             << "has array " << number
             << " among its keys or values, too: arrays overlap neither";
  }
  if (!op.getBuffered())
    return success();
  if (op.getOrdered())
    return op.emitOpError("is ordered: no array can be buffered, as its writes "
                          "would be seen late");
  ArrayRef<int64_t> buffered = *op.getBuffered();
  for (int64_t number : buffered)
    if (number < 0 || number >= static_cast<int64_t>(op.getArrays().size()))
      return op.emitOpError()
             << "buffers array " << number << ", of which there is none";
  return success();
}

static LogicalResult verifyVerdict(ForeachOp op) {
  if (!op.getVerdict())
    return success();
  LoopVerdictAttr verdict = *op.getVerdict();
  int64_t keys = op.getNumKeys(), arrays = op.getArrays().size();
  auto outside = [](DenseI64ArrayAttr numbers, int64_t end) {
    return numbers && llvm::any_of(numbers.asArrayRef(),
                                   [&](int64_t n) { return n >= end; });
  };
  if (outside(verdict.getKeys(), keys))
    return op.emitOpError()
           << "has " << keys << " keys: its verdict names another";
  if (verdict.getForm() && verdict.getForm().size() != keys)
    return op.emitOpError() << "has " << keys << " keys: its verdict's form "
                            << "has " << verdict.getForm().size();
  if (outside(verdict.getSums(), arrays))
    return op.emitOpError()
           << "has " << arrays << " arrays: its verdict sums another";
  if (verdict.getDependences())
    for (auto each : verdict.getDependences().getAsRange<DependenceAttr>())
      if (each.getLeast().size() != keys || each.getArray() > arrays)
        return op.emitOpError() << "has no such dependence: " << each;
  return success();
}

LogicalResult ForeachOp::verify() {
  return failure(failed(verifyBounds(*this)) || failed(verifyEntries(*this)) ||
                 failed(verifyArrays(*this)) || failed(verifyVerdict(*this)));
}

LogicalResult ForeachOp::verifyRegions() {
  SmallVector<Type> types(getNumKeys(), IndexType::get(getContext()));
  for (Value values : getValues())
    types.push_back(cast<MemRefType>(values.getType()).getElementType());
  llvm::append_range(types, getArrays().getTypes());
  if (TypeRange(types) != getBody().getArgumentTypes())
    return emitOpError() << "has a body of (" << getBody().getArgumentTypes()
                         << "), which should be of (" << types
                         << "): keys, values, arrays";
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError("has a body that does not end with 'baechi.yield'");
  if (yield.getNumOperands() != 0 &&
      yield.getOperandTypes() != getEntryValues().getTypes())
    return yield.emitOpError()
           << "gives (" << yield.getOperandTypes()
           << "), the loop's values are (" << getEntryValues().getTypes()
           << "): give a new one for each, or none";
  WalkResult walked = getBody().walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<BaseMemRefType>(operand.getType()) &&
          !getBody().isAncestor(operand.getParentRegion())) {
        inner->emitOpError("uses memory from outside the loop: name it in "
                           "the loop's 'arrays'");
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}
