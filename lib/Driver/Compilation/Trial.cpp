//===- Trial.cpp - Which of several programs is the fastest ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels are measured on one device. What they take when others compute beside
// them and share its caches and memory, predictions know as one number for all;
// small pieces may be slower than that. So the step as it is and the one in
// pieces run before one of them is chosen.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/Load.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <limits>

using namespace mlir;
using namespace baechi;

namespace {
/// After one that warms caches up; more while they are short.
constexpr int kFewestSteps = 2, kMostSteps = 10;
constexpr double kSeconds = 0.5;

/// Of what a program's devices do and with which code, whatever is predicted of
/// it: links that are measured anew do not change it.
std::string hashOf(HostCompiler &compiler, const CompiledProgram &program) {
  runtime::Program steps = *runtime::Program::parse(program.manifestText());
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::StringMap<std::string> code;
  for (auto kernel : compiler.module().getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel))
      code[kernel.getSymName()] =
          kernelHash(kernel) + "/" +
          kernelCostsOf("host").implementationOf(kernel);
  for (const runtime::DeviceInfo &device : steps.devices) {
    os << device.kind << "\n";
    for (const runtime::OperatorInfo &op : device.operators)
      os << op.id << " " << code.lookup(op.kernel) << "\n";
  }
  for (const runtime::QueueInfo &queue : steps.queues) {
    os << queue.from << " to " << queue.to;
    if (queue.link)
      os << " " << queue.link->latencyNs << " " << queue.link->bytesPerUs;
    os << "\n";
    for (const runtime::MessageInfo &message : queue.messages)
      os << message.producer << " " << message.output << " " << message.bytes
         << " " << message.lent << "\n";
  }
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(ArrayRef(digest).take_front(16), /*LowerCase=*/true);
}
} // namespace

/// On GPUs and on other processes' devices the prediction decides, and where
/// steps overlap, which those that are tried do not: of a period, and of
/// parameters in slices.
bool Compilation::mayTry() const {
  bool isHere = !asked.otherProcesses &&
                llvm::all_of(target.devices, [](const placement::Device &each) {
                  return each.kind == "host" || placement::isPool(each);
                });
  return isHere && asked.costs == "measured" && !slicesParameters &&
         asked.objective != "period";
}

llvm::Expected<size_t>
Compilation::choose(llvm::MutableArrayRef<Candidate> candidates,
                    SetArguments setArguments) {
  llvm::Expected<bool> tried = tryAll(candidates, setArguments);
  if (!tried)
    return tried.takeError();
  auto timeOf = [&](const Candidate &candidate) {
    std::optional<int64_t> ns =
        *tried ? candidate.triedNs : candidate.predictedNs;
    return ns.value_or(std::numeric_limits<int64_t>::max());
  };
  return llvm::min_element(candidates,
                           [&](const Candidate &a, const Candidate &b) {
                             return timeOf(a) < timeOf(b);
                           }) -
         candidates.begin();
}

llvm::Expected<bool>
Compilation::tryAll(llvm::MutableArrayRef<Candidate> candidates,
                    SetArguments setArguments) {
  size_t fitting = 0, cut = 0;
  for (auto [compiler, candidate] : llvm::zip_equal(compilers, candidates))
    if (candidate.program) {
      ++fitting;
      cut += !compiler->splits().classes.empty();
    }
  if (fitting < 2 || (cut == 0 && !withWholeLoops) || !mayTry())
    return false;
  auto note = [&](const llvm::Twine &why) {
    // By default predictions may decide for good.
    if (!splitsAreSaid)
      return;
    isFromProfile = false;
    listener.note("steps in pieces were not compared by running them, "
                  "predictions decide: " +
                  why);
  };
  if (!canRunSteps(module())) {
    note("the host program computes parts of a step");
    return false;
  }
  Profile added;
  added.target = costs.profile().target;
  added.compiler = costs.profile().compiler;
  for (auto [compiler, candidate] : llvm::zip_equal(compilers, candidates)) {
    if (!candidate.program)
      continue;
    std::string hash = hashOf(*compiler, *candidate.program);
    madeOf.plans.push_back(hash);
    if (const PlanRow *known = costs.profile().findPlan(hash)) {
      candidate.triedNs = known->stepNs;
      continue;
    }
    runtime::LoadWatch load;
    llvm::Expected<int64_t> ns =
        tryOut(*compiler, *candidate.program, setArguments);
    std::string why;
    if (!ns) {
      // The memory of this machine may be too small for it, say.
      why = llvm::toString(ns.takeError());
      if (listener.isStopped())
        return llvm::createStringError(why);
    } else if (load.isDisturbed(placement::numComputing(target))) {
      why = "other work kept the processors from it";
    }
    if (!why.empty()) {
      for (Candidate &each : candidates)
        each.triedNs.reset();
      note(why);
      return false;
    }
    candidate.triedNs = *ns;
    added.plans.push_back({hash, *ns});
  }
  if (!asked.profile.empty() && !added.plans.empty())
    if (llvm::Error error = addToProfile(asked.profile, added))
      listener.warn("what was measured is not kept: " +
                    llvm::toString(std::move(error)));
  return true;
}

llvm::Expected<int64_t> Compilation::tryOut(HostCompiler &compiler,
                                            const CompiledProgram &program,
                                            SetArguments setArguments) {
  use(compiler);
  Phase phase(listener, "trying steps");
  auto created = Execution::create(compiler.jit(), program, asked.watchdog);
  if (!created)
    return created.takeError();
  if (llvm::Error error = setArguments(**created))
    return std::move(error);
  int64_t fastest = std::numeric_limits<int64_t>::max(), spent = 0;
  for (int step = 0; step <= kMostSteps; ++step) {
    if (step > kFewestSteps && double(spent) > kSeconds * 1e9)
      break;
    phase(step, kMostSteps + 1);
    if (listener.isStopped())
      return llvm::createStringError("stopped");
    if (llvm::Error error = (*created)->step(/*counted=*/true))
      return std::move(error);
    int64_t ns = (*created)->timeline().wallNs;
    spent += ns;
    if (step > 0)
      fastest = std::min(fastest, ns);
  }
  return fastest;
}

void Compilation::findOrigins(ArrayRef<Candidate> candidates) {
  bool isAlone = candidates.size() == 1;
  // Another time there may be memory for all of them.
  bool allFit = llvm::all_of(candidates, [](const Candidate &candidate) {
    return candidate.program.has_value();
  });
  // Which code is the fastest is known of one program, and cuts that make a
  // step fit are compared by what nobody keeps.
  isFromProfile &= isAlone || (asked.splits == "exact" && allFit && !cutReport);
  madeOf.program = costs.choiceProgram();
  for (const std::unique_ptr<HostCompiler> &compiler : compilers) {
    isFromProfile &= isAlone || costs.isKnown(compiler->module());
    for (auto kernel : compiler->module().getOps<func::FuncOp>())
      if (kernel->hasAttr(BaechiDialect::kKernel))
        madeOf.kernels.push_back(kernelHash(kernel));
  }
  llvm::sort(madeOf.kernels);
  llvm::sort(madeOf.plans);
}
