//===- Compilation.h - A model is measured, placed and compiled -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_COMPILATION_COMPILATION_H
#define BAECHI_DRIVER_COMPILATION_COMPILATION_H

#include "Baechi/Driver/Compilation/ModelCosts.h"
#include "Baechi/Driver/Execution/Execution.h"
#include "Baechi/Driver/Forms/ModelForms.h"
#include "Baechi/Driver/Input/Source.h"
#include "Baechi/Driver/Report/CutReport.h"
#include "Baechi/Driver/Report/LoopReport.h"
#include "Baechi/Driver/Report/Report.h"
#include "Baechi/Transforms/Checkpoints/Passes.h"
#include <map>

namespace baechi {

struct FittingCut;
struct Neediest;

/// The machine that options name, with the memory of the GPUs that are there
/// where a short form leaves it open.
llvm::Expected<placement::Machine> readMachine(const std::string &spec);

/// Whether a placement file names parts of operators, `.turn` of loops or
/// `.piece`. What is wrong with it is told where it is taken.
bool placesParts(const std::string &file, llvm::StringRef part);

/// One model on its way to code for a machine: read, its kernels formed, costs
/// found, placed, partitioned and compiled; and the same on one device, to
/// measure and to compare with. Errors: a DiagnosedError where the compiler's
/// diagnostics, which go to the listener, have said what is wrong.
class Compilation {
public:
  /// Reads the model file and forms its kernels.
  /// \p listener lives longer than what is made.
  static llvm::Expected<std::unique_ptr<Compilation>>
  read(DriverOptions options, placement::Machine machine, Listener &listener);

  /// As ModelCosts; the plan is as good as what is known of the machine.
  llvm::Error measureMachine(bool always = false) {
    return costs.measureMachine(always);
  }

  /// Costs of the kernels, measured or estimated. \p setArguments: for the
  /// steps on one device that they are measured in. Once.
  llvm::Error findCosts(SetArguments setArguments);

  /// In place of all that follows: where nothing is known of what kernels of
  /// host devices take within a step, chooses their code and compiles the model
  /// for one of the devices. The program says which rows of the profile its
  /// steps are to fill ("to_measure"), for another compilation (--step-times).
  /// False where what is asked for needs costs, or they are known: nothing is
  /// compiled then.
  llvm::Expected<bool> compileToMeasure();

  /// Places and compiles; costs are found. Where pieces are to be compared with
  /// the whole step and costs are measured, each runs a few steps, with
  /// arguments by \p setArguments, and the faster one stays.
  llvm::Error compile(SetArguments setArguments);

  /// The same model on one device, whose memory is all that such devices have;
  /// null when that cannot hold it.
  llvm::Expected<std::unique_ptr<Execution>> createSingle(llvm::StringRef kind);

  const DriverOptions &options() const { return asked; }
  const placement::Machine &machine() const { return target; }
  bool hasDeviceOf(llvm::StringRef kind) const;
  HostCompiler &compiler() { return *hostCompiler; }
  mlir::ModuleOp module() const { return hostCompiler->module(); }
  const CompiledProgram &program() const { return compiled; }
  /// Once compiled: whether another compilation of the same, with what is in
  /// the profile now, would measure nothing, and run no other plans to compare
  /// them.
  bool isSettled() const;
  /// What of the profile the program follows from.
  struct Origins {
    /// Hashes of the kernels, of all plans that were compared.
    std::vector<std::string> kernels;
    /// By which it knows their code's choice; empty: costs are not measured.
    std::string program;
    /// Plans that ran, to be compared (`PlanRow`).
    std::vector<std::string> plans;
  };
  const Origins &origins() const { return madeOf; }
  /// Those of the model, whole and in pieces.
  const LoweredKernels &loweredKernels() const { return *lowered; }

  /// Whether steps have positions that are checked as they run.
  bool checksPositions() const { return !checks.empty(); }
  /// An error where the last step of \p program, one of the model's, had
  /// positions that its arrays do not have.
  llvm::Error checkPositions(const Execution &program) const;

  /// Writes into \p report what was asked and done.
  void describe(RunReport &report) const;

private:
  Compilation(DriverOptions options, placement::Machine machine,
              Listener &listener)
      : asked(std::move(options)), target(std::move(machine)),
        listener(listener),
        compileThreads(std::make_shared<CompileThreads>(asked.threads)),
        forms({asked, target, listener, compileThreads, lowered}),
        costs({asked, target, listener, compileThreads, lowered,
               [this] { endPhases(); }}) {}

  /// One of the compilers' programs.
  struct Candidate {
    std::optional<CompiledProgram> program; ///< nothing: it does not fit
    /// Where predictions decide: what the program's code is made of, once it is
    /// the one that stays.
    mlir::OwningOpRef<mlir::ModuleOp> code;
    std::optional<int64_t> predictedNs;
    std::optional<int64_t> triedNs; ///< where all that fit were tried
  };

  llvm::Error readModel();
  /// What the result that checks positions is about.
  void readChecks();
  /// Says what `splits=auto` is here.
  void settleSplits();
  /// Decides on the model as it is written what rounds, where each sum has one
  /// order.
  mlir::LogicalResult foldSums();
  /// Collects what the plans that are compared follow from.
  void findOrigins(llvm::ArrayRef<Candidate> candidates);
  /// Compares cuts by the roofline, once, before costs of any of them are
  /// known.
  void compareCuts();
  /// Takes out pieces of exact sums, which save nothing but time, where they
  /// are predicted by the roofline to save none.
  void leaveOutPieces();
  /// Writes the model's loops out where that is asked for, or predicted to be
  /// faster.
  llvm::Error unrollLoops();
  /// Where loops were written out by the step alone, as exact sums have it, and
  /// no plan fits, all that can be is, or nothing: the bits are the same.
  mlir::LogicalResult
  writeOutToFit(mlir::ModuleOp inlined, llvm::ArrayRef<SplitChoice> choices,
                LoopReport &report,
                mlir::OwningOpRef<mlir::ModuleOp> &unrolled);
  /// Where others are compared by their measured costs, or by running them, so
  /// is the model with its loops whole, cut as \p choice says.
  mlir::LogicalResult addWholeLoops(const SplitChoice &choice);
  /// Whether the \p best has them written out. The model with whole loops is
  /// the whole step that all that follows is about, or goes.
  void settleLoops(size_t &best, std::vector<Candidate> &candidates);
  /// Computes once what the model computes again, until that does not fit.
  llvm::Error undoCheckpoints();
  /// A program of one replica becomes that of all; how many they are is what
  /// the program says, where nothing else is asked for.
  mlir::LogicalResult expandReplicas();
  /// Where that does not fit as it is, the model as it is written is tried,
  /// too, and with as few of its checkpoints as let it fit.
  void addAsWritten(const SplitChoice &choice);
  /// The model with the checkpoints of these regions and no others; null where
  /// it cannot be formed. \p fits: whether it does as it is.
  std::unique_ptr<HostCompiler>
  formWithCheckpoints(const SplitChoice &choice,
                      llvm::ArrayRef<unsigned> regions, bool &fits);
  /// How far from the best that the processors can do steps may be.
  void findRoofline();
  /// What became of checkpoints. Of the models with some, and that without,
  /// those that are not the \p best go.
  void reportCheckpoints(size_t &best, std::vector<Candidate> &candidates);
  /// Where nothing that was formed fits, micro-batches are tried, too.
  void addMicroBatches();
  /// Compiles by the current compiler, or where that does not fit, in pieces;
  /// an error says what would fit.
  mlir::FailureOr<CompiledProgram> compileOrCut(SetArguments setArguments);
  /// Whether a step that does not fit may be cut without being asked.
  bool mayCutToFit() const;
  /// Compiles the step as it was cut, which replaces the whole one; fails where
  /// \p differs says what its results have not of the whole step's, where it
  /// does not fit after all, and where it takes \p tooLongNs or more. Then it
  /// is gone.
  mlir::FailureOr<CompiledProgram> compileInPieces(FittingCut &fitting,
                                                   SetArguments setArguments,
                                                   int64_t tooLongNs,
                                                   std::string &differs);
  /// The same, and what is then said of it; \p most: what needs most of the
  /// whole step. \p why not, where that is so.
  mlir::FailureOr<CompiledProgram> takeCut(FittingCut &fitting,
                                           const Neediest &most,
                                           SetArguments setArguments,
                                           int64_t tooLongNs, std::string &why);
  /// The step that \p program is chosen by.
  int64_t aimedNs(const CompiledProgram &program) const;
  /// The first result of \p program, the current compiler's, that differs from
  /// that of \p whole by a bit; empty: none does.
  llvm::Expected<std::string>
  differenceFromWhole(HostCompiler &whole, const CompiledProgram &program,
                      SetArguments setArguments);
  /// In the fewest pieces that make the step fit; \p why not, where they would
  /// change its results.
  mlir::FailureOr<CompiledProgram> cutToFit(SetArguments setArguments,
                                            std::string &why);
  /// The whole step by the roofline, with the placer alone.
  struct WholeStep {
    int64_t ampleNs = 0;   ///< where the memory is large enough
    int64_t fittingNs = 0; ///< as it fits
  };
  /// That, with \p fitted, as it fits; nullopt: it has no plan with ample
  /// memory. \p fitted null: it does not fit.
  std::optional<WholeStep> findWholeStep(const CompiledProgram *fitted);
  /// Where all that fits takes longer for that it fits, a cut whose step is
  /// shorter joins the compilers, as the last of them.
  void addShorterCut(std::vector<Candidate> &candidates,
                     SetArguments setArguments);
  /// Which of those that fit is predicted, or where they can be tried, found to
  /// be the fastest.
  llvm::Expected<size_t> choose(llvm::MutableArrayRef<Candidate> candidates,
                                SetArguments setArguments);
  /// Whether programs in pieces run a few steps before one is chosen.
  bool mayTry() const;
  /// Runs each of those that fit for a few steps, unless the profile has them;
  /// false where that cannot be, or where other work disturbs it.
  llvm::Expected<bool> tryAll(llvm::MutableArrayRef<Candidate> candidates,
                              SetArguments setArguments);
  /// The fastest of a few steps.
  llvm::Expected<int64_t> tryOut(HostCompiler &compiler,
                                 const CompiledProgram &program,
                                 SetArguments setArguments);
  /// How replicas exchange parameters, where that was asked for, once the
  /// \p best of the compilers is known.
  void reportExchange(size_t best, llvm::ArrayRef<Candidate> candidates);
  /// What was cut, beside the whole step, once the \p best of the compilers is
  /// known.
  void reportPieces(size_t best, llvm::ArrayRef<Candidate> candidates);
  /// All that follows is about \p compiler's model.
  void use(HostCompiler &compiler);
  /// The costs of the current compiler's kernels.
  llvm::Error findCurrentCosts(SetArguments setArguments);
  /// Whether the first steps may run on one of the devices.
  bool canMeasureLater();
  /// Tells the listener what the compiler begins, until endPhases().
  void tellPhases();
  void endPhases() { current.reset(); }
  /// The first device of its kind, with the memory that all such devices have.
  placement::Device withAllMemory(llvm::StringRef kind) const;

  DriverOptions asked;
  placement::Machine target;
  Listener &listener;
  /// Who compiles the code of all that follows.
  std::shared_ptr<CompileThreads> compileThreads;
  std::optional<Phase> current; ///< of the compiler
  std::unique_ptr<Source> source;
  /// Until compile() has made their code.
  std::shared_ptr<LoweredKernels> lowered = std::make_shared<LoweredKernels>();
  ModelForms forms;
  ModelCosts costs;
  /// The model as it is and cut into pieces, as far as asked, until compile()
  /// keeps the faster one.
  std::vector<std::unique_ptr<HostCompiler>> compilers;
  /// One for each word of the result that checks positions.
  std::vector<mlir::DictionaryAttr> checks;
  /// The model with its checkpoints, where they are undone in forms' model.
  mlir::OwningOpRef<mlir::ModuleOp> asWritten;
  std::optional<UndoneCheckpoints> checkpoints;
  struct KeptCheckpoints {
    size_t compiler; ///< the position of the one that has them
    std::vector<unsigned> regions;
  };
  std::vector<KeptCheckpoints> withCheckpoints;
  /// How the first of the compilers is cut.
  SplitChoice firstChoice;
  /// The first of the compilers has parameters in slices, the second whole.
  bool slicesParameters = false;
  /// What made the step fit, where it was cut for that: the last compiler's.
  std::optional<CutReport> cutReport;
  /// What is said of cuts that were compared with the whole step, which stays.
  std::string otherCuts;
  bool otherCosts = false; ///< those of such cuts were counted
  /// Micro-batches that were tried as nothing else fits, and which of the
  /// compilers they are; else 0.
  unsigned microBatches = 0;
  size_t microCompiler = 0;
  HostCompiler *hostCompiler = nullptr; ///< one of them
  CompiledProgram compiled;
  std::optional<LoopReport> loops; ///< where any were looked at
  /// The model with its loops whole, where it is compared with forms' model,
  /// and the compiler that has it.
  mlir::OwningOpRef<mlir::ModuleOp> wholeLoops;
  std::optional<size_t> withWholeLoops;
  bool splitsAreSaid = false; ///< not `auto`
  /// Else pins and placements are of the whole step, or a placement is of the
  /// one in pieces.
  bool mayCut = true, mayStayWhole = true;
  std::optional<PieceReport> pieces; ///< where cutting was asked for, or tried
  bool cutsAreCompared = false;
  std::optional<PieceReport> leftOut; ///< what was not worth measuring
  std::optional<StepRoofline> roofline;
  /// A compiler and a kind each.
  std::map<std::pair<const HostCompiler *, std::string>, CompiledProgram>
      singlePrograms;
  double profileSeconds = 0;
  Origins madeOf;
  /// Else plans were compared that the profile says too little of.
  bool isFromProfile = true;
};

} // namespace baechi

#endif // BAECHI_DRIVER_COMPILATION_COMPILATION_H
