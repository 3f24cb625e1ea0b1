//===- CompileOptions.h - How a model is compiled ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The options of a compilation, once: baechi-run, --baechi-compile,
/// baechiCompileStep and baechi.jit take them by the names of one table.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PIPELINES_COMPILEOPTIONS_H
#define BAECHI_PIPELINES_COMPILEOPTIONS_H

#include "Baechi/Placement/Model/Problem.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace baechi {

/// compileOptions() says what each means; empty texts are none.
struct CompileOptions {
  std::string machine = "host:2";
  std::string step;
  std::string placer = "msct";
  std::string grouping = "all";
  std::string expert;
  std::string budget = "auto";
  std::string objective = "makespan";
  std::vector<std::string> pins;
  std::string placement;
  std::string splits = "auto";
  std::vector<std::string> split;
  unsigned replicas = 1;
  std::string exchange;
  std::string sliceBytes;
  std::string factors = "none"; ///< of gradients: "none", "smaller"
  std::string transfers = "lend";
  std::string fitMemory = "auto";
  std::string unroll = "auto"; ///< loops: "auto", "always", "never"
  std::string profile;
  std::string costs = "measured";
  std::string measure = "auto";
  std::string stepTimes;
  std::string cudaMath = "fp32";
  std::string cudaConvolutions = "measured";
  std::string store;
  std::string hostTarget;
  std::string loops = "ordered";
  unsigned workers = 4;
  unsigned threads = 2;

  /// Whether somebody says where operators of some names are.
  bool asksByNames() const {
    return !pins.empty() || !placement.empty() || !expert.empty();
  }
};

/// One option: a text, or a list that one is added to each time, or a number.
struct CompileOption {
  llvm::StringLiteral name;  ///< "placer"
  llvm::StringLiteral value; ///< what help calls its value: "PLACER"
  llvm::StringLiteral help;
  /// What --baechi-compile calls it; empty: what passes have not.
  llvm::StringLiteral inPasses = "";
  std::string CompileOptions::*text = nullptr;
  std::vector<std::string> CompileOptions::*list = nullptr;
  unsigned CompileOptions::*number = nullptr;

  /// The help, with the default where there is one.
  std::string helpWithDefault() const;
};

llvm::ArrayRef<CompileOption> compileOptions();

/// Sets one option from text; the error names it.
llvm::Error setOption(CompileOptions &options, const CompileOption &option,
                      llvm::StringRef value);
/// The same from NAME=VALUE.
llvm::Error setOption(CompileOptions &options, llvm::StringRef word);

/// How operators are cut before kernels are formed (--baechi-split).
struct SplitChoice {
  /// Of what the compiler chooses; below 2: only what the program asks for.
  unsigned pieces = 0;
  /// Reductions are cut, too.
  bool reductions = false;
  /// Each sum has one order, whatever computes it (--baechi-fix-sums).
  bool exact = false;
  /// Whatever can be cut is, whether it saves time or not.
  bool forced = false;
  /// Pieces follow each other, as micro-batches.
  bool chained = false;
  /// Of chained pieces: they were asked for, and have to be of a batch.
  bool needsBatch = false;
  /// Of chained pieces: sums that would be in another order stay whole, as far
  /// as is known, and what a person asks for is cut where no sum is.
  bool ordered = false;
  /// The class that saves the most is cut first, and no other plan is looked
  /// at.
  bool largestFirst = false;
  /// Of the time that pieces send each other something over links, what is
  /// expected not to overlap with what is computed.
  unsigned sentPercent = 100;
  /// 2 and more: what no class of `pieces` takes is cut in so many, and of the
  /// time that these send, what counts.
  unsigned restPieces = 0, restSentPercent = 100;
  /// 2 and more: the batch is cut in so many replicas (--baechi-replicate), and
  /// nothing else.
  unsigned replicas = 1;
  /// Of replicas: the bytes of slices of parameters that have owners of their
  /// own (--baechi-slice-parameters), or what a link moves in its latency, by
  /// which they are found; 0, both: parameters are whole.
  int64_t sliceBytes = 0, latencyBytes = 0;
  /// Of slices: but where the factors of a gradient are sent.
  bool factors = false;
  /// What a person asks for, PATTERN=DIM:PIECES (--baechi-constrain).
  std::vector<std::string> asked;
  /// Cut whether the step is predicted to be faster or not: the results are
  /// then the same on any machine.
  bool always = false;
};

/// What is wrong with exact sums where there are GPUs.
inline constexpr llvm::StringLiteral kExactOnGpus =
    "splits=exact and exact-forced:N are for host devices: kernels of GPUs "
    "choose their order of additions by sizes; splits=canonical:N has the same "
    "bits on any number of them";

/// Reads the options `splits` and `split` for a machine of \p devices.
llvm::Expected<SplitChoice> splitChoiceOf(const CompileOptions &options,
                                          size_t devices);

/// The patterns of rules PATTERN=VALUE, as of the options `pin` and `split`.
std::vector<std::string> patternsOf(llvm::ArrayRef<std::string> rules);

/// How messages between replicas are ordered (--baechi-carry-parameters).
struct ExchangeChoice {
  std::string order; ///< "fifo", "slices", "tictac", "p3"; empty: as planned
  int64_t sliceBytes = 0; ///< 0: messages are whole
};

/// Reads the options `exchange` and `slice-bytes`.
llvm::Expected<ExchangeChoice> exchangeChoiceOf(const CompileOptions &options);

/// An error where messages between replicas are ordered and there is one
/// replica: of a program that may be written for several once it is known.
llvm::Error checkReplicated(const CompileOptions &options);

/// \p choice, of replicas, with slices of parameters as \p options ask, or as
/// \p machine's links suggest and \p messageNs, which each message takes of a
/// thread that moves all of them; nothing where slices are not asked for, or
/// move in no time.
llvm::Expected<std::optional<SplitChoice>>
slicedChoiceOf(SplitChoice choice, const CompileOptions &options,
               const placement::Machine &machine, int64_t messageNs = 0);

/// How long kernels of hosts are measured.
struct MeasureBudget {
  bool all = false; ///< as long as it takes
  /// Steps are measured by whoever runs the library, where one is emitted.
  bool later = false;
  /// Given by a person; else as long as about five steps take, or a few
  /// seconds.
  std::optional<double> seconds;
};

/// What placing one of several plans may spend that are only compared, where
/// \p budget is the option of that which stays: seconds are of one plan, and
/// comparing takes no more of them than automatic placing does.
std::string budgetOfComparing(llvm::StringRef budget);

/// Reads the option `measure`.
llvm::Expected<MeasureBudget> measureBudgetOf(const CompileOptions &options);

/// How loops over memory become blocks (--baechi-raise-loops,
/// --baechi-partition-loops).
struct LoopChoice {
  bool unordered = false;
  bool serial = false; ///< what cannot run in blocks runs on one device
};

/// Reads the option `loops`.
llvm::Expected<LoopChoice> loopChoiceOf(const CompileOptions &options);

/// Which loops of a step are written out before it is planned
/// (--baechi-unroll-loops).
struct UnrollChoice {
  bool always = false;
  /// In place of predictions what is known of the step alone decides, as the
  /// results, or what can be cut, must not depend on the machine.
  bool byStepAlone = false;
  /// Options of the pass.
  int64_t limit = 4096, leastShare = 5, leastNs = 1000, mostWrites = 128;
  /// What a person pins or cuts by its name stays whole.
  std::vector<std::string> keep;
};

/// Reads the option `unroll`; nothing: none are.
llvm::Expected<std::optional<UnrollChoice>>
unrollChoiceOf(const CompileOptions &options);

/// What is wrong with options by themselves: unknown words, a budget that is
/// none, options that exclude each other.
llvm::Error checkOptions(const CompileOptions &options);

} // namespace baechi

#endif // BAECHI_PIPELINES_COMPILEOPTIONS_H
