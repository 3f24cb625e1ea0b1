//===- CompileOptions.cpp - The table of a compilation's options ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/CompileOptions.h"
#include "Baechi/Placement/Model/PlaceOptions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>

using namespace baechi;
using Options = CompileOptions;

/// What the latency of links may be counted as: no tensor is as large.
static constexpr double kMostLatencyBytes = 1e15;
/// 50,000 parameters, as P3's authors have it.
static constexpr int64_t defaultSliceBytes = 200000;
/// What placing with the budget `auto` takes at most, about.
static constexpr double kAutomaticSeconds = 1;

// In the order of baechi-run's --help.
static constexpr CompileOption table[] = {
    {.name = "machine",
     .value = "SPEC",
     .help = "host:N[@SIZE] (host:2, host:4@2GiB), with +pool:SIZE or "
             "+disk:SIZE a memory beside them, or a machine file; passes "
             "without one take the module's",
     .inPasses = "machine",
     .text = &Options::machine},
    {.name = "placer",
     .value = "PLACER",
     .help = "a placer of --baechi-place: msct, metf, mtopo, single, ...; a "
             "wrong one lists them",
     .inPasses = "placer",
     .text = &Options::placer},
    {.name = "grouping",
     .value = "STEPS",
     .help = "grouping before placing: all, none, or a list joined by '+' or "
             "','",
     .inPasses = "grouping",
     .text = &Options::grouping},
    {.name = "expert",
     .value = "FILE",
     .help = "expert file: rules PATTERN = DEVICE, for the placer expert and "
             "as a candidate of others",
     .inPasses = "expert",
     .text = &Options::expert},
    {.name = "budget",
     .value = "BUDGET",
     .help = "improvement over the placer: auto (about a second at most), 0 "
             "(the placer's pure result), seconds (30, 0.5s) or evaluations "
             "(5000e)",
     .inPasses = "budget",
     .text = &Options::budget},
    {.name = "objective",
     .value = "WORD",
     .help = "what is planned: makespan (the time of one step) or period (the "
             "time from one of several steps that overlap to the next, of host "
             "devices; --overlap-steps)",
     .inPasses = "objective",
     .text = &Options::objective},
    {.name = "pin",
     .value = "PATTERN=DEVICE",
     .help = "operators and arguments that must be on a device, by patterns "
             "of names (enc/*=host0) or of locations (@model.py:12:*=host1)",
     .inPasses = "pins",
     .list = &Options::pins},
    {.name = "placement",
     .value = "FILE",
     .help = "placement file with names: what it places stays there, new "
             "operators are placed",
     .inPasses = "placement",
     .text = &Options::placement},
    {.name = "splits",
     .value = "MODE",
     .help =
         "cut operators into pieces that devices compute at once: auto "
         "(exact, but nothing is cut where there are pins, or a --placement of "
         "whole "
         "operators; none where there are GPUs, replicas or --split, and in "
         "passes, which compare nothing), none "
         "(only what is asked for), exact (where the step is faster, no "
         "sum is cut and each has one order: the same bits on any number "
         "of host devices), any (where the step is faster; sums are "
         "rounded in another order) or canonical:N (always in N pieces: "
         "the same bits on any number of "
         "devices) or micro:N (always in N micro-batches that follow each "
         "other, in less memory: the same bits, too); forced:N and "
         "exact-forced:N cut whatever can be cut, for tests",
     .inPasses = "splits",
     .text = &Options::splits},
    {.name = "split",
     .value = "PATTERN=DIM:PIECES",
     .help = "operators or arguments to cut along a dimension, by patterns as "
             "for pins (tokens=0:2, @model.py:12:*=1:4), and all that the cut "
             "can follow; PATTERN=whole keeps operators in one piece",
     .inPasses = "split",
     .list = &Options::split},
    {.name = "replicas",
     .value = "N",
     .help =
         "cut the batch in N equal parts, each computed on a device (or its "
         "share of them) of its own, with gradients added in the replicas' "
         "order and each parameter updated at one owner; --split names the "
         "batch's arguments where they are not found (x=0:N)",
     .inPasses = "replicas",
     .number = &Options::replicas},
    {.name = "exchange",
     .value = "ORDER",
     .help =
         "between replicas, parameters are sent as soon as they are new and "
         "awaited in the next step, and messages go in this order: fifo (as "
         "they are ready), slices (the same, in slices), tictac (what the "
         "next step uses first) or p3 (the same, in slices, between which "
         "others overtake); without, owners send parameters at the step's "
         "start, in the plan's order",
     .inPasses = "exchange",
     .text = &Options::exchange},
    {.name = "slice-bytes",
     .value = "N",
     .help = "of --exchange=p3 and slices: the largest piece of a message that "
             "moves at once, 1024 and more; default 200000",
     .inPasses = "slice-bytes",
     .text = &Options::sliceBytes},
    {.name = "factors",
     .value = "WHICH",
     .help = "of replicas' gradients: none (they are sent) or smaller (where "
             "the factors that a gradient is the product of are fewer bytes, "
             "as of large dense layers, they are sent, and the owner computes "
             "the products of all replicas: the same bits; such a parameter is "
             "whole)",
     .inPasses = "factors",
     .text = &Options::factors},
    {.name = "transfers",
     .value = "HOW",
     .help =
         "between host devices of one process, or devices of one GPU: lend "
         "(the "
         "receiver reads the sender's tensor where it lies) or copy; between "
         "host devices also network (they take what the machine's links say, a "
         "simulated network); others are copied",
     .inPasses = "transfers",
     .text = &Options::transfers},
    {.name = "fit-memory",
     .value = "HOW",
     .help = "where a step does not fit the memories: auto (values are let go "
             "and computed again when they are needed, and what needs too much "
             "by itself is cut, which takes longer and changes no bit), whole "
             "(nothing is cut) or never (it is refused)",
     .inPasses = "fit-memory",
     .text = &Options::fitMemory},
    {.name = "unroll",
     .value = "WHEN",
     .help = "loops that count from one constant to another are written out, "
             "so that devices share their turns: auto (where the step is "
             "predicted to be faster so, or only fits so; where its cuts are "
             "asked for or have the same bits on any machine, where loops are "
             "much of it), always or never",
     .inPasses = "unroll",
     .text = &Options::unroll},
    {.name = "step",
     .value = "NAME",
     .help = "the function to run; where the model has only one public "
             "function, that",
     .text = &Options::step},
    {.name = "profile",
     .value = "FILE",
     .help = "measured kernels; baechi-run and Python measure rows that FILE "
             "lacks and add them to it, passes estimate them",
     .inPasses = "profile",
     .text = &Options::profile},
    {.name = "costs",
     .value = "KIND",
     .help = "measured, or roofline: an estimate, nothing is measured",
     .text = &Options::costs},
    {.name = "measure",
     .value = "BUDGET",
     .help =
         "how long kernels that the profile lacks are measured: auto (as "
         "long as about five steps, or a few seconds; the costliest first, "
         "what is left is estimated), seconds (30, 0.5s), all (as long as "
         "it takes) or later (as auto; but with --emit=so, where nothing is "
         "known of steps, the library is of one device, and whoever runs "
         "it measures its steps for --step-times)",
     .text = &Options::measure},
    {.name = "step-times",
     .value = "FILE",
     .help = "a profile with what kernels took in steps of the same model, "
             "compiled with --measure=later: its implementations are the "
             "plan's, its times are added to --profile, and nothing of "
             "the whole step is measured",
     .text = &Options::stepTimes},
    {.name = "cuda-math",
     .value = "MATH",
     .help = "what GPUs may round the factors of products to: fp32 (nothing), "
             "tf32, bf16 or fp16; sums are in single precision",
     .inPasses = "cuda-math",
     .text = &Options::cudaMath},
    {.name = "cuda-convolutions",
     .value = "HOW",
     .help = "what computes convolutions on GPUs: measured (cuDNN where it was "
             "measured to be faster, else generated code), generated or cudnn",
     .inPasses = "cuda-convolutions",
     .text = &Options::cudaConvolutions},
    {.name = "store",
     .value = "DIR",
     .help = "folder of compiled kernels: what it has is not compiled again, "
             "what it lacks is added",
     .text = &Options::store},
    {.name = "host-target",
     .value = "PROCESSOR",
     .help = "the processor that host code is for, by LLVM's name "
             "(x86-64-v3), where a library is written for another machine: "
             "with --emit=so and --costs=roofline, as nothing is run here; "
             "default this machine's",
     .text = &Options::hostTarget},
    {.name = "loops",
     .value = "HOW",
     .help = "loops of the step over memory, which run in blocks: ordered, or "
             "unordered (any order of their entries is right); joined by '+' "
             "with serial, one that cannot runs on one device and is no error",
     .text = &Options::loops},
    {.name = "workers",
     .value = "N",
     .help = "blocks of a loop over memory that may run at once: they, and no "
             "devices, say what the blocks are",
     .number = &Options::workers},
    {.name = "compile-threads",
     .value = "N",
     .help = "threads that compile",
     .number = &Options::threads},
};

llvm::ArrayRef<CompileOption> baechi::compileOptions() { return table; }

std::string CompileOption::helpWithDefault() const {
  const CompileOptions defaults;
  std::string value;
  if (text)
    value = defaults.*text;
  else if (number)
    value = std::to_string(defaults.*number);
  return help.str() + (value.empty() ? "" : "; default " + value);
}

/// What kind of positive number is wanted where \p text is none, or one that is
/// too large to be held.
static llvm::StringRef wantedInPlaceOf(llvm::StringRef text) {
  bool isNumber = llvm::all_of(text, llvm::isDigit) && !text.trim('0').empty();
  return isNumber ? "smaller" : "positive";
}

llvm::Error baechi::setOption(CompileOptions &options,
                              const CompileOption &option,
                              llvm::StringRef value) {
  if (option.text)
    options.*option.text = value.str();
  else if (option.list)
    (options.*option.list).push_back(value.str());
  else if (value.getAsInteger(10, options.*option.number) ||
           options.*option.number < 1)
    return llvm::createStringError("--" + option.name + " needs a " +
                                   wantedInPlaceOf(value) + " number, not '" +
                                   value + "'");
  return llvm::Error::success();
}

llvm::Error baechi::setOption(CompileOptions &options, llvm::StringRef word) {
  auto [name, value] = word.split('=');
  for (const CompileOption &option : table)
    if (option.name == name)
      return setOption(options, option, value);
  return llvm::createStringError(
      "unknown option '" + name + "'; known: " +
      llvm::join(
          llvm::map_range(table, [](const CompileOption &o) { return o.name; }),
          ", "));
}

llvm::Expected<SplitChoice> baechi::splitChoiceOf(const CompileOptions &options,
                                                  size_t devices) {
  SplitChoice choice;
  choice.asked = options.split;
  llvm::StringRef text = options.splits;
  if (options.replicas > 1) {
    if (text != "none" && text != "auto")
      return llvm::createStringError(
          "--replicas cuts the batch and nothing else: leave --splits at auto");
    if (options.replicas > 64)
      return llvm::createStringError("--replicas is at most 64, not " +
                                     llvm::Twine(options.replicas));
    choice.replicas = choice.pieces = options.replicas;
    choice.reductions = choice.always = true;
    return choice;
  }
  if (text == "none" || text == "auto")
    return choice;
  choice.pieces = devices;
  choice.exact = text.consume_front("exact");
  if (choice.exact && text.empty())
    return choice;
  choice.reductions = !choice.exact;
  if (text == "any")
    return choice;
  choice.always = choice.largestFirst = true;
  choice.forced = text.consume_front(choice.exact ? "-forced:" : "forced:");
  choice.chained = choice.needsBatch =
      !choice.exact && text.consume_front("micro:");
  bool isKnown = choice.forced || choice.chained ||
                 (!choice.exact && text.consume_front("canonical:"));
  if (isKnown && !text.getAsInteger(10, choice.pieces) && choice.pieces >= 2 &&
      choice.pieces <= 64)
    return choice;
  return llvm::createStringError(
      "--splits is auto, none, exact, any, canonical:N, micro:N, forced:N or "
      "exact-forced:N, with N between 2 and 64");
}

std::vector<std::string> baechi::patternsOf(llvm::ArrayRef<std::string> rules) {
  std::vector<std::string> patterns;
  for (llvm::StringRef rule : rules)
    patterns.push_back(rule.rsplit('=').first.str());
  return patterns;
}

llvm::Expected<ExchangeChoice>
baechi::exchangeChoiceOf(const CompileOptions &options) {
  ExchangeChoice choice;
  choice.order = options.exchange;
  bool isSliced = choice.order == "p3" || choice.order == "slices";
  if (!choice.order.empty() && choice.order != "fifo" &&
      choice.order != "tictac" && !isSliced)
    return llvm::createStringError("unknown exchange '" + choice.order +
                                   "'; known: fifo, slices, tictac, p3");
  if (!isSliced && !options.sliceBytes.empty())
    return llvm::createStringError(
        "--slice-bytes is of --exchange=p3 and slices, whose messages are "
        "cut");
  if (!isSliced)
    return choice;
  choice.sliceBytes = defaultSliceBytes;
  if (!options.sliceBytes.empty() &&
      (llvm::StringRef(options.sliceBytes)
           .getAsInteger(10, choice.sliceBytes) ||
       choice.sliceBytes < 1024))
    return llvm::createStringError(
        "--slice-bytes is a number from 1024 to 9223372036854775807, not "
        "'" +
        options.sliceBytes + "'");
  return choice;
}

llvm::Error baechi::checkReplicated(const CompileOptions &options) {
  if (options.replicas > 1)
    return llvm::Error::success();
  if (!options.exchange.empty())
    return llvm::createStringError(
        "--exchange orders the messages between replicas: give --replicas=N, "
        "too");
  if (options.factors != "none")
    return llvm::createStringError(
        "--factors is of the gradients of replicas: give --replicas=N, too");
  return llvm::Error::success();
}

llvm::Expected<std::optional<SplitChoice>>
baechi::slicedChoiceOf(SplitChoice choice, const CompileOptions &options,
                       const placement::Machine &machine, int64_t messageNs) {
  llvm::Expected<ExchangeChoice> exchange = exchangeChoiceOf(options);
  if (!exchange)
    return exchange.takeError();
  if (!exchange->sliceBytes || choice.replicas < 2)
    return std::nullopt;
  choice.factors = options.factors == "smaller";
  if (!options.sliceBytes.empty()) {
    choice.sliceBytes = exchange->sliceBytes;
    return choice;
  }
  double latencyNs = 0, bytesPerNs = 0;
  int64_t links = 0;
  for (const auto &link : machine.links)
    if (link && !link->lends) {
      ++links;
      latencyNs += double(link->latencyNs);
      bytesPerNs += double(link->bytesPerUs) / 1000;
    }
  if (links > 0) {
    latencyNs = latencyNs / links + double(messageNs);
    choice.latencyBytes = int64_t(
        std::clamp(latencyNs * bytesPerNs / links, 1.0, kMostLatencyBytes));
  }
  return choice.latencyBytes ? std::optional(choice) : std::nullopt;
}

std::string baechi::budgetOfComparing(llvm::StringRef budget) {
  placement::Budget read;
  bool isRead = placement::parseBudget(budget, read).empty();
  bool isLong = isRead && read.kind == placement::Budget::Kind::Seconds &&
                read.seconds > kAutomaticSeconds;
  return isLong ? placement::formatBudget(placement::Budget()) : budget.str();
}

llvm::Expected<MeasureBudget>
baechi::measureBudgetOf(const CompileOptions &options) {
  llvm::StringRef text = options.measure;
  MeasureBudget budget;
  budget.all = text == "all";
  budget.later = text == "later";
  if (budget.all || budget.later || text == "auto")
    return budget;
  double seconds = 0;
  text.consume_back("s");
  if (text.getAsDouble(seconds) || !std::isfinite(seconds) || seconds < 0)
    return llvm::createStringError("--measure is auto, all, later or "
                                   "seconds (30, 0.5s), not '" +
                                   options.measure + "'");
  budget.seconds = seconds;
  return budget;
}

llvm::Expected<LoopChoice> baechi::loopChoiceOf(const CompileOptions &options) {
  LoopChoice choice;
  for (llvm::StringRef word : llvm::split(options.loops, '+'))
    if (word == "unordered")
      choice.unordered = true;
    else if (word == "serial")
      choice.serial = true;
    else if (word != "ordered")
      return llvm::createStringError("unknown loops '" + word +
                                     "'; known: ordered, unordered, serial");
  return choice;
}
