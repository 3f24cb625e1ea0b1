//===- FormKernels.cpp - The pass that outlines kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/SumOrders.h"
#include "Baechi/Transforms/ContractionPatterns.h"
#include "Baechi/Transforms/Passes.h"
#include "Phases.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FormatVariadic.h"

namespace baechi {
#define GEN_PASS_DEF_FORMKERNELS
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

namespace {
class FormKernels : public baechi::impl::FormKernelsBase<FormKernels> {
public:
  using FormKernelsBase::FormKernelsBase;
  explicit FormKernels(SumOrders *sums) : sums(sums) {}

  /// Folds ask reshapes and paddings for their shapes: what is formed must not
  /// depend on what a tool has registered.
  void getDependentDialects(DialectRegistry &registry) const override {
    FormKernelsBase::getDependentDialects(registry);
    tensor::registerInferTypeOpInterfaceExternalModels(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> found = findStep(module);
    if (failed(found))
      return signalPassFailure();
    func::FuncOp step = *found;

    // No common subexpressions are merged: shared fills and empty tensors cost
    // copies when kernels are bufferized.
    KernelCounts counted;
    // Simplification moves constants, forgets where they were, and more.
    if (failed(checkAsWritten(step)) || failed(settleResources(step)) ||
        failed(computeIndexMaps(step)))
      return signalPassFailure();
    dropEmptyParts(step);
    simplify(step);
    if (failed(checkOperations(step)))
      return signalPassFailure();
    generalize(step);
    // Before loops of extent 1 are dropped.
    skipDilationZeros(step);
    widenSums(step);
    cutOperandsToWindows(step);
    countOperators(step, counted.operatorsBefore, counted.bytesBefore);
    foldUnitDimensions(step);
    foldIntoContractions(step);
    fuseElementwise(step, maxBuffers);
    remarkNotFused(step, maxBuffers);
    reorderReductions(step);
    simplify(step);
    copyPlainResults(step);
    copyHostOperands(step);
    if (sums)
      *sums = sumOrdersOf(step);
    outlineKernels(step, rowLoops, maxBuffers, counted);
    if (failed(verifyFormed(module)))
      return signalPassFailure();

    remark::analysis(
        step.getLoc(),
        remark::RemarkOpts::name("FormKernels").category("baechi-form-kernels"))
        << remark::metric("OperatorsBefore", counted.operatorsBefore)
        << remark::metric("OperatorsAfter", counted.operatorsAfter)
        << remark::metric("Kernels", counted.kernels)
        << remark::metric("BytesBefore", counted.bytesBefore)
        << remark::metric("BytesAfter", counted.bytesAfter);
    if (reports)
      say(step, counted);
  }

private:
  /// The pass manager would show the verifier's words alone, as if the program
  /// were wrong. Locations are still those of the program's operations.
  static LogicalResult verifyFormed(ModuleOp module) {
    std::optional<Location> where;
    std::string wrong;
    {
      ScopedDiagnosticHandler first(module.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      if (!where) {
                                        where = diagnostic.getLocation();
                                        wrong = diagnostic.str();
                                      }
                                      return success();
                                    });
      if (succeeded(verify(module)))
        return success();
    }
    return emitError(where.value_or(module.getLoc()))
           << "--baechi-form-kernels made code of this operation that is not "
              "valid; this is a defect of Baechi, not of the program: "
           << wrong;
  }

  static void say(func::FuncOp step, const KernelCounts &counted) {
    auto megabytes = [](int64_t bytes) {
      return llvm::formatv("{0:f2} MB", bytes / 1e6).str();
    };
    emitRemark(step.getLoc())
        << counted.operatorsBefore << " operators that move "
        << megabytes(counted.bytesBefore) << " a step became "
        << counted.operatorsAfter << " calls of " << counted.kernels
        << " distinct kernels that move " << megabytes(counted.bytesAfter);
  }

  SumOrders *sums = nullptr;
};
} // namespace

std::unique_ptr<Pass> baechi::createFormKernels(SumOrders *sums) {
  return std::make_unique<FormKernels>(sums);
}
