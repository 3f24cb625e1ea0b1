//===- Options.cpp - Command line of baechi-run -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <deque>
#include <memory>

using namespace baechi;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("baechi-run options");

template <typename T> using Opt = cl::opt<T>;

/// The compiler's options, by its table.
class CompileFlags {
public:
  CompileFlags() {
    for (const CompileOption &option : compileOptions()) {
      add(option.name, option,
          [this, &option](const std::string &value) { take(option, value); });
      // One word is for one thing in all tools; those of before are taken.
      for (auto [former, now] :
           {std::pair("place", "placer"), {"group", "grouping"}})
        if (option.name == now)
          addFormer(former, option);
    }
  }

  /// What the command line says, once it was parsed.
  llvm::Expected<CompileOptions> options() {
    if (!error.empty())
      return llvm::createStringError(error);
    return given;
  }

private:
  using Taken = std::function<void(const std::string &)>;

  cl::opt<std::string> &add(llvm::StringRef word, const CompileOption &option,
                            Taken taken) {
    flags.push_back(std::make_unique<cl::opt<std::string>>(
        word, cl::value_desc(option.value), cl::cat(category),
        cl::cb<void, const std::string &>(std::move(taken))));
    texts.push_back(option.helpWithDefault());
    flags.back()->setDescription(texts.back());
    if (option.list)
      flags.back()->setNumOccurrencesFlag(cl::ZeroOrMore);
    return *flags.back();
  }
  void addFormer(llvm::StringRef word, const CompileOption &option) {
    add(word, option, [=, this, &option](const std::string &value) {
      llvm::errs() << "baechi-run: note: --" << word << " is now --"
                   << option.name << "\n";
      take(option, value);
    }).setHiddenFlag(cl::Hidden);
  }
  void take(const CompileOption &option, const std::string &value) {
    if (llvm::Error wrong = setOption(given, option, value))
      error = llvm::toString(std::move(wrong));
  }

  CompileOptions given;
  std::string error;
  std::vector<std::unique_ptr<cl::opt<std::string>>> flags;
  std::deque<std::string> texts; ///< that flags describe themselves by
};

Opt<std::string> model(cl::Positional, cl::desc("MODEL.mlir[.xz]"),
                       cl::cat(category));
Opt<int64_t> steps("steps", cl::value_desc("N"), cl::init(20),
                   cl::desc("steps to run; default 20"), cl::cat(category));
Opt<bool> overlapSteps("overlap-steps",
                       cl::desc("let each device begin its next step when it "
                                "has ended the last one, and its messages were "
                                "delivered; results are the same, bit for bit"),
                       cl::cat(category));
Opt<int> staleness(
    "staleness", cl::value_desc("S"),
    cl::desc("let each of --replicas=N compute the step as it is, with devices "
             "of its own and of a state that may be so many steps late, at its "
             "own pace; --inputs may have the batches of all, one after the "
             "other along the first dimension; the state's next value is the "
             "replicas' mean"),
    cl::cat(category));
Opt<double> bandwidth("bandwidth", cl::value_desc("B"),
                      cl::desc("of --staleness: bytes per second, each way, "
                               "that a replica sends and receives between its "
                               "steps' ends; default: at these alone"),
                      cl::cat(category));
Opt<std::string>
    order("order", cl::value_desc("ORDER"),
          cl::desc("of --bandwidth: which rows go first, relative (default; "
                   "the largest change beside their values), magnitude, age, "
                   "random or round-robin"),
          cl::cat(category));
Opt<double> revised(
    "revised", cl::value_desc("STEP"),
    cl::desc("of --staleness: take what a replica's step changes for its "
             "gradient's share, of which steps of this size are made that know "
             "how late they are (adaptive revision); for steps that go along "
             "the gradient and keep nothing of it"),
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
    checkSingle("check-single", cl::init(true),
                cl::desc("run the same steps on one device without a memory "
                         "limit; results must agree bit for bit (default; "
                         "--check-single=false: not)"),
                cl::cat(category));
Opt<bool> checkFormer("check", cl::Hidden, cl::cat(category),
                      cl::cb<void, const bool &>([](const bool &value) {
                        llvm::errs() << "baechi-run: note: --check is now "
                                        "--check-single\n";
                        checkSingle = value;
                      }));
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
Opt<bool> calls("calls",
                cl::desc("read calls from the standard input until it ends, "
                         "each a line of the files of its inputs and results "
                         "and the number of its steps, with tabs between; the "
                         "report of each ends with a line 'call ended'"),
                cl::cat(category));
cl::alias outputShort("o", cl::aliasopt(output), cl::desc("--output"),
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
} // namespace

/// What only a run takes, while --emit stops before it.
static llvm::Error checkEmit(const RunOptions &options) {
  if (!options.emit.empty() && options.emit != "so")
    return llvm::createStringError("unknown kind '" + options.emit +
                                   "' of --emit; known: so");
  if (options.emit.empty() != options.library.empty())
    return llvm::createStringError(
        options.emit.empty() ? "--output is what --emit=so writes; give both"
                             : "--emit=so needs --output=NAME.so");
  if (options.emit.empty())
    return llvm::Error::success();
  if (!options.steps.inputs.empty() && options.driver.costs != "measured")
    return llvm::createStringError(
        "--inputs with --emit=so are what costs are measured with, and "
        "--costs=" +
        options.driver.costs + " measures none: give one of them");
  if (options.calls)
    return llvm::createStringError(
        "--calls needs a run, but --emit=" + options.emit +
        " stops before it: give one of them");
  for (auto [name, value] : {std::pair("outputs", &options.files.outputs),
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

/// Of --staleness.
static llvm::Expected<StaleOptions> staleOptions(int replicas) {
  StaleOptions stale;
  stale.replicas = replicas;
  stale.staleness = staleness;
  if (bandwidth.getNumOccurrences())
    stale.bandwidth = bandwidth;
  if (order.getNumOccurrences()) {
    stale.order = orderOf(order);
    if (!stale.order)
      return llvm::createStringError(
          "unknown order '" + order +
          "' of --order; known: relative, magnitude, age, random, round-robin");
  }
  if (revised.getNumOccurrences()) {
    if (!std::isfinite(revised) || revised <= 0)
      return llvm::createStringError(
          "--revised is the size of steps: give a number above 0");
    stale.revised = revised;
  }
  return stale;
}

static llvm::Error check(const RunOptions &options) {
  if (options.driver.model.empty() && options.queryMachine.empty())
    return llvm::createStringError(
        "no model; give an .mlir file, or --query-machine=FILE");
  if (llvm::Error error = checkEmit(options))
    return error;
  if (llvm::Error error = checkOptions(options.driver))
    return error;
  for (const auto &[name, times] :
       {std::pair("order", order.getNumOccurrences()),
        {"revised", revised.getNumOccurrences()}})
    if (!options.stale && times)
      return llvm::createStringError("--" + llvm::Twine(name) +
                                     " is of replicas with a late state: give "
                                     "--staleness=S, too");
  if (!options.stale && bandwidth.getNumOccurrences())
    return llvm::createStringError("--bandwidth is what replicas with a late "
                                   "state may send: give --staleness=S, too");
  if (llvm::Error error = checkStale(options.stale, options.driver,
                                     options.steps, options.files))
    return error;
  if (options.stale && (!options.emit.empty() || options.calls))
    return llvm::createStringError(
        llvm::Twine(options.emit.empty() ? "--calls" : "--emit") +
        " is of one program, and with --staleness each replica has one of its "
        "own: leave one of them off");
  if (llvm::Error error = checkOptions(options.steps))
    return error;
  if (llvm::Error error = checkOptions(options.files))
    return error;
  if (options.driver.objective == "period" && !options.steps.overlap &&
      options.emit.empty() && options.queryMachine.empty())
    return llvm::createStringError(
        "--objective=period plans the time from one to the next of steps that "
        "overlap: give --overlap-steps, too");
  for (auto [name, file] : {std::pair("trace", &options.files.trace),
                            {"html", &options.files.html}})
    if (options.steps.overlap && !file->empty())
      return llvm::createStringError(
          "--" + llvm::Twine(name) +
          " shows one step from its start to its end: leave --overlap-steps "
          "off");
  return options.queryMachine == "-" ? llvm::Error::success()
                                     : checkWritable(options.queryMachine);
}

llvm::Expected<RunOptions> baechi::parseOptions(int argc, char **argv) {
  CompileFlags flags;
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Places a model on several devices, runs it and reports.\n\n"
      "  baechi-run model.mlir --machine=host:2 --placer=msct --steps=20\n");
  llvm::Expected<CompileOptions> compileOptions = flags.options();
  if (!compileOptions)
    return compileOptions.takeError();
  RunOptions options;
  DriverOptions &driver = options.driver;
  static_cast<CompileOptions &>(driver) = std::move(*compileOptions);
  driver.model = model;
  driver.watchdog = watchdog;
  driver.sanitizeCode = sanitizeCode;
  options.steps.steps = steps;
  options.steps.overlap = overlapSteps;
  options.steps.inputs = inputs;
  options.steps.reference = reference;
  options.steps.check = checkSingle;
  options.steps.calibrates = !calibrateFile.empty();
  if (injectFault.getNumOccurrences())
    options.steps.injectFault = injectFault;
  options.steps.killRank = killRank;
  options.files = {outputs, trace, json, html, calibrateFile};
  if (staleness.getNumOccurrences()) {
    llvm::Expected<StaleOptions> stale = staleOptions(int(driver.replicas));
    if (!stale)
      return stale.takeError();
    options.stale = std::move(*stale);
    options.stale->results = !options.files.outputs.empty();
    driver.replicas = 1;
  }
  options.emit = emit;
  options.calls = calls;
  options.library = output;
  options.queryMachine = queryMachine;
  if (progress != "bar" && progress != "lines")
    return llvm::createStringError("unknown form '" + progress +
                                   "' of --progress; known: bar, lines");
  options.progressLines = progress == "lines";
  if (llvm::Error error = check(options))
    return std::move(error);
  return options;
}
