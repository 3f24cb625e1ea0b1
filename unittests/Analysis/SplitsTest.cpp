//===- SplitsTest.cpp - Pieces of one dimension ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Splits.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/IR/Diagnostics.h"
#include "gtest/gtest.h"

using namespace baechi;
using namespace mlir;

TEST(Splits, TheFirstPiecesTakeWhatIsLeftOver) {
  using Sizes = llvm::SmallVector<int64_t>;
  EXPECT_EQ(evenPieces(6, 3), (Sizes{2, 2, 2}));
  EXPECT_EQ(evenPieces(8, 3), (Sizes{3, 3, 2}));
  EXPECT_EQ(evenPieces(5, 1), (Sizes{5}));
}

TEST(Splits, AnAttributeHasSizes) {
  // The parser takes no empty list; who builds attributes could.
  MLIRContext context;
  context.loadDialect<BaechiDialect>();
  std::string said;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  auto here = [&] { return emitError(UnknownLoc::get(&context)); };
  EXPECT_FALSE(SplitAttr::getChecked(here, &context, 0, {}));
  EXPECT_EQ(said, "a split needs sizes");
  EXPECT_TRUE(SplitAttr::getChecked(here, &context, 0, {2, 2}));
}
