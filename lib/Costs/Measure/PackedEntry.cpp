//===- PackedEntry.cpp - Kernels' code for any number of operands ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedEntry.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace baechi;

std::string baechi::addPackedEntry(LLVM::LLVMFuncOp code) {
  OpBuilder builder(code);
  Location loc = code.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()), {pointer});
  std::string name = (code.getSymName() + "_packed").str();
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  Block *body = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(body);
  SmallVector<Value> arguments;
  for (int32_t index : llvm::seq<int32_t>(code.getNumArguments())) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer,
                                     body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{index});
    arguments.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
  }
  LLVM::CallOp::create(builder, loc, code, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return name;
}
