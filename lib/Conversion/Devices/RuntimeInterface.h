//===- RuntimeInterface.h - Functions that programs call --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_DEVICES_RUNTIMEINTERFACE_H
#define BAECHI_LIB_CONVERSION_DEVICES_RUNTIMEINTERFACE_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// The runtime's C interface (Baechi/Runtime/Abi.h, and CudaAbi.h) in the LLVM
/// dialect.
class RuntimeInterface {
public:
  explicit RuntimeInterface(mlir::ModuleOp module)
      : module(module),
        pointer(mlir::LLVM::LLVMPointerType::get(module.getContext())),
        i32(mlir::IntegerType::get(module.getContext(), 32)),
        i64(mlir::IntegerType::get(module.getContext(), 64)),
        nothing(mlir::LLVM::LLVMVoidType::get(module.getContext())) {}

  mlir::LLVM::LLVMFuncOp message(llvm::StringRef name) { // send, recv
    return declare(name, i32, {pointer, i32, i32, pointer});
  }
  mlir::LLVM::LLVMFuncOp await(llvm::StringRef name) {
    return declare(name, i32, {pointer, i32, i32});
  }
  mlir::LLVM::LLVMFuncOp borrow() {
    return declare("baechi_borrow", i32, {pointer, i32, i32, pointer});
  }
  mlir::LLVM::LLVMFuncOp argument() {
    return declare("baechi_argument", pointer, {pointer, i32, pointer});
  }
  mlir::LLVM::LLVMFuncOp bracket(llvm::StringRef name) { // operator begin, end
    return declare(name, nothing, {pointer, i32});
  }
  mlir::LLVM::LLVMFuncOp hostCall() {
    return declare("baechi_host_call", i32, {pointer, pointer, pointer});
  }
  mlir::LLVM::LLVMFuncOp diskCopy() {
    return declare("baechi_disk_copy", i32, {pointer, pointer, pointer, i64});
  }
  mlir::LLVM::LLVMFuncOp cudaCopy() {
    return declare("baechi_cuda_copy", nothing, {pointer, pointer, i64});
  }
  mlir::LLVM::LLVMFuncOp cudaConstant() {
    return declare("baechi_cuda_constant", nothing, {pointer, pointer, i64});
  }
  mlir::LLVM::LLVMFuncOp kernel(llvm::StringRef name, unsigned arguments) {
    return declare(name, nothing,
                   llvm::SmallVector<mlir::Type>(arguments, pointer));
  }

  /// A string in the program, with its terminator.
  mlir::LLVM::GlobalOp text(mlir::Location loc, const llvm::Twine &symbol,
                            llvm::StringRef value) {
    mlir::OpBuilder top = mlir::OpBuilder::atBlockBegin(module.getBody());
    std::string bytes = value.str();
    bytes.push_back('\0');
    return mlir::LLVM::GlobalOp::create(
        top, loc, mlir::LLVM::LLVMArrayType::get(top.getI8Type(), bytes.size()),
        /*isConstant=*/true, mlir::LLVM::Linkage::Internal, symbol.str(),
        top.getStringAttr(bytes));
  }

  mlir::ModuleOp module;
  mlir::Type pointer, i32, i64, nothing;

private:
  mlir::LLVM::LLVMFuncOp declare(llvm::StringRef name, mlir::Type result,
                                 llvm::ArrayRef<mlir::Type> arguments) {
    if (auto known = module.lookupSymbol<mlir::LLVM::LLVMFuncOp>(name))
      return known;
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module.getBody());
    return mlir::LLVM::LLVMFuncOp::create(
        builder, module.getLoc(), name,
        mlir::LLVM::LLVMFunctionType::get(result, arguments));
  }
};

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_DEVICES_RUNTIMEINTERFACE_H
