//===- Operands.cpp - Buffers to measure kernels on -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operands.h"
#include "Baechi/Analysis/InPlace.h"
#include "DataAccesses.h"
#include "llvm/Support/MathExtras.h"
#include <random>
#include <sys/mman.h>

using namespace mlir;
using namespace baechi;

namespace {
/// Beyond the second-level cache of today's processors; larger kernels have one
/// set.
constexpr int64_t kFootprint = 16 << 20;
constexpr int64_t kMostSets = 64;
constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = 2 << 20;
/// Numbers repeat after so many: they take longer than what is measured.
constexpr int64_t kRandomElements = 1 << 16;
/// What integers are below where nothing is gathered by them.
constexpr int64_t kFewIntegers = 4;

int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() *
         llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

void fill(char *buffer, RankedTensorType type, int64_t bound,
          std::minstd_rand &random) {
  Type element = type.getElementType();
  int64_t count = type.getNumElements();
  auto fillAs = [&](auto tag, auto value) {
    auto *elements = reinterpret_cast<decltype(tag) *>(buffer);
    int64_t known = std::min(count, kRandomElements);
    for (int64_t i = 0; i < known; ++i)
      elements[i] = static_cast<decltype(tag)>(value());
    for (int64_t next; known < count; known += next) {
      next = std::min(known, count - known);
      std::copy_n(elements, next, elements + known);
    }
  };
  // Of either sign, and far from denormals, which processors are slow on.
  auto real = [&] {
    int64_t number = random() % 4096;
    return (number % 2 ? 1 : -1) * (0.25 + number / 8192.0);
  };
  // Small elements must not become negative.
  if (element.isInteger(8) || element.isInteger(16))
    bound =
        std::min<int64_t>(bound, 1 << (element.getIntOrFloatBitWidth() - 1));
  auto index = [&] { return random() % bound; };
  auto bit = [&] { return random() % 2; };
  if (element.isF32())
    fillAs(float(), real);
  else if (element.isF64())
    fillAs(double(), real);
  else if (element.isInteger(1))
    fillAs(uint8_t(), bit);
  else if (element.isInteger(8))
    fillAs(uint8_t(), index);
  else if (element.isInteger(16))
    fillAs(uint16_t(), index);
  else if (element.isInteger(32))
    fillAs(uint32_t(), index);
  else if (element.isInteger(64))
    fillAs(uint64_t(), index);
  else if (element.isF16()) // 1.0
    fillAs(uint16_t(), [] { return 0x3c00; });
  else if (element.isBF16())
    fillAs(uint16_t(), [] { return 0x3f80; });
}
} // namespace

int64_t Operands::bytesOfSet(func::FuncOp kernel) {
  int64_t bytes = 0;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes()))
    bytes += llvm::alignTo(bytesOf(type), kAlignment);
  return bytes;
}

Operands::Operands(func::FuncOp kernel, int64_t scratchBytes) {
  auto types = llvm::concat<const Type>(kernel.getArgumentTypes(),
                                        kernel.getResultTypes());
  int64_t setBytes =
      bytesOfSet(kernel) + llvm::alignTo(scratchBytes, kAlignment);
  int64_t sets = std::clamp<int64_t>(
      kFootprint / std::max<int64_t>(setBytes, 1), 1, kMostSets);
  int64_t bytes = std::max(sets * setBytes, kAlignment);
  // Laid out as an arena is, in huge pages where it fills any.
  int64_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  bytes = llvm::alignTo(bytes, alignment);
  memory.reset(static_cast<char *>(std::aligned_alloc(alignment, bytes)));
  if (!memory)
    return;
  if (alignment == kHugePage)
    ::madvise(memory.get(), bytes, MADV_HUGEPAGE);
  // Touches the pages of results and scratch, too.
  std::fill_n(memory.get(), bytes, 0);

  // Every integer is a position that each access of the kernel may take.
  int64_t bound = findDataAccesses(kernel).positions.value_or(kFewIntegers);
  std::minstd_rand random(1);
  char *next = memory.get();
  for (int64_t set = 0; set < sets; ++set) {
    auto &list = pointers.emplace_back();
    if (set > 0)
      std::copy_n(memory.get(), setBytes, next);
    for (auto [position, type] : llvm::enumerate(types)) {
      if (set == 0 && position < kernel.getNumArguments())
        fill(next, cast<RankedTensorType>(type), bound, random);
      // Costs are of changes in place; copies are added where they are made.
      auto change =
          position < kernel.getNumArguments()
              ? std::nullopt
              : inPlaceChangeOf(kernel, position - kernel.getNumArguments());
      list.push_back(change ? list[change->argument] : next);
      next += llvm::alignTo(bytesOf(type), kAlignment);
    }
    list.push_back(next);
    next += llvm::alignTo(scratchBytes, kAlignment);
  }
}
