//===- UnrollLoops.cpp - Loops written out, turn by turn ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/Roofline.h"
#include "Baechi/Transforms/Unroll/Passes.h"
#include "Baechi/Transforms/Unroll/WriteTurns.h"
#include "TurnFolder.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace baechi {
#define GEN_PASS_DEF_UNROLLLOOPS
#include "Baechi/Transforms/Unroll/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

static bool isLoop(Operation *op) { return isa<scf::WhileOp, scf::ForOp>(op); }

static bool isConstantOrView(Operation *op) {
  return isa<tensor::EmptyOp, tensor::ExtractSliceOp, tensor::CollapseShapeOp,
             tensor::ExpandShapeOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>();
}

/// Most of them are constants of a turn, so that many count as one operator.
static constexpr int64_t kNumbersOfOne = 16;

static bool isCounted(Operation *op) {
  return isLoop(op) || (!isConstantOrView(op) &&
                        !llvm::all_of(op->getResultTypes(), unroll::isNumber));
}

/// Whether what is read of a tensor of several elements says where \p write
/// writes: then its place is no turn's, as of rows that are added to a table.
static bool isAtReadPlace(tensor::InsertSliceOp write, Operation *loop) {
  SetVector<Operation *> before;
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) { return loop->isProperAncestor(op); };
  options.omitBlockArguments = options.inclusive = true;
  for (Value offset : write.getOffsets())
    (void)getBackwardSlice(offset, &before, options);
  return llvm::any_of(before, [](Operation *op) {
    auto read = dyn_cast<tensor::ExtractOp>(op);
    return read && (!read.getTensor().getType().hasStaticShape() ||
                    read.getTensor().getType().getNumElements() > 1);
  });
}

static bool writesAtReadPlaces(Operation *loop) {
  return loop
      ->walk([&](tensor::InsertSliceOp write) {
        return isAtReadPlace(write, loop) ? WalkResult::interrupt()
                                          : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool writesSlices(Operation *loop) {
  return loop
      ->walk([](tensor::InsertSliceOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Why the turns of \p loop cannot be written out, whatever they are; empty:
/// they can.
static std::string whyNever(Operation *loop, int64_t mostWrites) {
  std::optional<Turns> turns = turnsOf(cast<LoopLikeOpInterface>(loop));
  if (!turns)
    return "how many turns it has is not known: it does not count from one "
           "constant to another";
  if (!isMemoryEffectFree(loop))
    return "it has effects, which keep their order on one device";
  if (writesAtReadPlaces(loop))
    return "it writes rows at places that it reads";
  if (turns->count > mostWrites && writesSlices(loop))
    return "more than " + std::to_string(mostWrites) +
           " turns write into one tensor";
  return "";
}

/// Marks loops within another one that are written out with it.
static constexpr StringLiteral kWithin = "baechi.unrolled_within";

namespace {
class Unroller {
public:
  Unroller(func::FuncOp step, const UnrollLoopsOptions &options,
           UnrolledLoops &report)
      : step(step), options(options), report(report), folder(step),
        roofline(defaultRooflines().front()) {}

  void run() {
    Block &block = step.front();
    for (Operation &op : block) {
      operators += isCounted(&op);
      totalNs += double(roofline.timeNs(workOf(&op)));
    }
    for (Operation *op = &block.front(); op;) {
      Operation *before = op->getPrevNode();
      if (!isLoop(op) || !unroll(op)) {
        op = op->getNextNode();
        continue;
      }
      // Of a loop within, each turn's stands there now, and is met.
      op = before ? before->getNextNode() : &block.front();
    }
    if (report.unrolled.empty())
      return;
    unroll::emptyWholeStacks(step);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  /// Operators of all turns of \p loop; of those of loops within, too, which
  /// can be written out and are marked for it, if \p within.
  int64_t operatorsOfTurns(Operation *loop, bool within) {
    uint64_t ofTurn = 0, numbers = 0;
    for (Region &region : loop->getRegions())
      for (Operation &op : region.getOps())
        if (within && isLoop(&op) &&
            whyNever(&op, options.mostWrites).empty()) {
          op.setDiscardableAttr(kWithin, UnitAttr::get(op.getContext()));
          ofTurn = llvm::SaturatingAdd<uint64_t>(ofTurn,
                                                 operatorsOfTurns(&op, within));
        } else if (isCounted(&op))
          ofTurn = llvm::SaturatingAdd<uint64_t>(ofTurn, 1);
        else
          numbers += !isConstantOrView(&op);
    // One turn is written even where nothing is computed in it.
    ofTurn = std::max<uint64_t>(
        1, llvm::SaturatingAdd<uint64_t>(ofTurn, numbers / kNumbersOfOne));
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max() / 2;
    uint64_t turns = turnsOf(cast<LoopLikeOpInterface>(loop))->count;
    return int64_t(
        std::min(kMost, llvm::SaturatingMultiply<uint64_t>(turns, ofTurn)));
  }

  std::string nameOfLoop(Operation *loop) {
    std::string name = nameOf(loop);
    if (!name.empty())
      return name;
    llvm::raw_string_ostream os(name);
    if (auto file = loop->getLoc()->findInstanceOf<FileLineColLoc>())
      os << file.getFilename().strref() << ":" << file.getLine();
    else
      os << "loop " << report.unrolled.size() + report.whole.size();
    return name;
  }

  /// What a pattern with wildcards means, turns may be, too.
  bool isToBeKept(Operation *loop) {
    return llvm::is_contained(options.keep, nameOf(loop));
  }

  std::string whyNot(Operation *loop, bool &within, bool &isForTurns) {
    isForTurns = false;
    if (isToBeKept(loop))
      return "a pin or a cut names it";
    double ns = double(roofline.timeNs(workOf(loop)));
    if (100 * ns < options.leastShare * totalNs)
      return "it takes less than " + std::to_string(options.leastShare) +
             " % of the step";
    if (std::string why = whyNever(loop, options.mostWrites); !why.empty()) {
      std::optional<Turns> turns = turnsOf(cast<LoopLikeOpInterface>(loop));
      isForTurns = !turns || turns->count > options.mostWrites;
      return why;
    }
    int64_t room = options.limit - operators;
    within = true;
    int64_t made = operatorsOfTurns(loop, within);
    if (made - 1 > room) {
      within = false;
      made = operatorsOfTurns(loop, within);
    }
    isForTurns = made - 1 > room;
    if (isForTurns)
      return "its turns are " + std::to_string(made) +
             " operators, and the step would have more than " +
             std::to_string(options.limit);
    if (ns < double(options.leastNs) * double(made))
      return "its operators take less than " + std::to_string(options.leastNs) +
             " ns each";
    return "";
  }

  /// False where it stays whole.
  bool unroll(Operation *loop) {
    if (kept.contains(loop))
      return false;
    // What becomes of it was said with the loop that it was in.
    bool isDecided = bool(loop->removeDiscardableAttr(kWithin));
    bool within = true, isForTurns = false;
    std::string why = isDecided ? whyNever(loop, options.mostWrites)
                                : whyNot(loop, within, isForTurns);
    if (!why.empty()) {
      if (!isDecided)
        keepWhole(loop, std::move(why), isForTurns);
      return false;
    }
    Turns turns = *turnsOf(cast<LoopLikeOpInterface>(loop));
    if (!isDecided) {
      int64_t made = operatorsOfTurns(loop, within);
      operators += made - 1;
      remark::passed(loop->getLoc(), about("unrolled"))
          << remark::metric("Turns", turns.count)
          << remark::metric("Operators", made);
      report.unrolled.push_back({nameOfLoop(loop), turns.count, made});
    }
    for (Operation *copy : writeTurns(
             loop, turns, [this](Operation *op) { return folder.fold(op); }))
      // One whose turns were not known is one operator of each turn.
      if (isLoop(copy) && !(within && copy->hasAttr(kWithin)))
        keepCopy(copy);
    return true;
  }

  void keepCopy(Operation *loop) {
    kept.insert(loop);
    unmark(loop);
  }

  static void unmark(Operation *loop) {
    loop->walk([](Operation *op) { op->removeDiscardableAttr(kWithin); });
  }

  void keepWhole(Operation *loop, std::string why, bool isForTurns) {
    unmark(loop);
    remark::missed(loop->getLoc(), about("not-unrolled"))
        << remark::metric("Reason", why);
    report.whole.push_back({nameOfLoop(loop), std::move(why), isForTurns});
  }

  remark::RemarkOpts about(StringRef name) {
    return remark::RemarkOpts::name(name)
        .category("baechi-unroll-loops")
        .function(step.getName());
  }

  func::FuncOp step;
  const UnrollLoopsOptions &options;
  UnrolledLoops &report;
  unroll::TurnFolder folder;
  Roofline roofline;
  int64_t operators = 0;
  double totalNs = 0;
  /// Copies of loops within others that stay whole.
  llvm::DenseSet<Operation *> kept;
};

struct UnrollLoops : public baechi::impl::UnrollLoopsBase<UnrollLoops> {
  using UnrollLoopsBase::UnrollLoopsBase;
  UnrollLoops(const UnrollLoopsOptions &options, UnrolledLoops *unrolled)
      : UnrollLoopsBase(options), given(unrolled) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findFuncStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    UnrolledLoops own, &report = given ? *given : own;
    report = {};
    UnrollLoopsOptions options;
    options.limit = limit;
    options.leastShare = leastShare;
    options.leastNs = leastNs;
    options.mostWrites = mostWrites;
    for (const std::string &pattern : keep)
      options.keep.push_back(pattern);
    Unroller(*step, options, report).run();
    unrolledLoops += report.unrolled.size();
  }

private:
  UnrolledLoops *given = nullptr;
};
} // namespace

int64_t UnrolledLoops::operators() const {
  int64_t all = 0;
  for (const Loop &loop : unrolled)
    all += loop.operators;
  return all;
}

std::string baechi::whyWhole(Operation *loop) {
  const UnrollLoopsOptions options;
  if (std::string why = whyNever(loop, options.mostWrites); !why.empty())
    return why;
  int64_t ofTurn = 0, turns = turnsOf(cast<LoopLikeOpInterface>(loop))->count;
  for (Region &region : loop->getRegions())
    ofTurn += llvm::count_if(region.getOps(),
                             [](Operation &op) { return isCounted(&op); });
  const int64_t limit = options.limit;
  if (ofTurn == 0 || turns <= limit / ofTurn)
    return "";
  return "its " + std::to_string(turns) + " turns of " +
         std::to_string(ofTurn) + " operators are more than " +
         std::to_string(limit);
}

bool baechi::hasLoops(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isLoop(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

std::unique_ptr<Pass>
baechi::createUnrollLoops(const UnrollLoopsOptions &options,
                          UnrolledLoops *unrolled) {
  return std::make_unique<UnrollLoops>(options, unrolled);
}
