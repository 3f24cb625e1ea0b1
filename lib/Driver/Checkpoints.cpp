//===- Checkpoints.cpp - What a program asks to compute again -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program with checkpoints computes more than one without, and holds less.
// Where the memories are large enough they are undone; where they are not, the
// program as it is written competes with the plans for the one without them, in
// which tensors wait or are computed again by price.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/CheckpointReport.h"
#include "Baechi/Driver/Compilation.h"
#include "Baechi/Driver/Errors.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

llvm::Error Compilation::undoCheckpoints() {
  if (!hasCheckpoints(*uncut))
    return llvm::Error::success();
  OwningOpRef<ModuleOp> undone = uncut->clone();
  UndoneCheckpoints found;
  PassManager passes(undone->getContext());
  passes.addPass(createInlineStep());
  passes.addPass(createUndoCheckpoints(&found));
  if (failed(passes.run(*undone)))
    return diagnosed();
  if (found.operators == 0)
    return llvm::Error::success();
  checkpoints = found;
  asWritten = std::exchange(uncut, std::move(undone));
  return llvm::Error::success();
}

void Compilation::addAsWritten(const SplitChoice &choice) {
  if (!asWritten || !isMemoryTight(*compilers.front()))
    return;
  Phase phase(listener, "fitting the memories");
  if (succeeded(
          quietly([&] { return compilers.front()->fits(target, asked); })))
    return;
  (void)quietly([&] {
    FailureOr<std::unique_ptr<HostCompiler>> formed = form(choice, *asWritten);
    if (succeeded(formed)) {
      written = compilers.size();
      compilers.push_back(std::move(*formed));
    }
    return LogicalResult(formed);
  });
}

void Compilation::reportCheckpoints(size_t &best,
                                    std::vector<Candidate> &candidates) {
  if (!checkpoints)
    return;
  compiled.manifest["checkpoints"] =
      toJson(*checkpoints, /*areKept=*/written == best);
  if (!written)
    return;
  // One of the two is the whole step that all that follows is about.
  use(*compilers[best]);
  if (written == best) {
    std::swap(compilers.front(), compilers[best]);
    std::swap(candidates.front(), candidates[best]);
    best = 0;
  }
  compilers.erase(compilers.begin() + *written);
  candidates.erase(candidates.begin() + *written);
  best -= best > *written;
  written.reset();
}

llvm::json::Object baechi::toJson(const UndoneCheckpoints &checkpoints,
                                  bool areKept) {
  int64_t kept = areKept ? checkpoints.operators : 0;
  int64_t undone = checkpoints.operators - kept;
  std::string line =
      llvm::formatv("jax.checkpoint: {0} {1}: kept {2}, undone {3} ({4} {5})",
                    checkpoints.operators,
                    checkpoints.operators == 1 ? "operator" : "operators", kept,
                    undone, placement::bytesText(checkpoints.bytes, 2),
                    areKept ? "are computed again" : "are kept instead");
  return llvm::json::Object{{"operators", checkpoints.operators},
                            {"kept", kept},
                            {"undone", undone},
                            {"bytes", checkpoints.bytes},
                            {"text", llvm::json::Array{line}}};
}
