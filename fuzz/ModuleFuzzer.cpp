//===- ModuleFuzzer.cpp - Modules of every kind in the passes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a module as text. Whatever it says, each pipeline either
// succeeds with valid IR or fails with an error at a known location, and what
// was annotated, placed and stripped is what it was.
//
// The libraries need no instrumentation: what counts as new is a diagnostic,
// apart from what it quotes, of a pass.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Passes.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Target/Export.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include <csignal>
#include <cstdlib>
#include <unistd.h>

using namespace mlir;

namespace {
/// Passes of a pipeline one by one, so that what one leaves is verified.
constexpr std::initializer_list<const char *> pipelines[] = {
    // What a program goes through on its way to devices.
    {"baechi-annotate-costs", "baechi-colocate",
     "baechi-fuse{machine=host:2@1GiB}", "baechi-place{placer=metf budget=0}",
     "baechi-verify-placed", "baechi-explain", "baechi-partition",
     "baechi-verify-partitioned", "baechi-plan-memory",
     "baechi-verify-partitioned", "baechi-lower"},
    {"baechi-form-kernels", "baechi-kernel-scratch", "baechi-annotate-costs",
     "baechi-place{placer=mtopo machine=host:3@1GiB budget=0}",
     "baechi-partition", "baechi-plan-memory", "baechi-lower-kernels",
     "baechi-lower"},
    {"baechi-form-kernels{row-loops=false}", "baechi-annotate-costs",
     "baechi-place{placer=msct machine=host:2@1GiB budget=0}",
     "baechi-export-iree"},
    {"baechi-expand-replicas", "baechi-replicate{replicas=2}",
     "baechi-form-kernels", "baechi-pin-replicas{machine=host:2}"},
    // Passes on what stands there already.
    {"baechi-constrain{pins=*=host0 groups=*=g}",
     "baechi-place{budget=0 machine=host:2}"},
    {"baechi-fuse"},
    {"baechi-place{placer=metf budget=0}", "baechi-explain"},
    {"baechi-verify-placed"},
    {"baechi-explain"},
    {"baechi-partition", "baechi-verify-partitioned", "baechi-plan-memory",
     "baechi-lower"},
    {"baechi-verify-partitioned"},
    {"baechi-plan-memory", "baechi-verify-partitioned", "baechi-lower"},
    {"baechi-lower"},
    {"baechi-lower-kernels"},
    {"baechi-export-iree"},
    {"baechi-strip{what=plan}"},
    {"baechi-strip{what=all}"},
};

/// libFuzzer reads these as coverage.
constexpr size_t numCounters = 1 << 16;
__attribute__((
    used, section("__libfuzzer_extra_counters"))) uint8_t counters[numCounters];

void record(StringRef what, StringRef detail) {
  std::string text = what.str();
  bool quoted = false;
  for (char c : detail) {
    quoted ^= c == '\'';
    if (!quoted && !llvm::isDigit(c))
      text += c;
  }
  counters[llvm::hash_value(text) % numCounters] = 1;
}

[[noreturn]] void give(const char *what, StringRef detail) {
  llvm::errs() << "ModuleFuzzer: " << what << ": " << detail << '\n';
  std::abort();
}

std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, OpPrintingFlags().printGenericOpForm());
  return text;
}

/// A context keeps every attribute that it has seen.
std::unique_ptr<MLIRContext> context;

void renewContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  baechi::registerAllDialects(registry);
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->allowUnregisteredDialects();
}

/// Exit status when a parser of MLIR's own dialects crashes, as some do on what
/// they do not expect. scripts/fuzz then goes on in a new process: what the
/// crash left of the heap cannot be trusted.
constexpr int parserCrashed = 90;

/// The module that \p text is; null for an error.
OwningOpRef<ModuleOp> parse(StringRef text) {
  static int uses = 0;
  if (!context || ++uses % 500 == 0)
    renewContext();
  struct sigaction segv, abrt, ours = {};
  ours.sa_handler = [](int) { _exit(parserCrashed); };
  sigaction(SIGSEGV, &ours, &segv);
  sigaction(SIGABRT, &ours, &abrt);
  OwningOpRef<ModuleOp> module;
  {
    ScopedDiagnosticHandler silence(context.get(),
                                    [](Diagnostic &) { return success(); });
    module = parseSourceString<ModuleOp>(
        text, ParserConfig(context.get(), /*verifyAfterParse=*/true), "input");
  }
  sigaction(SIGSEGV, &segv, nullptr);
  sigaction(SIGABRT, &abrt, nullptr);
  return module;
}

/// Runs one pass; false after an error, which must have a place.
bool run(ModuleOp module, StringRef pass) {
  PassManager manager(module->getName());
  manager.enableVerifier(false);
  if (failed(parsePassPipeline(pass, manager)))
    give("no such pass", pass);
  bool located = false, said = false;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &d) {
    record(pass, d.str());
    said |= d.getSeverity() == DiagnosticSeverity::Error;
    located |= !isa<UnknownLoc>(d.getLocation());
    return success();
  });
  bool succeeded = mlir::succeeded(manager.run(module));
  if (!succeeded) {
    if (!said || !located)
      give(said ? "an error without a place" : "failed without an error", pass);
    return false;
  }
  record(pass, "succeeds");
  std::string broken;
  ScopedDiagnosticHandler verifying(module.getContext(), [&](Diagnostic &d) {
    broken += d.str() + '\n';
    return success();
  });
  if (failed(verify(module)))
    give("a pass leaves invalid IR", (pass + "\n" + broken).str());
  return true;
}

void runExports(ModuleOp module) {
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &d) {
    record("export", d.str());
    return success();
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto write :
       {baechi::exportGraph, baechi::exportMachine, baechi::exportPlacement,
        baechi::exportDot, baechi::exportManifest, baechi::exportTrace})
    (void)write(module, os);
}

/// A program without the attributes of passes is itself again after a strip.
void checkStrip(ModuleOp module) {
  OwningOpRef<ModuleOp> placed = module.clone();
  if (!run(*placed, "baechi-strip"))
    return;
  std::string original = print(*placed);
  for (StringRef pass : {"baechi-annotate-costs", "baechi-colocate",
                         "baechi-place{placer=metf machine=host:2@1GiB "
                         "budget=0}",
                         "baechi-strip"})
    if (!run(*placed, pass))
      return;
  if (print(*placed) != original)
    give("a strip does not give the original", original);
}
} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  baechi::registerAllPasses();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  OwningOpRef<ModuleOp> module = parse(text);
  if (!module)
    return -1;
  for (auto passes : pipelines) {
    OwningOpRef<ModuleOp> copy = module->clone();
    for (StringRef pass : passes)
      if (!run(*copy, pass))
        break;
  }
  runExports(*module);
  checkStrip(*module);
  return 0;
}
