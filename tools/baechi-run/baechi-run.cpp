//===- baechi-run.cpp - Place a model, run it, report -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Execution/Ranks.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/Inputs.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Driver/Report/Files.h"
#include "Baechi/Driver/Steps/EmitLibrary.h"
#include "Baechi/Driver/Steps/StepRun.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Runtime/Launch.h"
#include "Baechi/Runtime/Machine.h"
#include "Options.h"
#include "Terminal.h"
#include "Version.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include <csignal>
#include <iostream>
#include <unistd.h>

using namespace mlir;
using namespace baechi;

namespace {
/// Says an error and ends the tool. Nothing is destroyed: a device's thread may
/// be inside a kernel for ever.
[[noreturn]] void fail(llvm::Error error) {
  llvm::handleAllErrors(
      std::move(error), [](const DiagnosedError &) {},
      [](const llvm::ErrorInfoBase &info) {
        // At once: processes of one start say it to one terminal.
        llvm::errs() << "baechi-run: error: " + info.message() + "\n";
      });
  exit(1);
}

void check(llvm::Error error) {
  if (error)
    fail(std::move(error));
}

template <typename T> T check(llvm::Expected<T> value) {
  if (!value)
    fail(value.takeError());
  return std::move(*value);
}

DevicesHere devicesHere(const placement::Machine &machine,
                        const runtime::Ranks &ranks) {
  DevicesHere here;
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    int32_t owner = ranks.ownerOf(i, machine.devices.size());
    here.onComputer += ranks.isNear(owner);
    here.inProcess += owner == ranks.rank();
  }
  return here;
}

void writeMachineFile(placement::Machine machine, const std::string &path,
                      Listener &listener,
                      const std::shared_ptr<runtime::Ranks> &ranks) {
  check(queryMachine(machine, listener, ranks));
  if (path != "-")
    return check(asError(placement::writeMachine(path, machine)));
  std::string text;
  check(asError(placement::formatMachine(machine, text)));
  llvm::outs() << text;
}

/// What does not fit the machine, before anything is compiled.
void checkMachine(const placement::Machine &machine, const RunOptions &options,
                  const runtime::Ranks *ranks, Listener &listener) {
  if (options.steps.calibrates && machine.devices.size() < 2)
    fail(llvm::createStringError(
        "--calibrate needs at least two devices in --machine"));
  if (ranks && machine.devices.size() < size_t(ranks->size()))
    fail(llvm::createStringError(
        std::to_string(ranks->size()) + " processes were started for " +
        std::to_string(machine.devices.size()) +
        " devices: start no more processes than --machine has devices"));
  size_t cores = runtime::queryHost().cores;
  size_t devices = machine.devices.size();
  if (ranks)
    return;
  std::string shared =
      std::to_string(cores) + (cores == 1 ? " core" : " cores");
  if (devices > cores)
    listener.note(llvm::Twine(devices) + " devices share " + shared +
                  (options.driver.costs == "measured"
                       ? " and take turns on them, as predicted, too"
                       : "; what is predicted without measuring has one for "
                         "each"));
  // The thread that moves bytes over simulated links computes with its core.
  if (options.driver.transfers == "network" && devices > 1 &&
      devices + 1 > cores)
    listener.note(
        llvm::Twine(devices) + " devices and what moves their messages share " +
        shared +
        (options.driver.costs == "measured" && takesAllCores(machine, cores, {})
             ? ", as predicted, too"
             : "; the prediction has one for the latter"));
}

/// The exit status: 1 when results are not what they should be.
int tell(StepRun &run, Compilation &compilation, const OutputOptions &files,
         Listener &listener) {
  RunReport report = run.report();
  bool json = files.json == "-";
  // The one who reads the JSON from a pipe has that alone there.
  report.print(json ? llvm::errs() : llvm::outs());
  if (!files.calibrate.empty() && !run.single())
    fail(llvm::createStringError("--calibrate compares with one device: " +
                                 report.singleRefused));
  check(writeFiles(files,
                   {compilation.module(), compilation.machine(), report,
                    run.placed(), run.single()},
                   listener));
  if (json)
    llvm::outs() << formatJson(report);
  return report.isRight() ? 0 : 1;
}

/// Replicas that go on each at its own pace.
void runStale(Compilation &compilation, const RunOptions &options,
              Listener &listener,
              const std::shared_ptr<runtime::Ranks> &ranks) {
  StaleRun run(compilation, *options.stale, options.steps, listener, ranks);
  check(run.run());
  StaleReport report = run.report();
  const std::string &file = options.files.json;
  report.print(file == "-" ? llvm::errs() : llvm::outs());
  if (!options.files.outputs.empty())
    check(run.writeOutputs(options.files.outputs));
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}\n", llvm::json::Value(report.toJson()));
  if (file == "-")
    llvm::outs() << text;
  else if (!file.empty())
    check(asError(placement::writeTextFile(file, text)));
}

/// Calls of a program that keeps this one until its input ends.
int serveCalls(StepRun &run, Compilation &compilation, OutputOptions files,
               Listener &listener) {
  int status = 0;
  for (std::string line; std::getline(std::cin, line);) {
    SmallVector<llvm::StringRef> words;
    llvm::StringRef(line).split(words, '\t');
    int64_t steps = 0;
    if (words.size() != 3 || words[2].getAsInteger(10, steps) || steps < 1)
      fail(llvm::createStringError(
          "--calls: '" + line +
          "' is no call: give INPUTS, OUTPUTS and STEPS, with tabs between"));
    check(run.call(words[0].str(), steps));
    files.outputs = words[1].str();
    status |= tell(run, compilation, files, listener);
    llvm::outs() << "call ended\n";
    llvm::outs().flush();
  }
  return status;
}

int run(RunOptions options, const std::shared_ptr<runtime::Ranks> &ranks) {
  Terminal terminal(options.progressLines);
  placement::Machine machine = check(readMachine(options.driver.machine));
  if (ranks || options.queryMachine.empty())
    checkMachine(machine, options, options.stale ? nullptr : ranks.get(),
                 terminal);
  if (!options.queryMachine.empty()) {
    writeMachineFile(std::move(machine), options.queryMachine, terminal, ranks);
    return 0;
  }
  if (!options.steps.reference.empty())
    options.steps.expected = check(readReference(options.steps.reference));
  const std::string &processor = options.driver.hostTarget;
  if (!processor.empty() && options.emit.empty())
    fail(llvm::createStringError(
        "--host-target: code for another processor is not run here: give "
        "--emit=so, too"));
  if (!options.emit.empty()) {
    check(emitLibrary(options.driver, std::move(machine), options.library,
                      terminal, options.steps.inputs));
    llvm::outs() << "wrote " << options.library << " and its header, for "
                 << (processor.empty() ? HostJit::hostTarget() : processor)
                 << '\n';
    return 0;
  }
  options.driver.keepObjects = ranks != nullptr;
  // A replica with a late state has all of its devices in one.
  options.driver.otherProcesses = ranks && !options.stale;
  if (options.driver.otherProcesses)
    options.driver.devicesHere = devicesHere(machine, *ranks);
  bool simulatesLinks = options.driver.transfers == "network";
  if (options.steps.calibrates && simulatesLinks)
    fail(llvm::createStringError(
        "--calibrate measures this machine's links, which "
        "--transfers=network simulates others in the place of: leave one of "
        "them off"));
  // Ranks share no memory; a calibration looks at copies.
  if ((options.driver.otherProcesses || options.steps.calibrates) &&
      !simulatesLinks)
    options.driver.transfers = "copy";
  auto compilation = check(compileModel(
      options.driver, std::move(machine), terminal, options.steps.inputs,
      options.steps.calibrates, options.stale ? options.stale->replicas : 1));
  if (options.stale) {
    runStale(*compilation, options, terminal, ranks);
    return 0;
  }
  StepRun steps(*compilation, options.steps, terminal, ranks);
  if (options.calls)
    return serveCalls(steps, *compilation, std::move(options.files), terminal);
  check(steps.run());
  return tell(steps, *compilation, options.files, terminal);
}

/// What LLVM and MLIR give up for. A thread that the system refuses is nobody's
/// defect; anything else ends as LLVM ends it.
void tellFatal(void *, const char *reason, bool) {
  if (!llvm::StringRef(reason).starts_with("pthread_create failed"))
    return;
  llvm::errs() << "baechi-run: error: a thread cannot be started ("
               << llvm::StringRef(reason).split(": ").second
               << "): let this user have more threads (ulimit -u, the control "
                  "group's pids.max), or --compile-threads=1\n";
  // Not exit(): other threads are in the midst of their work.
  _exit(1);
}

/// Flushes the standard output; what could not be written to it is an error.
void endOutput() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  if (!error)
    return;
  // Else the stream's destructor ends the process with words of its own.
  llvm::outs().clear_error();
  fail(llvm::createStringError("the standard output cannot be written: " +
                               error.message()));
}
} // namespace

int main(int argc, char **argv) {
  // A symbolizer is started with memory that a broken heap may not have: the
  // report of a crash would wait for ever.
  setenv("LLVM_DISABLE_SYMBOLIZATION", "1", /*overwrite=*/0);
  llvm::InitLLVM init(argc, argv);
  llvm::install_fatal_error_handler(tellFatal);
  // A file beyond the process's limit is an error with its place, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  tellVersion();
  RunOptions options = check(parseOptions(argc, argv));
  auto launch = runtime::findLaunch();
  if (!options.emit.empty() && launch &&
      launch->way != runtime::Launch::Way::Alone)
    fail(llvm::createStringError(
        "--emit is the work of one process: start it without " +
        launch->launcher));
  std::shared_ptr<runtime::Ranks> ranks =
      check(joinRanks(options.driver, {argv + 1, argv + argc}));
  if (ranks && !ranks->leads() && options.stale &&
      options.queryMachine.empty()) {
    check(serveStaleRank(ranks, *options.stale, options.steps.steps,
                         options.driver.watchdog, options.steps.killRank));
    return 0;
  }
  if (ranks && !ranks->leads()) {
    check(serveRank(ranks, options.driver.watchdog, options.steps.killRank));
    return 0;
  }
  int status = run(std::move(options), ranks);
  endOutput();
  return status;
}
