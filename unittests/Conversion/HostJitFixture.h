//===- HostJitFixture.h - Code that a test compiles in memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_CONVERSION_HOSTJITFIXTURE_H
#define BAECHI_UNITTESTS_CONVERSION_HOSTJITFIXTURE_H

#include "Baechi/Conversion/Kernels/Common/Dialects.h"
#include "KernelRunner.h"

namespace baechi::test {

/// Compiles and looks up functions in memory.
class HostJitTest : public testing::Test {
protected:
  HostJitTest() {
    mlir::DialectRegistry registry;
    registerKernelDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry);
  }
  void create(HostJitOptions options = {}) {
    auto created = HostJit::create(std::move(options));
    ASSERT_TRUE(static_cast<bool>(created));
    jit = std::move(*created);
  }
  /// Empty when it went well.
  std::string add(const std::string &text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    return module ? llvm::toString(jit->add(*module)) : "does not parse";
  }
  template <typename Function> Function *get(llvm::StringRef name) {
    auto address = jit->lookup(name);
    if (address)
      return reinterpret_cast<Function *>(*address);
    ADD_FAILURE() << llvm::toString(address.takeError());
    return nullptr;
  }
  std::string lookupError(llvm::StringRef name) {
    auto address = jit->lookup(name);
    return address ? "" : llvm::toString(address.takeError());
  }
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<HostJit> jit;
};

} // namespace baechi::test

#endif
