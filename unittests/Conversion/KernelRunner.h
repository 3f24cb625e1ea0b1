//===- KernelRunner.h - Compiles and calls kernels written as MLIR -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_CONVERSION_KERNELRUNNER_H
#define BAECHI_UNITTESTS_CONVERSION_KERNELRUNNER_H

#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Conversion/Kernels/Common/Dialects.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace baechi::test {

/// A 64-byte aligned array, as kernels take them.
template <typename T> class Array {
public:
  explicit Array(size_t count, T value = T()) : count(count) {
    size_t bytes = (count * sizeof(T) + 127) / 64 * 64;
    memory.reset(static_cast<T *>(std::aligned_alloc(64, bytes)));
    std::fill_n(memory.get(), count, value);
  }
  Array(std::initializer_list<T> values) : Array(values.size()) {
    std::copy(values.begin(), values.end(), memory.get());
  }
  /// Small values with no pattern that a wrong index would keep.
  static Array numbers(size_t count, unsigned seed = 1) {
    Array array(count);
    uint32_t state = 12345 + 977 * seed;
    for (T &value : array) {
      state = state * 1664525 + 1013904223;
      value = static_cast<T>((state >> 16) % 200) / T(100) - T(1);
    }
    return array;
  }
  T *data() const { return memory.get(); }
  T *begin() const { return data(); }
  T *end() const { return data() + count; }
  T &operator[](size_t index) const { return data()[index]; }
  size_t size() const { return count; }

private:
  struct Free {
    void operator()(T *pointer) const { std::free(pointer); }
  };
  size_t count;
  std::unique_ptr<T[], Free> memory;
};

/// A module of kernels, lowered and compiled.
class Kernels {
public:
  explicit Kernels(const std::string &text, HostJitOptions options = {})
      : Kernels(
            text, registerKernelDialects,
            [](mlir::ModuleOp kernels) { return lowerKernels(kernels); },
            hostSymbol, std::move(options)) {}
  /// \p symbol: what a kernel is called once it is lowered.
  Kernels(const std::string &text, void (*registerAll)(mlir::DialectRegistry &),
          llvm::function_ref<mlir::LogicalResult(mlir::ModuleOp)> lower,
          std::string (*symbol)(llvm::StringRef kernel),
          HostJitOptions options = {})
      : symbol(symbol) {
    mlir::DialectRegistry registry;
    registerAll(registry);
    context = std::make_unique<mlir::MLIRContext>(registry);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    if (!module || mlir::failed(lower(*module))) {
      ADD_FAILURE() << "the kernels do not lower";
      return;
    }
    auto created = HostJit::create(std::move(options));
    if (!created) {
      ADD_FAILURE() << llvm::toString(created.takeError());
      return;
    }
    jit = std::move(*created);
    if (auto error = jit->add(*module))
      ADD_FAILURE() << llvm::toString(std::move(error));
  }

  /// Calls a kernel on its arguments' and results' arrays, with the scratch
  /// that it asks for.
  template <typename... Arrays>
  void call(llvm::StringRef name, const Arrays &...arrays) {
    if (!jit)
      return;
    auto function = jit->lookup(symbol(name));
    if (!function) {
      ADD_FAILURE() << llvm::toString(function.takeError());
      return;
    }
    Array<char> scratch(scratchBytes(name));
    reinterpret_cast<void (*)(decltype((void *)arrays.data())..., void *)>(
        *function)(arrays.data()..., scratch.data());
  }

  int64_t scratchBytes(llvm::StringRef name) {
    return module->lookupSymbol(symbol(name))
        ->getAttrOfType<mlir::IntegerAttr>(BaechiDialect::kKernelScratch)
        .getInt();
  }

private:
  std::string (*symbol)(llvm::StringRef kernel);
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<HostJit> jit;
};

inline void expectNear(const Array<float> &actual,
                       const std::vector<float> &expected,
                       float tolerance = 1e-5f) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i],
                tolerance * std::max(1.0f, std::abs(expected[i])))
        << "at " << i;
}

} // namespace baechi::test

#endif // BAECHI_UNITTESTS_CONVERSION_KERNELRUNNER_H
