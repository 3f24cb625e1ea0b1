//===- BorderPlaces.cpp - Where arguments and results lie -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BorderPlaces.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Carried.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace baechi;
namespace json = llvm::json;

static std::tuple<Type, int64_t, int64_t, int64_t> sizeOf(PieceAttr piece) {
  return {piece.getWhole(), piece.getDim(), piece.getOuter(), piece.getSize()};
}

static int64_t offsetOf(func::FuncOp step, Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    auto offset = step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                     BaechiDialect::kOffset);
    return offset ? offset.getInt() : 0;
  }
  auto result = cast<OpResult>(root);
  auto offsets = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(
      BaechiDialect::kOffset);
  return offsets && offsets.size() > result.getResultNumber()
             ? offsets[result.getResultNumber()]
             : 0;
}

void BorderPlaces::add(func::FuncOp step, int64_t device) {
  for (BlockArgument argument : step.getArguments())
    if (auto position = step.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), BaechiDialect::kArgument)) {
      Place place{device, offsetOf(step, argument)};
      if (step.getArgAttr(argument.getArgNumber(), kMirror))
        copiesOf[position.getInt()].push_back(place);
      else
        placeOf[{false, position.getInt()}] = place;
    }
  Operation *terminator = step.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands()))
    if (auto position = step.getResultAttrOfType<IntegerAttr>(
            index, BaechiDialect::kResult))
      placeOf[{true, position.getInt()}] = {device,
                                            offsetOf(step, rootOf(value))};
}

LogicalResult BorderPlaces::checkPlaces() {
  for (bool result : {false, true})
    for (unsigned index = 0,
                  n = result ? whole.getNumResults() : whole.getNumArguments();
         index < n; ++index)
      if (!placeOf.contains({result, index}))
        return emitError(whole.getLoc())
               << (result ? "result " : "argument ") << index
               << " of the step is on no device; "
                  "--baechi-verify-partitioned says more";
  return success();
}

LogicalResult BorderPlaces::checkUpdates(ArrayRef<BorderTensor> arguments,
                                         ArrayRef<BorderTensor> results) {
  for (const BorderTensor &argument : arguments) {
    std::optional<int64_t> before;
    for (unsigned number = 0; number < argument.count; ++number) {
      auto by = whole.getArgAttrOfType<IntegerAttr>(argument.first + number,
                                                    BaechiDialect::kUpdatedBy);
      std::optional<int64_t> now;
      if (by)
        now = by.getInt() - number;
      bool isLike = llvm::any_of(results, [&](const BorderTensor &result) {
        return !now || (result.first == *now &&
                        result.pieces.size() == argument.pieces.size() &&
                        llvm::equal(llvm::map_range(result.pieces, sizeOf),
                                    llvm::map_range(argument.pieces, sizeOf)));
      });
      if ((number > 0 && now != before) || (now && !isLike))
        return emitError(whole.getLoc())
               << "argument " << argument.first + number
               << " of the step is updated by other pieces than the result "
                  "is in; 'baechi.updated_by' of pieces names them in their "
                  "order";
      before = now;
    }
  }
  return success();
}

/// Where in which arena argument or result \p position of the function is.
json::Object BorderPlaces::writePlace(bool result, unsigned position,
                                      Type type) const {
  auto [device, offset] = placeOf.find({result, position})->second;
  json::Object place{{"device", device},
                     {"offset", offset},
                     {"bytes", *tensorBytes(type, false)}};
  json::Array copies;
  if (auto it = copiesOf.find(position); !result && it != copiesOf.end())
    for (auto [other, at] : it->second)
      copies.push_back(json::Object{{"device", other}, {"offset", at}});
  if (!copies.empty())
    place["copies"] = std::move(copies);
  return place;
}

json::Object BorderPlaces::writeTensor(const BorderTensor &border,
                                       StringRef fallback, bool result) {
  auto tensor = cast<RankedTensorType>(border.type);
  std::string element;
  llvm::raw_string_ostream(element) << tensor.getElementType();
  json::Object entry;
  if (border.pieces.empty()) {
    entry = writePlace(result, border.first, tensor);
  } else {
    json::Array pieces;
    for (auto [number, piece] : llvm::enumerate(border.pieces)) {
      json::Object each =
          writePlace(result, border.first + number, piece.getPieceType());
      each["name"] = pieceName(border, number, result);
      each["start"] = piece.getStart();
      each["size"] = piece.getSize();
      pieces.push_back(std::move(each));
    }
    entry["bytes"] = *tensorBytes(tensor, false);
    entry["dim"] = border.pieces.front().getDim();
    if (int64_t outer = border.pieces.front().getOuter(); outer != 1)
      entry["outer"] = outer;
    entry["pieces"] = std::move(pieces);
  }
  entry["name"] = border.name.empty() ? (fallback + Twine(border.number)).str()
                                      : border.name;
  entry["type"] = element;
  entry["shape"] = json::Array(tensor.getShape());
  return entry;
}

/// As namesOf() has it, where it is an argument.
std::string BorderPlaces::pieceName(const BorderTensor &border, unsigned number,
                                    bool result) {
  unsigned position = border.first + number;
  Attribute given = result ? whole.getResultAttr(position, BaechiDialect::kName)
                           : whole.getArgAttr(position, BaechiDialect::kName);
  return given ? cast<StringAttr>(given).str()
               : border.name + ".piece" + std::to_string(number);
}

json::Array BorderPlaces::writeArguments(ArrayRef<BorderTensor> arguments,
                                         ArrayRef<BorderTensor> results,
                                         const LendableArguments &lendable) {
  json::Array list;
  for (const BorderTensor &argument : arguments) {
    json::Object entry = writeTensor(argument, "arg", /*result=*/false);
    if (auto by = whole.getArgAttrOfType<IntegerAttr>(
            argument.first, BaechiDialect::kUpdatedBy)) {
      int64_t position = by.getInt();
      for (const BorderTensor &result : results)
        if (result.first == position)
          entry["updated_by"] = result.number;
    }
    if (lendable.contains(argument.first))
      entry["lendable"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

json::Array BorderPlaces::writeResults(ArrayRef<BorderTensor> results) {
  json::Array list;
  for (const BorderTensor &result : results)
    list.push_back(writeTensor(result, "result", /*result=*/true));
  return list;
}
