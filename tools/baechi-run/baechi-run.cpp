//===- baechi-run.cpp - Place a model, run it, report -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineSpec.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Target/StepLibrary.h"
#include "Files.h"
#include "QueryMachine.h"
#include "Ranks.h"
#include "Run.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace baechi;

llvm::ExitOnError baechi::exitOnError("baechi-run: error: ");

static std::vector<int64_t> residentBytesOf(const runtime::Program &program) {
  std::vector<int64_t> bytes(program.devices.size());
  for (const runtime::ArgumentInfo &argument : program.arguments)
    bytes[argument.device] += llvm::alignTo(argument.bytes, kAlignment);
  return bytes;
}

int Run::operator()() {
  std::string error;
  std::optional<placement::Machine> target =
      readMachineSpec(options.machine, error);
  if (!target)
    exitOnError(llvm::createStringError(error));
  machine = std::move(*target);
  if (StringRef(options.machine).starts_with("cuda") &&
      !StringRef(options.machine).contains('@') &&
      !llvm::sys::fs::exists(options.machine))
    takeGpuMemory(machine);
  if (!options.queryMachine.empty()) {
    exitOnError(queryMachine(machine, options.queryMachine));
    return 0;
  }
  for (const placement::Device &device : machine.devices)
    if (device.kind != "host" && device.kind != "cuda")
      exitOnError(llvm::createStringError(
          "device '" + device.name + "' is of kind '" + device.kind +
          "'; baechi-run executes on host and cuda devices"));
  if (!options.calibrate.empty() && machine.devices.size() < 2)
    exitOnError(llvm::createStringError(
        "--calibrate needs at least two devices in --machine"));
  if (!options.reference.empty())
    expected = exitOnError(readReference(options.reference));
  if (ranks && machine.devices.size() < size_t(ranks->size()))
    exitOnError(llvm::createStringError(
        "mpirun started " + std::to_string(ranks->size()) + " processes for " +
        std::to_string(machine.devices.size()) +
        " devices: start no more processes than --machine has devices"));
  size_t cores = runtime::queryHost().cores;
  if (!ranks && machine.devices.size() > cores)
    llvm::errs() << "baechi-run: note: " << machine.devices.size()
                 << " devices share " << cores
                 << (cores == 1 ? " core" : " cores")
                 << "; the prediction has one for each\n";

  compileModel();
  if (!options.emit.empty())
    return emitLibrary();
  execute();
  return tell();
}

int Run::emitLibrary() {
  exitOnError(writeStepLibrary(options.output, report.compiled.manifest,
                               compiler->jit().objects()));
  llvm::outs() << "wrote " << options.output << " and its header, for "
               << HostJit::hostTarget() << '\n';
  return 0;
}

int Run::tell() {
  report.model = options.model;
  report.machine = options.machine;
  report.placer = options.place.placer;
  report.target = HostJit::hostTarget();
  report.costs = options.costs;
  if (hasDeviceOf("cuda"))
    report.cudaMath = options.cudaMath;
  report.operatorsBefore = compiler->operatorsBefore();
  report.operators = compiler->operatorsFormed();
  report.kernels = compiler->kernels();
  report.formSeconds = compiler->formSeconds();
  report.kernelSeconds = compiler->kernelSeconds();
  report.kernelsFromStore = compiler->kernelsFromStore();
  report.program = placed->program();
  report.residentBytes = residentBytesOf(report.program);
  report.measured = placed->measurement();
  report.timeline = placed->fastest();
  if (single) {
    report.single = single->measurement();
    report.singlePredictedNs = report.compiled.singleDeviceNs;
  }
  // The one who reads the JSON from a pipe has that alone there.
  report.print(options.json == "-" ? llvm::errs() : llvm::outs());

  if (!options.calibrate.empty() && !single)
    exitOnError(llvm::createStringError(
        "--calibrate compares with one device: " + report.singleRefused));
  exitOnError(writeFiles(
      options, {compiler->module(), machine, report, *placed, single.get()}));
  bool wrong = !report.difference.empty() ||
               (report.reference && !report.reference->agrees());
  return wrong ? 1 : 0;
}

int main(int argc, char **argv) {
  // A symbolizer is started with memory that a broken heap may not have: the
  // report of a crash would wait for ever.
  setenv("LLVM_DISABLE_SYMBOLIZATION", "1", /*overwrite=*/0);
  llvm::InitLLVM init(argc, argv);
  RunOptions options = parseOptions(argc, argv);
  std::shared_ptr<runtime::Ranks> ranks = exitOnError(joinRanks(options));
  if (ranks && !ranks->leads())
    return serveRank(options, ranks);
  int status = Run(std::move(options), std::move(ranks))();
  exitOnError(endOutput());
  return status;
}
