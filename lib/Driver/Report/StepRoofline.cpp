//===- StepRoofline.cpp - What a step takes at least here -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/StepRoofline.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "Baechi/Costs/Roofline.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>
#include <ctime>
#include <limits>

using namespace mlir;
using namespace baechi;

namespace {
/// Of products, rows and columns; of copies, floats, more than a cache holds.
constexpr int kSide = 512;
constexpr size_t kCopied = size_t(16) << 20;
constexpr int kProducts = 12, kCopies = 3;

/// What this thread has computed, in seconds: others' work is not in it.
double threadSeconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// The fastest of so many calls, after one that is not counted.
double fastestSeconds(int calls, llvm::function_ref<void()> call) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= calls; ++i) {
    double start = threadSeconds();
    call();
    if (i > 0)
      least = std::min(least, threadSeconds() - start);
  }
  return least;
}

using CblasProduct = void (*)(int, int, int, int, int, int, float,
                              const float *, int, const float *, int, float,
                              float *, int);
using DnnlProduct = int (*)(char, char, int64_t, int64_t, int64_t, float,
                            const float *, int64_t, const float *, int64_t,
                            float, float *, int64_t);
using SetThreads = void (*)(int);

/// By \p library, one thread; 0: it is not there.
double measureProducts(const GemmLibrary &library) {
  llvm::Expected<SmallVector<void *>> symbols = loadGemmLibrary(library);
  if (!symbols) {
    llvm::consumeError(symbols.takeError());
    return 0;
  }
  std::vector<float> a(size_t(kSide) * kSide, 1.0f), b = a, c = a;
  constexpr int rowMajor = 101, plain = 111;
  bool isCblas = library.implementation == "openblas";
  if (!isCblas)
    reinterpret_cast<SetThreads>((*symbols)[1])(1);
  double seconds = fastestSeconds(kProducts, [&] {
    if (isCblas)
      reinterpret_cast<CblasProduct>(symbols->front())(
          rowMajor, plain, plain, kSide, kSide, kSide, 1.0f, a.data(), kSide,
          b.data(), kSide, 0.0f, c.data(), kSide);
    else
      reinterpret_cast<DnnlProduct>(symbols->front())(
          'N', 'N', kSide, kSide, kSide, 1.0f, a.data(), kSide, b.data(), kSide,
          0.0f, c.data(), kSide);
  });
  return 2.0 * kSide * kSide * kSide / seconds;
}

double measureCopies() {
  std::vector<float> from(kCopied, 1.0f), to(kCopied, 0.0f);
  // Not known to the compiler, which could leave out what nobody reads.
  void *(*volatile copy)(void *, const void *, size_t) = std::memcpy;
  double seconds = fastestSeconds(
      kCopies, [&] { copy(to.data(), from.data(), kCopied * sizeof(float)); });
  return 2.0 * kCopied * sizeof(float) / seconds;
}
} // namespace

std::optional<HostPeaks> baechi::measureHostPeaks() {
  HostPeaks peaks{0, measureCopies()};
  for (const GemmLibrary &library : gemmLibraries())
    peaks.flopsPerSecond =
        std::max(peaks.flopsPerSecond, measureProducts(library));
  if (!(peaks.flopsPerSecond > 0) || !(peaks.bytesPerSecond > 0))
    return std::nullopt;
  return peaks;
}

StepRoofline baechi::stepRoofline(ModuleOp module, const HostPeaks &peaks,
                                  int64_t cores) {
  StepRoofline roofline;
  roofline.peaks = peaks;
  roofline.cores = cores;
  std::optional<func::FuncOp> step = findFuncStep(module);
  if (!step)
    return roofline;
  SymbolTableCollection symbols;
  llvm::DenseMap<Operation *, Work> known; // by kernels
  for (Operation *op : operatorsOf(*step)) {
    func::FuncOp kernel = kernelOf(op, symbols);
    auto [entry, isNew] = known.try_emplace(kernel ? kernel : op);
    if (isNew)
      entry->second = workOf(op, kernel);
    const Work &work = entry->second;
    roofline.work.flops += work.flops;
    roofline.work.bytes += work.bytes;
    roofline.ns += 1e9 * std::max(work.flops / peaks.flopsPerSecond,
                                  work.bytes / peaks.bytesPerSecond);
  }
  return roofline;
}

std::string StepRoofline::textOf(double stepNs) const {
  std::string many =
      cores > 1 ? llvm::formatv(" of {0} cores", cores).str() : "";
  return llvm::formatv("{0:F0} % of the roofline{1}: {2:F3} ms on one core at "
                       "{3:F0} GFLOP/s and {4:F1} GB/s",
                       100 * reachedBy(stepNs), many, ns / 1e6,
                       peaks.flopsPerSecond / 1e9, peaks.bytesPerSecond / 1e9);
}

llvm::json::Object StepRoofline::toJson() const {
  return llvm::json::Object{{"ns", ns},
                            {"flops", work.flops},
                            {"bytes", work.bytes},
                            {"flops_per_second", peaks.flopsPerSecond},
                            {"bytes_per_second", peaks.bytesPerSecond},
                            {"cores", cores}};
}
