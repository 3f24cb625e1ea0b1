//===- CutToFit.cpp - Steps that only fit in pieces -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Cuts/CutAdvice.h"
#include "Baechi/Driver/Cuts/FittingCuts.h"
#include "Baechi/Driver/Cuts/SameBits.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"

using namespace mlir;
using namespace baechi;

/// So many ways that fit are compiled and compared with the whole step.
static constexpr int kMostCompared = 4;

/// No step is too long.
static constexpr int64_t kAnyTime = std::numeric_limits<int64_t>::max();

/// How \p way is asked for, beside what was \p asked for.
static CutRequest requestOf(const SplitChoice &way,
                            const CompileOptions &asked) {
  CutRequest request{way.chained ? way.pieces : 0, {}};
  request.rules.assign(way.asked.begin() + asked.split.size(), way.asked.end());
  return request;
}

/// How \p machine, which has a pool, is asked for.
static std::string poolText(StringRef machine) {
  return ("--machine=" + machine + " (in Python spill_to=\"" +
          machine.split('+').second + "\")")
      .str();
}

static std::string textOf(const std::optional<CutAdvice> &advice,
                          const CompileOptions &asked) {
  if (!advice)
    return "";
  std::string request = requestOf(advice->way, asked).text();
  if (advice->fits)
    return "cut by " + request + " it fits";
  std::string text = "no cut that was tried fits: by " + request + " '" +
                     advice->most.name + "' by itself needs " +
                     placement::bytesTextUp(advice->most.bytes, 2);
  if (advice->bytes > 0)
    text += ", and the step fits " + std::to_string(advice->bytes) + " bytes";
  if (!advice->machine.empty())
    text += "; so cut it fits with a pool beside it, where tensors wait: " +
            poolText(advice->machine);
  return text;
}

/// Sets the code of \p module's kernels to what no library computes.
static void useGeneratedCode(ModuleOp module) {
  auto generated = StringAttr::get(module.getContext(), kGenerated);
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel) &&
        hostImplementations(kernel).size() > 1)
      kernel->setAttr(BaechiDialect::kImplementation, generated);
}

bool Compilation::mayCutToFit() const {
  return asked.fitMemory == "auto" && asked.replicas == 1 &&
         asked.exchange.empty() && !hasDeviceOf("cuda") &&
         (asked.splits == "none" || asked.splits == "exact" ||
          asked.splits == "any");
}

llvm::Expected<std::string>
Compilation::differenceFromWhole(HostCompiler &whole,
                                 const CompiledProgram &program,
                                 SetArguments setArguments) {
  if (!canRunSteps(module()))
    return llvm::createStringError(
        "the host program computes parts of a step, which are not there yet");
  if (asked.otherProcesses || !asked.hostTarget.empty())
    return llvm::createStringError("the program is not run here");
  HostCompiler &cut = *hostCompiler;
  use(whole);
  llvm::Expected<std::unique_ptr<Execution>> single = createSingle("host");
  use(cut);
  if (!single)
    return single.takeError();
  if (!*single)
    return llvm::createStringError(
        "this machine's memory cannot hold the whole step");
  auto placed = Execution::create(cut.jit(), program, asked.watchdog);
  if (!placed)
    return placed.takeError();
  return differenceOfBits(**placed, **single, setArguments, listener);
}

FailureOr<CompiledProgram>
Compilation::compileInPieces(FittingCut &fitting, SetArguments setArguments,
                             int64_t tooLongNs, std::string &differs) {
  HostCompiler &before = *hostCompiler;
  use(*fitting.compiler);
  bool keepsBits = asked.splits != "any";
  if (asked.splits == "none" && fitting.unproven.empty())
    useGeneratedCode(module());
  llvm::Error error = findCurrentCosts(setArguments);
  FailureOr<CompiledProgram> program = failure();
  if (error)
    llvm::consumeError(std::move(error));
  else
    program = hostCompiler->compile(target, asked, "baechi", /*isLast=*/false);
  if (succeeded(program) && aimedNs(*program) >= tooLongNs)
    program = failure();
  if (succeeded(program) && keepsBits && !fitting.unproven.empty()) {
    llvm::Expected<std::string> difference =
        differenceFromWhole(*compilers.front(), *program, setArguments);
    if (!difference)
      differs = "whether the pieces have its bits is not known: " +
                llvm::toString(difference.takeError());
    else if (!difference->empty())
      differs = "the pieces' " + *difference +
                " differs from the whole step's (" + fitting.unproven + ")";
    if (!differs.empty())
      program = failure();
  }
  if (failed(program)) {
    use(before);
    // Another may get its place in memory.
    std::erase_if(singlePrograms, [&](const auto &entry) {
      return entry.first.first == fitting.compiler.get();
    });
    fitting.compiler.reset();
  }
  return program;
}

FailureOr<CompiledProgram> Compilation::takeCut(FittingCut &fitting,
                                                const Neediest &most,
                                                SetArguments setArguments,
                                                int64_t tooLongNs,
                                                std::string &why) {
  FailureOr<CompiledProgram> program = failure();
  std::string differs;
  (void)forms.quietly([&] {
    program = compileInPieces(fitting, setArguments, tooLongNs, differs);
    return LogicalResult(program);
  });
  endPhases();
  CutReport report;
  report.neediest = most.name;
  report.needs = most.bytes;
  report.device = most.device;
  report.memory = most.memory;
  report.request = requestOf(fitting.way, asked);
  if (failed(program)) {
    // No option asks for pieces whose sums stay in order.
    if (!differs.empty())
      why = (fitting.way.ordered ? "in pieces"
                                 : "cut by " + report.request.text()) +
            " it fits, but " + differs;
    return failure();
  }
  using Bits = CutReport::Bits;
  bool isExact = fitting.way.exact && !fitting.way.reductions;
  report.bits = asked.splits == "any"      ? Bits::Rounded
                : isExact                  ? Bits::Exact
                : fitting.unproven.empty() ? Bits::Proven
                                           : Bits::Compared;
  report.unproven = fitting.unproven;
  cutReport = std::move(report);
  compilers.push_back(std::move(fitting.compiler));
  return program;
}

FailureOr<CompiledProgram> Compilation::cutToFit(SetArguments setArguments,
                                                 std::string &why) {
  FittingCuts cuts(forms, *compilers.front(), firstChoice);
  if (!cuts.neediest())
    return failure();
  bool hasRequest = false;
  if (std::optional<WholeStep> whole = findWholeStep(/*fitted=*/nullptr))
    cuts.compareUntil(whole->ampleNs, /*instead=*/false);
  else if (placement::numComputing(target) == 1)
    return failure(); // With ample memory, too, something is wrong.
  for (int taken = 0; taken < kMostCompared; ++taken) {
    std::optional<FittingCut> cut = cuts.next();
    if (!cut)
      break;
    std::string differs;
    FailureOr<CompiledProgram> program =
        takeCut(*cut, *cuts.neediest(), setArguments, kAnyTime, differs);
    if (succeeded(program))
      return program;
    if (!hasRequest && !differs.empty()) {
      why = std::move(differs);
      hasRequest = !cut->way.ordered;
    }
    cuts.preferProven();
  }
  if (why.empty() && !listener.isStopped()) {
    endPhases();
    Phase phase(listener, "fitting the memories");
    why = textOf(adviseLeanest(forms, *compilers.front(), cuts, firstChoice),
                 asked);
  }
  return failure();
}

void Compilation::addMicroBatches() {
  if (asked.splits != "any" || !forms.isMemoryTight(*compilers.front()))
    return;
  Phase phase(listener, "fitting the memories");
  for (const std::unique_ptr<HostCompiler> &compiler : compilers)
    if (forms.fits(*compiler))
      return;
  if (auto formed = fewestMicroBatches(forms, /*above=*/1, microBatches)) {
    microCompiler = compilers.size();
    compilers.push_back(std::move(formed));
  }
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
  bool isTight = forms.isMemoryTight(*hostCompiler),
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
    // Looking for cuts takes longer; automatic splits have tried micro-batches
    // already, and replicas have none.
    if (asked.fitMemory == "never" && forms.fitsRewritten(*hostCompiler))
      *error << "\n"
             << "with values computed again, or tensors in a pool, it fits: "
                "--fit-memory=auto (in Python fit_memory=\"auto\")";
    else if (asked.splits != "any" && asked.replicas < 2 &&
             fewestMicroBatches(forms, above, pieces))
      *error << "\nin " << pieces
             << " micro-batches it fits: " << CutRequest{pieces, {}}.text();
    else if (std::string advice =
                 textOf(adviseCut(forms, *hostCompiler, firstChoice), asked);
             !advice.empty())
      *error << "\n" << advice;
  }
  if (failed(program) && error != said.end() && asked.fitMemory != "never" &&
      !listener.isStopped()) {
    endPhases();
    Phase phase(listener, "fitting the memories");
    if (std::optional<std::string> machine = advisePool(forms, *hostCompiler))
      *error << "\n"
             << "with a pool beside it, where tensors wait, the step fits: "
             << poolText(*machine);
  }
  for (Diagnostic &diagnostic : said)
    source->context()->getDiagEngine().emit(std::move(diagnostic));
  return program;
}
