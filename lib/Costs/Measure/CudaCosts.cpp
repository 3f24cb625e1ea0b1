//===- CudaCosts.cpp - What kernels take on GPUs -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Runtime/CudaProducts.h"
#include "Baechi/Runtime/Machine.h"
#include "CudaConvolutions.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;
using namespace baechi;

static constexpr const char *kKind = "cuda";

namespace {
class CudaCosts final : public KernelCosts {
public:
  StringRef kind() const override { return kKind; }
  StringRef phase() const override {
    return "searching algorithms of products and convolutions";
  }
  llvm::Error adopt(ModuleOp module, Profile &profile) const override;
  std::string implementationOf(func::FuncOp kernel) const override {
    auto how =
        kernel->getAttrOfType<CudaProductAttr>(BaechiDialect::kCudaProduct);
    if (how)
      return how.getImplementation();
    auto convolution = kernel->getAttrOfType<CudaConvolutionAttr>(
        BaechiDialect::kCudaConvolution);
    return convolution ? convolution.getImplementation() : "generated";
  }
  FailureOr<size_t> measure(ModuleOp module, Profile &profile,
                            const MeasureOptions &options,
                            Progress progress) const override;

private:
  FailureOr<size_t> measureProducts(ModuleOp module, Profile &profile,
                                    Progress progress) const;
};
} // namespace

const KernelCosts &baechi::cudaCosts() {
  static const CudaCosts costs;
  return costs;
}

llvm::Error CudaCosts::adopt(ModuleOp module, Profile &profile) const {
  runtime::Expected<runtime::GpuInfo> gpu = runtime::queryGpu();
  if (!gpu)
    return llvm::createStringError(gpu.error().message());
  std::string target =
      gpu->target() + ", kernels " + std::to_string(kCudaCodeVersion);
  auto isOurs = [](const ProfileRow &row) { return row.kind == kKind; };
  if (!profile.cudaTarget.empty() && profile.cudaTarget != target &&
      llvm::any_of(profile.rows, isOurs)) {
    emitWarning(module.getLoc())
        << "the profile was measured on '" << profile.cudaTarget
        << "' but this GPU is '" << target << "'; its rows of kind '" << kKind
        << "' are measured again";
    llvm::erase_if(profile.rows, isOurs);
  }
  profile.cudaTarget = std::move(target);
  return llvm::Error::success();
}

FailureOr<size_t> CudaCosts::measure(ModuleOp module, Profile &profile,
                                     const MeasureOptions &options,
                                     Progress progress) const {
  FailureOr<size_t> products = measureProducts(module, profile, progress);
  if (failed(products))
    return failure();
  FailureOr<size_t> convolutions =
      measureConvolutions(module, profile, *this, options, progress);
  if (failed(convolutions))
    return failure();
  return *products + *convolutions;
}

FailureOr<size_t> CudaCosts::measureProducts(ModuleOp module, Profile &profile,
                                             Progress progress) const {
  SmallVector<ProfileRow> rows;
  SmallVector<int64_t> calls;
  std::vector<baechi_cuda_product> products;
  llvm::StringSet<> seen;
  ProfileIndex index(profile);
  for (auto kernel : module.getOps<func::FuncOp>()) {
    std::optional<CudaProductCalls> product = cudaProductOf(kernel);
    if (!product)
      continue;
    ProfileRow row = newRow(kernel, *this, implementationOf(kernel));
    if (!seen.insert(row.hash).second ||
        index.find(row.hash, kKind, row.implementation))
      continue;
    rows.push_back(std::move(row));
    calls.push_back(product->calls);
    products.push_back(product->product);
  }
  if (rows.empty())
    return 0;
  auto found = runtime::searchCudaProducts(
      products, {}, [&](size_t done) { progress(done, products.size()); });
  if (!found)
    return emitError(module.getLoc()) << found.error().message();
  for (auto [row, count, time] : llvm::zip_equal(rows, calls, *found)) {
    row.medianNs = count * time.medianNs;
    row.spreadNs = count * time.spreadNs;
    row.samples = time.samples;
    row.scratchBytes = time.workspaceBytes;
    row.algorithm.assign(time.algorithm.begin(), time.algorithm.end());
    profile.rows.push_back(std::move(row));
  }
  return rows.size();
}
