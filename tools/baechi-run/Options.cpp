//===- Options.cpp - Command line of baechi-run -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Baechi/Placement/Place.h"
#include "Baechi/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace baechi;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("baechi-run options");

template <typename T> using Opt = cl::opt<T>;

Opt<std::string> model(cl::Positional, cl::desc("MODEL.mlir[.xz]"),
                       cl::cat(category));
Opt<std::string> machine("machine", cl::value_desc("SPEC"), cl::init("host:2"),
                         cl::desc("host:N[@SIZE] (host:2, host:4@2GiB) or a "
                                  "machine file; default host:2"),
                         cl::cat(category));
Opt<std::string>
    placer("place", cl::value_desc("PLACER"), cl::init("msct"),
           cl::desc("a placer of --baechi-place: msct (default), metf, "
                    "mtopo, single, ...; a wrong one lists them"),
           cl::cat(category));
Opt<std::string> group("group", cl::value_desc("STEPS"), cl::init("all"),
                       cl::desc("grouping before placing: all (default), none, "
                                "or a list joined by '+' or ','"),
                       cl::cat(category));
Opt<std::string> budget(
    "budget", cl::value_desc("BUDGET"), cl::init("auto"),
    cl::desc("improvement over the placer: auto (default; about a second "
             "at most), 0 (the placer's pure result), seconds (30, "
             "0.5s) or evaluations (5000e)"),
    cl::cat(category));
cl::list<std::string> pins(
    "pin", cl::value_desc("PATTERN=DEVICE"),
    cl::desc("operators and arguments that must be on a device, by patterns "
             "of names (enc/*=host0) or of locations (@model.py:12:*=host1)"),
    cl::cat(category));
Opt<std::string>
    savedPlacement("placement", cl::value_desc("FILE"),
                   cl::desc("placement file with names: what it places stays "
                            "there, new operators are placed"),
                   cl::cat(category));
Opt<int64_t> steps("steps", cl::value_desc("N"), cl::init(20),
                   cl::desc("steps to run; default 20"), cl::cat(category));
Opt<std::string> profile("profile", cl::value_desc("FILE"),
                         cl::desc("measured kernels: rows that FILE lacks are "
                                  "measured and added to it"),
                         cl::cat(category));
Opt<std::string> costs("costs", cl::value_desc("KIND"), cl::init("measured"),
                       cl::desc("measured (default) or roofline: an estimate, "
                                "nothing is measured"),
                       cl::cat(category));
Opt<std::string>
    cudaMath("cuda-math", cl::value_desc("MATH"), cl::init("fp32"),
             cl::desc("what GPUs may round the factors of products to: fp32 "
                      "(default: nothing), tf32, bf16 or fp16; sums are in "
                      "single precision"),
             cl::cat(category));
Opt<std::string>
    inputs("inputs", cl::value_desc("FILE"),
           cl::desc(".npz of arguments by name or argN; the others "
                    "start with their baechi.init"),
           cl::cat(category));
Opt<std::string>
    outputs("outputs", cl::value_desc("FILE"),
            cl::desc(".npz to write the last step's results to, as "
                     "outN"),
            cl::cat(category));
Opt<std::string> reference("reference", cl::value_desc("FILE"),
                           cl::desc("losses to compare with, as the importer "
                                    "writes them"),
                           cl::cat(category));
Opt<bool> check("check", cl::init(true),
                cl::desc("run the same steps on one device without a memory "
                         "limit; results must agree bit for bit (default; "
                         "--check=false: not)"),
                cl::cat(category));
Opt<std::string> trace("trace", cl::value_desc("FILE"),
                       cl::desc("predicted and measured timelines in "
                                "Chrome-trace form"),
                       cl::cat(category));
Opt<std::string>
    json("json", cl::value_desc("FILE"),
         cl::desc("the report as JSON ('-': to the standard output, "
                  "and the text to the standard error)"),
         cl::cat(category));
Opt<std::string> html("html", cl::value_desc("FILE"),
                      cl::desc("the report as a web page: timelines, memory, "
                               "graph and tables in one file"),
                      cl::cat(category));
Opt<std::string> emit("emit", cl::value_desc("KIND"),
                      cl::desc("so: write the step as a shared object with a C "
                               "header, and stop; needs --output"),
                      cl::cat(category));
Opt<std::string> output("output", cl::value_desc("FILE"),
                        cl::desc("what --emit writes; NAME.h comes beside it"),
                        cl::cat(category));
Opt<std::string>
    store("store", cl::value_desc("DIR"),
          cl::desc("folder of compiled kernels: what it has is not "
                   "compiled again, what it lacks is added"),
          cl::cat(category));
Opt<std::string>
    queryMachine("query-machine", cl::value_desc("FILE"),
                 cl::desc("measure this machine's links and memory, write a "
                          "machine file with the devices of --machine, and "
                          "stop ('-': to the terminal)"),
                 cl::cat(category));
Opt<std::string>
    calibrateFile("calibrate", cl::value_desc("FILE"),
                  cl::desc("fit what the prediction takes of this machine to "
                           "the measured steps, and write the machine file"),
                  cl::cat(category));
Opt<double>
    watchdog("watchdog", cl::value_desc("SECONDS"), cl::init(60),
             cl::desc("give a step up when nothing happens for so long; "
                      "0: never; default 60"),
             cl::cat(category));
Opt<unsigned> threads("compile-threads", cl::value_desc("N"), cl::init(2),
                      cl::desc("threads that compile; default 2"),
                      cl::cat(category));
Opt<bool> sanitizeCode("sanitize-code",
                       cl::desc("instrument generated code for "
                                "ThreadSanitizer (in a build with it)"),
                       cl::cat(category), cl::Hidden);

Opt<int64_t> injectFault(
    "inject-fault", cl::value_desc("N"),
    cl::desc("make the N-th call of the runtime fail, and run once more"),
    cl::cat(category), cl::Hidden);

Opt<int> killRank("kill-rank", cl::value_desc("R"), cl::init(-1),
                  cl::desc("kill the process of rank R in its first step"),
                  cl::cat(category), cl::Hidden);

[[noreturn]] void fail(const llvm::Twine &message) {
  llvm::errs() << "baechi-run: error: " << message << '\n';
  exit(1);
}

void requireSeconds(llvm::StringRef option, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0)
    fail("--" + option + " needs a finite number of seconds, 0 or more");
}

/// A file that cannot be read or written is told before minutes of measuring.
void requireReadable(const std::string &path) {
  if (path.empty())
    return;
  int file;
  std::error_code error = llvm::sys::fs::openFileForRead(path, file);
  if (!error)
    llvm::sys::Process::SafelyCloseFileDescriptor(file);
  if (!error && llvm::sys::fs::is_directory(path))
    error = std::make_error_code(std::errc::is_a_directory);
  if (error)
    fail(path + ": cannot be read: " + error.message());
}

void requireWritable(const std::string &path) {
  if (path.empty())
    return;
  namespace fs = llvm::sys::fs;
  std::error_code error;
  if (fs::is_directory(path)) {
    error = std::make_error_code(std::errc::is_a_directory);
  } else if (fs::exists(path)) {
    error = fs::access(path, fs::AccessMode::Write);
  } else {
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (folder.empty())
      folder = ".";
    error = fs::is_directory(folder)
                ? fs::access(folder, fs::AccessMode::Write)
                : std::make_error_code(std::errc::no_such_file_or_directory);
  }
  if (error)
    fail(path + ": cannot be written: " + error.message());
}
} // namespace

RunOptions baechi::parseOptions(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Places a model on several devices, runs it and reports.\n\n"
      "  baechi-run model.mlir --machine=host:2 --place=msct --steps=20\n");
  RunOptions options;
  options.model = model;
  options.machine = machine;
  options.place = {
      placer, group, {}, {pins.begin(), pins.end()}, savedPlacement};
  options.steps = steps;
  options.profile = profile;
  options.costs = costs;
  options.cudaMath = cudaMath;
  options.inputs = inputs;
  options.outputs = outputs;
  options.reference = reference;
  options.check = check;
  options.trace = trace;
  options.json = json;
  options.html = html;
  options.emit = emit;
  options.output = output;
  options.store = store;
  options.queryMachine = queryMachine;
  options.calibrate = calibrateFile;
  options.watchdog = watchdog;
  options.threads = threads;
  options.sanitizeCode = sanitizeCode;
  options.injectFault = injectFault;
  options.killRank = killRank;

  if (std::string mistake = wrongPlacer(options.place.placer); !mistake.empty())
    fail(mistake);
  if (options.costs != "measured" && options.costs != "roofline")
    fail("unknown costs '" + options.costs + "'; known: measured, roofline");
  if (std::string mistake = wrongCudaMath(options.cudaMath); !mistake.empty())
    fail("--cuda-math: " + mistake);
  if (!options.emit.empty() && options.emit != "so")
    fail("unknown kind '" + options.emit + "' of --emit; known: so");
  if (options.emit.empty() != options.output.empty())
    fail(options.emit.empty() ? "--output is what --emit=so writes; give both"
                              : "--emit=so needs --output=NAME.so");
  if (!options.emit.empty())
    for (auto [name, value] : {std::pair("inputs", &options.inputs),
                               {"outputs", &options.outputs},
                               {"reference", &options.reference},
                               {"trace", &options.trace},
                               {"json", &options.json},
                               {"calibrate", &options.calibrate},
                               {"html", &options.html}})
      if (!value->empty())
        fail("--" + llvm::Twine(name) + " needs a run, but --emit=" +
             options.emit + " stops before it: give one of them");
  if (!options.calibrate.empty() && !options.check)
    fail("--calibrate compares with one device; leave --check on");
  if (options.costs == "roofline" && !options.profile.empty())
    fail("--costs=roofline measures nothing, so --profile would not be used: "
         "give one of them");
  if (options.steps < 1)
    fail("--steps needs a positive number, not " + llvm::Twine(options.steps));
  if (injectFault.getNumOccurrences() && options.injectFault < 1)
    fail("--inject-fault needs a positive number, not " +
         llvm::Twine(options.injectFault));
  if (options.threads < 1)
    fail("--compile-threads needs a positive number");
  if (std::string error = placement::parseBudget(budget, options.place.budget);
      !error.empty())
    fail("--budget: " + llvm::Twine(error));
  requireSeconds("watchdog", options.watchdog);
  if (options.model.empty() && options.queryMachine.empty())
    fail("no model; give an .mlir file, or --query-machine=FILE");
  for (const std::string &path :
       {options.inputs, options.reference, options.place.placement})
    requireReadable(path);
  // One that is there may be somebody else's, to be read alone.
  if (!llvm::sys::fs::exists(options.profile))
    requireWritable(options.profile);
  for (const std::string &path : {options.outputs, options.trace, options.html,
                                  options.output, options.calibrate})
    requireWritable(path);
  for (const std::string &path : {options.queryMachine, options.json})
    if (path != "-")
      requireWritable(path);
  return options;
}
