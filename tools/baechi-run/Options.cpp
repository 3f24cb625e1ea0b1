//===- Options.cpp - Command line of baechi-run -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Baechi/Placement/Place.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

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
    placer("placer", cl::value_desc("PLACER"), cl::init("msct"),
           cl::desc("a placer of --baechi-place: msct (default), metf, "
                    "mtopo, single, ...; a wrong one lists them"),
           cl::cat(category));
Opt<std::string>
    grouping("grouping", cl::value_desc("STEPS"), cl::init("all"),
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
Opt<std::string> step("step", cl::value_desc("NAME"),
                      cl::desc("the function to run; where the model has only "
                               "one public function, that"),
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
Opt<bool>
    checkSingle("check", cl::init(true),
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
Opt<std::string>
    progress("progress", cl::value_desc("FORM"), cl::init("bar"),
             cl::desc("what is told of long phases, on the standard error: "
                      "bar (default; on a terminal) or lines (for programs)"),
             cl::cat(category));
Opt<unsigned> threads("compile-threads", cl::value_desc("N"), cl::init(2),
                      cl::desc("threads that compile; default 2"),
                      cl::cat(category));
cl::alias outputShort("o", cl::aliasopt(output), cl::desc("--output"),
                      cl::cat(category));

/// A word of before, still taken: one word is for one thing in all tools.
struct Former : cl::opt<std::string> {
  Former(llvm::StringRef word, Opt<std::string> &now)
      : cl::opt<std::string>(
            word, cl::Hidden, cl::cat(category),
            cl::cb<void, const std::string &>([=, &now](const std::string &v) {
              llvm::errs() << "baechi-run: note: --" << word << " is now --"
                           << now.ArgStr << "\n";
              now.setValue(v);
            })) {}
};
Former formerPlace("place", placer), formerGroup("group", grouping);

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
} // namespace

/// What only a run takes, while --emit stops before it.
static llvm::Error checkEmit(const RunOptions &options) {
  if (options.emit.empty() != options.library.empty())
    return llvm::createStringError(
        options.emit.empty() ? "--output is what --emit=so writes; give both"
                             : "--emit=so needs --output=NAME.so");
  if (options.emit.empty())
    return llvm::Error::success();
  if (options.emit != "so")
    return llvm::createStringError("unknown kind '" + options.emit +
                                   "' of --emit; known: so");
  for (auto [name, value] : {std::pair("inputs", &options.steps.inputs),
                             {"outputs", &options.files.outputs},
                             {"reference", &options.steps.reference},
                             {"trace", &options.files.trace},
                             {"json", &options.files.json},
                             {"calibrate", &options.files.calibrate},
                             {"html", &options.files.html}})
    if (!value->empty())
      return llvm::createStringError(
          "--" + llvm::Twine(name) + " needs a run, but --emit=" +
          options.emit + " stops before it: give one of them");
  return checkWritable(options.library);
}

static llvm::Error check(const RunOptions &options) {
  if (options.driver.model.empty() && options.queryMachine.empty())
    return llvm::createStringError(
        "no model; give an .mlir file, or --query-machine=FILE");
  if (llvm::Error error = checkEmit(options))
    return error;
  if (llvm::Error error = checkOptions(options.driver))
    return error;
  if (llvm::Error error = checkOptions(options.steps))
    return error;
  if (llvm::Error error = checkOptions(options.files))
    return error;
  return options.queryMachine == "-" ? llvm::Error::success()
                                     : checkWritable(options.queryMachine);
}

llvm::Expected<RunOptions> baechi::parseOptions(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Places a model on several devices, runs it and reports.\n\n"
      "  baechi-run model.mlir --machine=host:2 --placer=msct --steps=20\n");
  RunOptions options;
  DriverOptions &driver = options.driver;
  driver.model = model;
  driver.machine = machine;
  driver.step = step;
  driver.place = {
      placer, grouping, {}, {pins.begin(), pins.end()}, savedPlacement};
  driver.profile = profile;
  driver.costs = costs;
  driver.cudaMath = cudaMath;
  driver.store = store;
  driver.watchdog = watchdog;
  driver.threads = threads;
  driver.sanitizeCode = sanitizeCode;
  options.steps.steps = steps;
  options.steps.inputs = inputs;
  options.steps.reference = reference;
  options.steps.check = checkSingle;
  options.steps.calibrates = !calibrateFile.empty();
  if (injectFault.getNumOccurrences())
    options.steps.injectFault = injectFault;
  options.steps.killRank = killRank;
  options.files = {outputs, trace, json, html, calibrateFile};
  options.emit = emit;
  options.library = output;
  options.queryMachine = queryMachine;
  if (progress != "bar" && progress != "lines")
    return llvm::createStringError("unknown form '" + progress +
                                   "' of --progress; known: bar, lines");
  options.progressLines = progress == "lines";
  if (std::string error = placement::parseBudget(budget, driver.place.budget);
      !error.empty())
    return llvm::createStringError("--budget: " + error);
  if (llvm::Error error = check(options))
    return std::move(error);
  return options;
}
