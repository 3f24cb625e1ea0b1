//===- Strip.cpp - Remove what placing added to a program -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/CudaBlocks.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include <array>

namespace baechi {
#define GEN_PASS_DEF_STRIP
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
using D = BaechiDialect;

/// What --baechi-place writes.
constexpr std::array planNames{D::kDevice, D::kStart, D::kSends,
                               D::kCertificate, D::kMachine};
/// What the passes before it write.
constexpr std::array annotationNames{
    D::kCost,          D::kGroup,          D::kPin,       D::kImplementation,
    D::kKernelScratch, kCudaBlocks,        kCudaCommands, kCudaTogether,
    D::kCudaProduct,   D::kCudaConvolution};

struct Strip : public baechi::impl::StripBase<Strip> {
  using StripBase::StripBase;

  /// A bare word says what to remove: --baechi-strip=plan.
  LogicalResult
  initializeOptions(StringRef options,
                    function_ref<LogicalResult(const Twine &)> error) override {
    SmallVector<StringRef> words;
    options.split(words, ' ', -1, /*KeepEmpty=*/false);
    std::string keyed;
    for (StringRef word : words)
      keyed += (word.contains('=') ? word : "what=" + word).str() + " ";
    if (failed(Pass::initializeOptions(keyed, error)))
      return failure();
    std::string mistake = wrongOption();
    return mistake.empty() ? success() : error(mistake);
  }

  /// What is wrong with the options; empty if nothing is.
  std::string wrongOption() {
    if (!llvm::is_contained({"plan", "annotations", "all"}, what.getValue()))
      return "cannot strip '" + what + "'; known: plan, annotations, all";
    for (const std::string &name : keep)
      if (!llvm::is_contained(planNames, name) &&
          !llvm::is_contained(annotationNames, name))
        return "cannot keep '" + name +
               "'; known: " + llvm::join(planNames, ", ") + ", " +
               llvm::join(annotationNames, ", ");
    return "";
  }

  bool isRemoved(StringAttr name) {
    if (name.getReferencedDialect() != dialect ||
        llvm::is_contained(keep, name.getValue()))
      return false;
    return what == "all" || llvm::is_contained(planNames, name) ||
           (what == "annotations" && llvm::is_contained(annotationNames, name));
  }

  void stripOperation(Operation *op) {
    auto kept = [&](DictionaryAttr attrs) {
      return DictionaryAttr::get(
          &getContext(),
          attrs ? llvm::filter_to_vector(attrs.getValue(),
                                         [&](NamedAttribute attr) {
                                           return !isRemoved(attr.getName());
                                         })
                : SmallVector<NamedAttribute>());
    };
    SmallVector<StringAttr> removed;
    for (NamedAttribute attr : op->getDiscardableAttrs())
      if (isRemoved(attr.getName()))
        removed.push_back(attr.getName());
    for (StringAttr name : removed)
      op->removeDiscardableAttr(name);
    // The properties of an unregistered operation may hold them, too.
    if (!op->isRegistered())
      if (auto properties =
              dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
        (void)op->setPropertiesFromAttribute(kept(properties),
                                             [&] { return op->emitOpError(); });
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function)
      return;
    SmallVector<DictionaryAttr> arguments, results;
    for (unsigned i = 0, n = function.getNumArguments(); i < n; ++i)
      arguments.push_back(kept(function.getArgAttrDict(i)));
    for (unsigned i = 0, n = function.getNumResults(); i < n; ++i)
      results.push_back(kept(function.getResultAttrDict(i)));
    function.setAllArgAttrs(arguments);
    function.setAllResultAttrs(results);
  }

  void runOnOperation() override {
    dialect = getContext().getLoadedDialect<BaechiDialect>();
    if (std::string mistake = wrongOption(); !mistake.empty()) {
      emitError(getOperation().getLoc()) << mistake;
      return signalPassFailure();
    }
    WalkResult walk = getOperation()->walk([&](Operation *op) {
      if (op->getDialect() != dialect)
        return WalkResult::advance();
      op->emitOpError() << "belongs to a partitioned program, which cannot "
                           "become one program again; strip the placed one";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    getOperation()->walk([&](Operation *op) { stripOperation(op); });
  }

  Dialect *dialect = nullptr;
};
} // namespace
