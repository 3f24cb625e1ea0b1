//===- Files.cpp - What a run leaves behind -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/Files.h"
#include "Baechi/Costs/Measure/Calibrate.h"
#include "Baechi/Dialect/Outside.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/Inputs.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Driver/Report/Page.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Target/ChromeTrace.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

namespace {
llvm::Error writeOutputs(const std::string &path, const Execution &placed) {
  std::map<std::string, Array> arrays;
  for (size_t i = 0; i < placed.program().results.size(); ++i) {
    if (placed.program().results[i].name == kOutside)
      continue; // checked after each step
    llvm::Expected<Array> result = placed.result(i);
    if (!result)
      return result.takeError();
    arrays["out" + std::to_string(i)] = std::move(*result);
  }
  if (arrays.empty())
    return llvm::createStringError(path + " is not written: the step has no "
                                          "results");
  return asError(writeArrays(path, arrays));
}

llvm::Error writeCalibrated(const std::string &path, const FinishedRun &run,
                            Listener &listener) {
  placement::Machine machine = run.machine;
  calibrate(machine, run.placed.measured(), run.single->measured(),
            [&](const llvm::Twine &line) { listener.tell(line); });
  if (machine.meta.empty())
    describeHost(machine);
  return asError(placement::writeMachine(path, machine));
}

llvm::Error writeJson(const std::string &path, const RunReport &report) {
  // The standard output is the tool's.
  return path == "-"
             ? llvm::Error::success()
             : asError(placement::writeTextFile(path, formatJson(report)));
}

llvm::Error writePage(const std::string &path, const FinishedRun &run) {
  FailureOr<std::string> page =
      formatRunPage(run.module, run.machine, run.report, run.placed.fastest());
  if (failed(page))
    return llvm::createStringError(path + ": the page cannot be made");
  return asError(placement::writeTextFile(path, *page));
}
} // namespace

std::string baechi::formatJson(const RunReport &report) {
  return llvm::formatv("{0:2}", llvm::json::Value(report.toJson())).str() +
         "\n";
}

llvm::Error baechi::writeFiles(const OutputOptions &options,
                               const FinishedRun &run, Listener &listener) {
  auto write = [](const std::string &path, auto &&writer) {
    return path.empty() ? llvm::Error::success() : writer(path);
  };
  if (auto error = write(options.outputs, [&](const std::string &path) {
        return writeOutputs(path, run.placed);
      }))
    return error;
  if (auto error = write(options.trace, [&](const std::string &path) {
        return asError(placement::writeTextFile(
            path, chromeTrace(run.placed.program(), &run.placed.fastest())));
      }))
    return error;
  if (auto error = write(options.calibrate, [&](const std::string &path) {
        return writeCalibrated(path, run, listener);
      }))
    return error;
  if (auto error = write(options.json, [&](const std::string &path) {
        return writeJson(path, run.report);
      }))
    return error;
  return write(options.html,
               [&](const std::string &path) { return writePage(path, run); });
}
