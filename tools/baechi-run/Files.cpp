//===- Files.cpp - What a run leaves behind -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Files.h"
#include "Baechi/Placement/Io.h"
#include "Baechi/Target/ChromeTrace.h"
#include "Calibrate.h"
#include "Inputs.h"
#include "Page.h"
#include "QueryMachine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

namespace {
/// For what gives "" or what is wrong.
llvm::Error asError(const std::string &error) {
  return error.empty() ? llvm::Error::success()
                       : llvm::createStringError(error);
}

llvm::Error writeOutputs(const std::string &path, const Execution &placed) {
  std::map<std::string, Array> arrays;
  for (size_t i = 0; i < placed.program().results.size(); ++i) {
    llvm::Expected<Array> result = placed.result(i);
    if (!result)
      return result.takeError();
    arrays["out" + std::to_string(i)] = std::move(*result);
  }
  return asError(writeArrays(path, arrays));
}

llvm::Error writeCalibrated(const std::string &path, const FinishedRun &run) {
  placement::Machine machine = run.machine;
  calibrate(machine, run.placed, *run.single);
  if (machine.meta.empty())
    describeHost(machine);
  return asError(placement::writeMachine(path, machine));
}

llvm::Error writeJson(const std::string &path, const RunReport &report) {
  std::string text =
      llvm::formatv("{0:2}", llvm::json::Value(report.toJson())).str() + "\n";
  if (path != "-")
    return asError(placement::writeTextFile(path, text));
  llvm::outs() << text;
  return llvm::Error::success();
}

llvm::Error writePage(const std::string &path, const FinishedRun &run) {
  FailureOr<std::string> page =
      formatRunPage(run.module, run.machine, run.report, run.placed.fastest());
  if (failed(page))
    return llvm::createStringError(path + ": the page cannot be made");
  return asError(placement::writeTextFile(path, *page));
}
} // namespace

llvm::Error baechi::endOutput() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  if (!error)
    return llvm::Error::success();
  // Else the stream's destructor ends the process with words of its own.
  llvm::outs().clear_error();
  return llvm::createStringError("the standard output cannot be written: " +
                                 error.message());
}

llvm::Error baechi::writeFiles(const RunOptions &options,
                               const FinishedRun &run) {
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
        return writeCalibrated(path, run);
      }))
    return error;
  if (auto error = write(options.json, [&](const std::string &path) {
        return writeJson(path, run.report);
      }))
    return error;
  return write(options.html,
               [&](const std::string &path) { return writePage(path, run); });
}
