//===- Positions.cpp - Positions that arrays do not have -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Outside.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Input/Errors.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace mlir;
using namespace baechi;

void Compilation::readChecks() {
  for (auto function : forms.model().getOps<func::FuncOp>())
    for (unsigned result = 0; result < function.getNumResults(); ++result)
      if (auto about =
              function.getResultAttrOfType<ArrayAttr>(result, kOutside)) {
        for (auto check : about.getAsRange<DictionaryAttr>())
          checks.push_back(check);
        function.removeResultAttr(
            result, StringAttr::get(forms.model().getContext(), kOutside));
      }
}

/// The keys of an entry, or its number where it has none.
static std::string textOf(int64_t entry, DictionaryAttr check) {
  if (entry >= kNoEntry)
    return "an entry";
  ArrayRef<int64_t> lowers = check.getAs<DenseI64ArrayAttr>("lowers");
  ArrayRef<int64_t> sizes = check.getAs<DenseI64ArrayAttr>("sizes");
  if (sizes.empty())
    return "entry " + std::to_string(entry);
  SmallVector<std::string> keys;
  for (size_t key = sizes.size(); key-- > 0; entry /= sizes[key])
    keys.push_back(std::to_string(lowers[key] + entry % sizes[key]));
  std::string text = llvm::join(llvm::reverse(keys), ", ");
  return keys.size() == 1 ? "entry " + text : "entry (" + text + ")";
}

static std::string textOf(int64_t position) {
  if (position >= kMostPosition)
    return std::to_string(kMostPosition) + " or more";
  if (position <= -kMostPosition)
    return std::to_string(-kMostPosition) + " or less";
  return std::to_string(position);
}

llvm::Error Compilation::checkPositions(const Execution &program) const {
  if (checks.empty())
    return llvm::Error::success();
  for (auto [index, info] : llvm::enumerate(program.program().results)) {
    if (info.name != kOutside)
      continue;
    llvm::Expected<Array> words = program.result(index);
    if (!words)
      return words.takeError();
    bool found = false;
    for (auto [slot, check] : llvm::enumerate(checks)) {
      int64_t word = 0;
      std::memcpy(&word, words->data.data() + slot * sizeof(word),
                  sizeof(word));
      if (word == 0)
        continue;
      found = true;
      emitError(check.getAs<LocationAttr>("loc"))
          << textOf(entryOfOutside(word), check) << " "
          << check.getAs<StringAttr>("before").getValue()
          << textOf(positionOfOutside(word))
          << check.getAs<StringAttr>("after").getValue();
    }
    if (found)
      return diagnosed();
  }
  return llvm::Error::success();
}
