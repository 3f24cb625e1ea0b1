//===- MicroBatches.cpp - Steps that only fit in micro-batches ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/LeastMemory.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Placement/Model/Pool.h"

using namespace mlir;
using namespace baechi;

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += tensorBytes(value.getType(), /*aligned=*/true).value_or(0);
  return bytes;
}

bool Compilation::isMemoryTight(HostCompiler &compiler) const {
  FailureOr<func::FuncOp> step = findFuncStep(compiler.module());
  if (failed(step))
    return false;
  int64_t memory = 0, held = bytesOf(step->getArguments()), all = held;
  for (const placement::Device &device : target.devices)
    memory += device.memory;
  for (Operation &op : step->front())
    all += bytesOf(op.getResults());
  return held <= memory &&
         llvm::any_of(target.devices, [&](const placement::Device &device) {
           return device.memory < all;
         });
}

/// What no plan without a pool goes under on one device.
static std::optional<int64_t> leastBytes(ModuleOp formed) {
  FailureOr<StepGraph> graph = buildStepGraph(formed);
  if (failed(graph) || graph->graph.ops.empty())
    return std::nullopt;
  return leastMemory(*graph).bytes;
}

std::optional<int64_t>
Compilation::leastBytesOnHost(const SplitChoice &choice) {
  placement::Machine computing = placement::withoutPools(target);
  if (computing.devices.size() != 1 || computing.devices.front().kind != "host")
    return std::nullopt;
  OwningOpRef<ModuleOp> trial = outline(choice);
  return trial ? leastBytes(*trial) : std::nullopt;
}

std::unique_ptr<HostCompiler>
Compilation::fewestMicroBatches(unsigned above, unsigned &pieces) {
  std::unique_ptr<HostCompiler> found;
  std::optional<int64_t> before;
  bool isLast = false;
  for (unsigned count : {2, 4, 8, 16}) {
    if (count <= above || listener.isStopped())
      continue;
    SplitChoice choice{.pieces = count,
                       .reductions = true,
                       .chained = true,
                       .asked = asked.split};
    // Where the batch is too small, or a cut that is asked for has another
    // number of pieces, these are not.
    (void)quietly([&] {
      std::optional<int64_t> least = leastBytesOnHost(choice);
      bool isTooMuch = least && *least > placement::computingBytes(target);
      // What needs most is cut no further, nor is it in more pieces.
      isLast = isTooMuch && before && *least >= *before;
      before = least;
      if (isTooMuch)
        return failure();
      FailureOr<std::unique_ptr<HostCompiler>> formed = form(choice, *uncut);
      if (succeeded(formed) && succeeded((*formed)->fits(target, asked)))
        found = std::move(*formed);
      return success(found != nullptr);
    });
    if (found)
      pieces = count;
    if (found || isLast)
      break;
  }
  return found;
}

void Compilation::addMicroBatches() {
  if (asked.splits != "any" || !isMemoryTight(*compilers.front()))
    return;
  Phase phase(listener, "fitting the memories");
  for (const std::unique_ptr<HostCompiler> &compiler : compilers)
    if (succeeded(quietly([&] { return compiler->fits(target, asked); })))
      return;
  if (auto formed = fewestMicroBatches(/*above=*/1, microBatches))
    compilers.push_back(std::move(formed));
}

FailureOr<CompiledProgram>
Compilation::compileOrCut(SetArguments setArguments) {
  std::vector<Diagnostic> said;
  FailureOr<CompiledProgram> program = failure();
  auto error = said.end();
  auto compileWhole = [&](bool isLast) {
    said.clear();
    ScopedDiagnosticHandler keep(source->context(),
                                 [&](Diagnostic &diagnostic) {
                                   said.push_back(std::move(diagnostic));
                                   return success();
                                 });
    program = hostCompiler->compile(target, asked, "baechi", isLast);
    error = llvm::find_if(said, [](const Diagnostic &diagnostic) {
      return diagnostic.getSeverity() == DiagnosticSeverity::Error;
    });
  };
  bool isTight = isMemoryTight(*hostCompiler),
       mayCut = isTight && mayCutToFit();
  compileWhole(/*isLast=*/!mayCut);
  std::string why;
  if (failed(program) && error != said.end() && mayCut) {
    endPhases();
    // Comparing with the whole step compiles that, too.
    bool hasLeftOut = hostCompiler->hasLeftOut();
    FailureOr<CompiledProgram> cut = cutToFit(setArguments, why);
    if (succeeded(cut))
      return cut;
    if (hasLeftOut && !listener.isStopped())
      compileWhole(/*isLast=*/true);
    // The last pieces were counted.
    if (succeeded(program) && asked.costs == "measured")
      costs.count(module());
    if (failed(program) && error != said.end() && !why.empty())
      *error << "\n" << why;
  } else if (failed(program) && error != said.end() && isTight) {
    unsigned above = 1, pieces = 0;
    if (StringRef text = asked.splits; text.consume_front("micro:"))
      (void)text.getAsInteger(10, above);
    endPhases();
    Phase phase(listener, "fitting the memories");
    // Automatic splits have tried micro-batches already, and replicas have
    // none.
    if (asked.splits != "any" && asked.replicas < 2 &&
        fewestMicroBatches(above, pieces))
      *error << "\nin " << pieces
             << " micro-batches it fits: splits=micro:" << pieces;
    else if (std::string advice = adviseCut(); !advice.empty())
      *error << "\n" << advice;
  }
  for (Diagnostic &diagnostic : said)
    source->context()->getDiagEngine().emit(std::move(diagnostic));
  return program;
}
