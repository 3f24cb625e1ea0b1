//===- PlanMemory.cpp - Offsets of tensors in the arenas -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"
#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Parts.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Transforms/Passes.h"
#include "StepBuffers.h"
#include "Transforms/PlanPasses.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

namespace baechi {
#define GEN_PASS_DEF_PLANMEMORY
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// Operators of a GPU that run beside each other are, with few exceptions, so
/// close in the order of the program: what is used again sooner makes them wait
/// for each other. Of GNMT, Inception-V3 and a Transformer four times as many
/// let 2 % more run at once.
constexpr int32_t restOfGpus = 16;
/// How many times as large an arena may become by that.
constexpr int64_t mostGrowth = 2;

/// How many of the largest tensors a refusal names.
constexpr size_t culprits = 5;

/// Plans one device's arena: arguments first, for good, then everything else
/// by lifetime in program order.
class DevicePlan {
public:
  /// \p promised: the bytes that the placement promised; 0: none.
  /// \p onlyFits: as createPlanMemory() has it.
  DevicePlan(DeviceProgram program, int64_t promised, bool onlyFits)
      : program(program), step(program.step), promised(promised),
        onlyFits(onlyFits), plan(program.step), order(plan.order),
        buffers(plan.buffers) {}

  LogicalResult run() {
    if (failed(checkResults()) || failed(planArguments()))
      return failure();
    planConstants();
    if (failed(plan.create()))
      return failure();
    // As much as the placement promised may be live, with both, too.
    plan.joinInPlace(promised - resident);
    int64_t limit = program.spec.getMemory();
    Packing packing = assignOffsets(buffers, resident, limit, onlyFits);
    if (packing.bytes > limit) {
      plan.separate();
      packing = assignOffsets(buffers, resident, limit, onlyFits);
    }
    if (program.spec.getKind() == "cuda")
      if (std::optional<Packing> rested = assignRested(
              buffers, resident, restOfGpus,
              std::min(program.spec.getMemory(), mostGrowth * packing.bytes)))
        packing = *rested;
    int64_t bytes = packing.bytes;
    auto [live, peakAt] = livePeak(buffers);
    report = {program.name.str(),       bytes,     resident + live, promised,
              program.spec.getMemory(), packing.by};
    if (bytes > program.spec.getMemory())
      return refuse(bytes, live, peakAt);
    if (findOverlap(buffers))
      return emitError(step.getLoc())
             << "two live tensors share memory on '" << program.name
             << "'; this is a defect of "
             << "--baechi-plan-memory";
    writeOffsets();
    moveSendAwaits();
    writeCopies();
    program.module->setAttr(BaechiDialect::kArena,
                            ArenaAttr::get(step.getContext(), bytes, resident,
                                           resident + live,
                                           program.spec.getMemory(), promised));
    return success();
  }

  /// What was found, once offsets were sought.
  ArenaReport report;

private:
  /// Results are read in place when the step has ended: they must have a place,
  /// and still be there.
  LogicalResult checkResults() {
    Operation *terminator = order.back();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      Value root = rootOf(value);
      if (tensorBytes(value.getType(), false) !=
          tensorBytes(root.getType(), false))
        return emitError(value.getLoc())
               << "result " << index
               << " is a part of another tensor's buffer; take 'baechi.view' "
                  "off its slice, which is an operator then";
      auto argument = dyn_cast<BlockArgument>(root);
      if (!argument) {
        if (matchPattern(root.getDefiningOp(), m_Constant()))
          return emitError(root.getLoc())
                 << "result " << index
                 << " is a constant; run --baechi-form-kernels, which makes "
                    "it an operator";
        continue;
      }
      auto by = step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                   BaechiDialect::kUpdatedBy);
      if (by && rootOf(terminator->getOperand(by.getInt())) != root)
        return emitError(step.getLoc())
               << "result " << index << " is argument "
               << argument.getArgNumber()
               << "'s value before its update; run --baechi-form-kernels, "
                  "which copies it";
    }
    return success();
  }

  LogicalResult planArguments() {
    llvm::DenseMap<Value, Operation *> joins;
    if (failed(findJoins(joins)))
      return failure();
    argumentOffset.assign(step.getNumArguments(), -1);
    for (BlockArgument argument : step.getArguments()) {
      int64_t &offset = argumentOffset[argument.getArgNumber()];
      std::optional<int64_t> bytes = tensorBytes(argument.getType(), true);
      if (!bytes)
        return emitError(step.getLoc())
               << "argument " << argument.getArgNumber() << " has type "
               << argument.getType() << "; memory needs static shapes";
      if (offset >= 0)
        continue;
      if (Operation *join = joins.lookup(argument)) {
        for (auto [operand, part] :
             llvm::zip_equal(join->getOperands(), partsOf(join, symbols)))
          argumentOffset[cast<BlockArgument>(operand).getArgNumber()] =
              resident + part;
        bytes = tensorBytes(join->getResult(0).getType(), true);
      } else {
        offset = resident;
      }
      resident += *bytes;
    }
    return success();
  }

  /// A GPU reads constants in its own memory.
  void planConstants() {
    if (program.spec.getKind() != "cuda")
      return;
    for (Operation *op : order)
      if (ElementsAttr data; matchPattern(op, m_Constant(&data))) {
        constantOffset[op->getResult(0)] = resident;
        resident += *tensorBytes(op->getResult(0).getType(), true);
      }
  }

  /// What joins each argument that lies behind others.
  LogicalResult findJoins(llvm::DenseMap<Value, Operation *> &joins) {
    for (Operation *op : order) {
      if (!op->hasAttr(kJoined))
        continue;
      bool isRight = bool(firstPart(op, symbols));
      llvm::SmallDenseSet<Value> seen;
      for (Value operand : op->getOperands()) {
        Operation *known = joins.try_emplace(operand, op).first->second;
        isRight &= isa<BlockArgument>(operand) && seen.insert(operand).second &&
                   known->getOperands() == op->getOperands();
      }
      if (!isRight)
        return op->emitOpError()
               << "is joined and does not put whole arguments together, each "
                  "in one result alone; take 'baechi.joined' off";
    }
    return success();
  }

  LogicalResult refuse(int64_t bytes, int64_t live, int32_t peakAt) {
    InFlightDiagnostic diag =
        emitError(step.getLoc())
        << "device '" << program.name << "' has " << program.spec.getMemory()
        << " bytes (" << placement::bytesText(program.spec.getMemory(), 2)
        << "), the plan needs " << bytes << " ("
        << placement::bytesTextUp(bytes, 2) << "): " << resident
        << (constantOffset.empty() ? " of parameters and inputs"
                                   : " of parameters, inputs and constants")
        << ", at most " << live << " of other tensors at once";
    SmallVector<size_t> atPeak;
    for (auto [id, buffer] : llvm::enumerate(buffers))
      if (buffer.first <= peakAt && peakAt <= buffer.last)
        atPeak.push_back(id);
    llvm::sort(atPeak, [&](size_t a, size_t b) {
      return std::pair(-buffers[a].bytes, a) < std::pair(-buffers[b].bytes, b);
    });
    for (size_t id : ArrayRef(atPeak).take_front(culprits)) {
      Operation *owner = plan.owners[id];
      std::string name = nameOf(owner);
      diag.attachNote(owner->getLoc())
          << buffers[id].bytes << " bytes at the peak: "
          << (name.empty() ? owner->getName().getStringRef() : StringRef(name));
    }
    return failure();
  }

  //===--------------------------------------------------------------------===//
  // Results of the plan
  //===--------------------------------------------------------------------===//

  /// Where a root lies, and its bytes; nullopt for a host device's constants
  /// and for loans.
  std::optional<std::pair<int64_t, int64_t>> rangeOf(Value root) {
    if (auto it = constantOffset.find(root); it != constantOffset.end())
      return std::pair(it->second, *tensorBytes(root.getType(), true));
    Value place = root;
    if (BlockArgument argument = plan.argumentOf(root))
      place = argument;
    if (auto argument = dyn_cast<BlockArgument>(place))
      return std::pair(argumentOffset[argument.getArgNumber()],
                       *tensorBytes(root.getType(), true));
    std::optional<StepBuffers::Place> planned = plan.placeOf(root);
    if (!planned)
      return std::nullopt;
    return std::pair(buffers[planned->buffer].offset + planned->offset,
                     *tensorBytes(root.getType(), true));
  }

  void writeOffsets() {
    Builder builder(step.getContext());
    for (BlockArgument argument : step.getArguments())
      step.setArgAttr(
          argument.getArgNumber(), BaechiDialect::kOffset,
          builder.getI64IntegerAttr(argumentOffset[argument.getArgNumber()]));
    for (Operation *op : order) {
      SmallVector<int64_t> offsets;
      for (OpResult result : op->getResults())
        if (auto range = rangeOf(result))
          offsets.push_back(range->first);
      if (std::optional<size_t> scratch = plan.scratchOf(op))
        offsets.push_back(buffers[*scratch].offset);
      if (!offsets.empty())
        op->setAttr(BaechiDialect::kOffset,
                    builder.getDenseI64ArrayAttr(offsets));
    }
  }

  /// The buffers that \p op writes.
  void writtenBy(Operation *op,
                 SmallVectorImpl<std::pair<int64_t, int64_t>> &ranges) {
    if (SmallVector<bool> inPlace = partsInPlace(op, symbols);
        llvm::is_contained(inPlace, true)) {
      int64_t whole = rangeOf(op->getResult(0))->first;
      for (auto [operand, part, lies] :
           llvm::zip_equal(op->getOperands(), partsOf(op, symbols), inPlace))
        if (!lies)
          ranges.push_back(
              {whole + part, *tensorBytes(operand.getType(), true)});
      return;
    }
    for (OpResult result : op->getResults())
      if (auto range = rangeOf(result))
        ranges.push_back(*range);
    if (std::optional<size_t> scratch = plan.scratchOf(op))
      ranges.push_back({buffers[*scratch].offset, buffers[*scratch].bytes});
  }

  /// Awaits each send right before the first operation that reuses what it
  /// reads; the others stay at the end of the step.
  void moveSendAwaits() {
    SmallVector<SmallVector<std::pair<int64_t, int64_t>, 2>> written;
    for (Operation *op : order)
      writtenBy(op, written.emplace_back());
    for (Operation *op : order) {
      auto send = dyn_cast<SendOp>(op);
      if (!send)
        continue;
      std::optional<std::pair<int64_t, int64_t>> range =
          rangeOf(rootOf(send.getValue()));
      if (!range)
        continue;
      for (size_t position = plan.positionOf[op] + 1; position < order.size();
           ++position) {
        bool overlaps = llvm::any_of(written[position], [&](auto other) {
          return other.first < range->first + range->second &&
                 range->first < other.first + other.second;
        });
        if (!overlaps)
          continue;
        for (Operation *await : send.getToken().getUsers())
          if (plan.positionOf.lookup(await) > static_cast<int32_t>(position))
            await->moveBefore(order[position]);
        break;
      }
    }
  }

  void writeCopies() {
    Operation *terminator = order.back();
    OpBuilder builder(terminator);
    for (BlockArgument argument : step.getArguments()) {
      auto by = step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                   BaechiDialect::kUpdatedBy);
      if (!by)
        continue;
      Value next = terminator->getOperand(by.getInt());
      Value root = rootOf(next);
      if (root == argument || plan.argumentOf(root) == argument)
        continue;
      CopyOp::create(builder, terminator->getLoc(), next, argument);
    }
  }

  DeviceProgram program;
  func::FuncOp step;
  int64_t promised;
  bool onlyFits;
  StepBuffers plan;
  ArrayRef<Operation *> order;
  SmallVectorImpl<Buffer> &buffers;
  SmallVector<int64_t> argumentOffset;
  llvm::DenseMap<Value, int64_t> constantOffset;
  int64_t resident = 0;
  SymbolTableCollection symbols;
};

struct PlanMemory : public baechi::impl::PlanMemoryBase<PlanMemory> {
  PlanMemory() = default;
  PlanMemory(std::vector<ArenaReport> *arenas, bool onlyFits)
      : arenas(arenas), onlyFits(onlyFits) {}

  void runOnOperation() override {
    FailureOr<SmallVector<DeviceProgram>> programs =
        devicePrograms(getOperation());
    if (failed(programs))
      return signalPassFailure();
    SmallVector<int64_t> peaks = promisedPeaks(*programs);
    for (auto [device, program] : llvm::enumerate(*programs)) {
      DevicePlan plan(program, peaks.empty() ? 0 : peaks[device], onlyFits);
      // Every device that is too small is told of.
      if (failed(plan.run()))
        signalPassFailure();
      remarkArena(program.step, plan.report);
      if (arenas)
        arenas->push_back(plan.report);
    }
  }

private:
  static void remarkArena(func::FuncOp step, const ArenaReport &arena) {
    if (auto remark =
            remark::analysis(step.getLoc(), remark::RemarkOpts::name("arena")
                                                .category("baechi-plan-memory")
                                                .function(step.getName())))
      remark << remark::metric("Device", arena.device)
             << remark::metric("ArenaBytes", arena.bytes)
             << remark::metric("LiveBytes", arena.live)
             << remark::metric("PromisedBytes", arena.promised)
             << remark::metric("LimitBytes", arena.limit)
             << remark::metric("Packing", arena.by.str());
  }

  /// By the certificate of the whole step, if it has one of this machine. Of
  /// pools that a placer was not shown it says nothing.
  SmallVector<int64_t> promisedPeaks(ArrayRef<DeviceProgram> programs) {
    auto isPool = [](const DeviceProgram &program) {
      DeviceProgram named = program;
      return placement::isPoolKind(named.spec.getKind());
    };
    for (auto whole : getOperation().getOps<func::FuncOp>()) {
      auto certificate = whole->getAttrOfType<PlacementCertificateAttr>(
          BaechiDialect::kCertificate);
      if (!certificate || !certificate.getPeaks())
        continue;
      ArrayRef<int64_t> peaks = certificate.getPeaks().asArrayRef();
      if (peaks.size() == programs.size())
        return SmallVector<int64_t>(peaks);
      if (peaks.size() + llvm::count_if(programs, isPool) != programs.size())
        continue;
      SmallVector<int64_t> all;
      const int64_t *next = peaks.begin();
      for (const DeviceProgram &program : programs)
        all.push_back(isPool(program) ? 0 : *next++);
      return all;
    }
    return {};
  }

  std::vector<ArenaReport> *arenas = nullptr;
  bool onlyFits = false;
};
} // namespace

std::unique_ptr<Pass>
baechi::createPlanMemory(std::vector<ArenaReport> *arenas) {
  return createPlanMemory(arenas, /*onlyFits=*/false);
}

std::unique_ptr<Pass> baechi::createPlanMemory(std::vector<ArenaReport> *arenas,
                                               bool onlyFits) {
  return std::make_unique<PlanMemory>(arenas, onlyFits);
}
