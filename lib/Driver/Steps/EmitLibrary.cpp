//===- EmitLibrary.cpp - From a model to a step library -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Steps/EmitLibrary.h"
#include "Baechi/Driver/Steps/StepRun.h"
#include "Baechi/Driver/Steps/StepStore.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Target/StepLibrary.h"

using namespace mlir;
using namespace baechi;

llvm::Expected<std::unique_ptr<Compilation>>
baechi::compileModel(DriverOptions options, placement::Machine machine,
                     Listener &listener, const std::string &inputs,
                     bool calibrates, int64_t replicas) {
  auto read =
      Compilation::read(std::move(options), std::move(machine), listener);
  if (!read)
    return read.takeError();
  Compilation &compilation = **read;
  // What is wrong with them is told before kernels are measured for long.
  if (llvm::Error error =
          checkFirstValues(compilation.module(), inputs, replicas))
    return std::move(error);
  if (compilation.options().measuresLater) {
    llvm::Expected<bool> compiled = compilation.compileToMeasure();
    if (!compiled)
      return compiled.takeError();
    if (*compiled)
      return read;
  }
  if (llvm::Error error = compilation.measureMachine(calibrates))
    return std::move(error);
  auto setArguments = [&](Execution &alone) {
    return setFirstValues(compilation.module(), inputs, alone, replicas)
        .takeError();
  };
  if (llvm::Error error = compilation.findCosts(setArguments))
    return std::move(error);
  if (llvm::Error error = compilation.compile(setArguments))
    return std::move(error);
  return read;
}

namespace {
/// Another listener, and whether it was told what the next compilation of the
/// same would have to tell, too.
class Heard final : public Listener {
public:
  explicit Heard(Listener &other) : other(other) {}

  void begin(StringRef what) override { other.begin(what); }
  void end(StringRef what) override { other.end(what); }
  void progress(StringRef what, size_t done, size_t total) override {
    other.progress(what, done, total);
  }
  void tell(const Twine &line) override { other.tell(line); }
  void note(const Twine &line) override {
    said = true;
    other.note(line);
  }
  void warn(const Twine &line) override {
    said = true;
    other.warn(line);
  }
  raw_ostream &diagnostics() override { return other.diagnostics(); }
  void diagnosed(const Diagnostic &diagnostic) override {
    said = true;
    other.diagnosed(diagnostic);
  }
  bool isStopped() override { return other.isStopped(); }

  bool said = false;

private:
  Listener &other;
};
} // namespace

llvm::Error baechi::emitLibrary(DriverOptions options,
                                placement::Machine machine,
                                const std::string &file, Listener &listener,
                                const std::string &inputs) {
  options.keepObjects = options.hostCalls = true;
  // Who waits for a library waits for nothing that no plan takes.
  options.measuresPeaks = false;
  llvm::Expected<MeasureBudget> budget = measureBudgetOf(options);
  // Steps with the caller's arguments run here.
  options.measuresLater = budget && budget->later && inputs.empty();
  llvm::consumeError(budget.takeError());
  if (!options.text)
    if (std::string error =
            placement::readTextFile(options.model, options.text.emplace());
        !error.empty())
      return llvm::createStringError(error);
  std::optional<StepStore> store =
      inputs.empty() ? StepStore::open(options, machine, file) : std::nullopt;
  if (store && store->take(listener))
    return llvm::Error::success();
  Heard heard(listener);
  auto compilation = compileModel(options, machine, heard, inputs);
  if (!compilation)
    return compilation.takeError();
  {
    Phase phase(listener, "linking");
    if (llvm::Error error =
            writeStepLibrary(file, (*compilation)->program().manifestText(),
                             (*compilation)->compiler().jit().objects()))
      return error;
  }
  if (store && !heard.said)
    store->keep(**compilation, listener);
  return llvm::Error::success();
}
