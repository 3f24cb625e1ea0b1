//===- CheckOptions.cpp - What is wrong with a compilation's options ------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Pipelines/CompileOptions.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Transforms/Passes.h"

using namespace baechi;

llvm::Error baechi::checkOptions(const CompileOptions &options) {
  if (std::string wrong = wrongPlacer(options.placer); !wrong.empty())
    return llvm::createStringError(wrong);
  if (options.placer == "expert" && options.expert.empty())
    return llvm::createStringError(
        "--placer=expert follows an expert's rules: give their file, "
        "--expert=FILE (docs/formats.md)");
  placement::Budget budget;
  if (std::string wrong = placement::parseBudget(options.budget, budget);
      !wrong.empty())
    return llvm::createStringError("--budget: " + wrong);
  if (std::string wrong = wrongObjective(options.objective); !wrong.empty())
    return llvm::createStringError(wrong);
  if (llvm::Error wrong = splitChoiceOf(options, /*devices=*/1).takeError())
    return wrong;
  if (llvm::Error wrong = exchangeChoiceOf(options).takeError())
    return wrong;
  if (options.factors != "none" && options.factors != "smaller")
    return llvm::createStringError("unknown factors '" + options.factors +
                                   "'; known: none, smaller");
  if (options.transfers != "lend" && options.transfers != "copy" &&
      options.transfers != "network")
    return llvm::createStringError("unknown transfers '" + options.transfers +
                                   "'; known: lend, copy, network");
  if (options.fitMemory != "auto" && options.fitMemory != "whole" &&
      options.fitMemory != "never")
    return llvm::createStringError("unknown fit-memory '" + options.fitMemory +
                                   "'; known: auto, whole, never");
  if (llvm::Error wrong = unrollChoiceOf(options).takeError())
    return wrong;
  if (llvm::Error wrong = loopChoiceOf(options).takeError())
    return wrong;
  if (options.costs != "measured" && options.costs != "roofline")
    return llvm::createStringError("unknown costs '" + options.costs +
                                   "'; known: measured, roofline");
  if (llvm::Error wrong = measureBudgetOf(options).takeError())
    return wrong;
  if (std::string wrong = wrongCudaMath(options.cudaMath); !wrong.empty())
    return llvm::createStringError("--cuda-math: " + wrong);
  if (std::string wrong = wrongCudaConvolutions(options.cudaConvolutions);
      !wrong.empty())
    return llvm::createStringError("--cuda-convolutions: " + wrong);
  if (options.costs == "roofline" && !options.profile.empty())
    return llvm::createStringError(
        "--costs=roofline measures nothing, so --profile would not be used: "
        "give one of them");
  if (options.costs == "roofline" && !options.stepTimes.empty())
    return llvm::createStringError(
        "--costs=roofline takes no measured times, so --step-times would not "
        "be used: give one of them");
  if (!options.hostTarget.empty() && options.costs != "roofline")
    return llvm::createStringError(
        "--host-target: code for another processor is not measured here: give "
        "--costs=roofline, too");
  if (options.workers < 1)
    return llvm::createStringError("--workers needs a positive number");
  if (options.threads < 1)
    return llvm::createStringError("--compile-threads needs a positive number");
  return llvm::Error::success();
}
