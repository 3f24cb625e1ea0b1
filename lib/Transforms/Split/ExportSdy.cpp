//===- ExportSdy.cpp - A plan of cuts as Shardy's annotations -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shardy's dialect is not linked: its operation is made unregistered, its
// attributes from their text.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Exports.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Transforms/Passes.h"
#include "Spmd.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace baechi {
#define GEN_PASS_DEF_EXPORTSDY
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

static constexpr StringLiteral kAxis = "devices", kMesh = "mesh",
                               kSharding = "sdy.sharding";

/// Devices of one kind, which all compute what is not cut.
static LogicalResult checkSpmd(func::FuncOp step,
                               const placement::Machine &machine) {
  const placement::Device &first = machine.devices.front();
  if (machine.devices.size() < 2)
    return emitError(step.getLoc())
           << "the machine has one device, '" << first.name
           << "'; shardings are for two and more";
  for (const placement::Device &device : machine.devices)
    if (device.kind != first.kind)
      return emitError(step.getLoc())
             << "device '" << first.name << "' is of kind '" << first.kind
             << "' and '" << device.name << "' of kind '" << device.kind
             << "'; an SPMD program gives every device the same work";
  auto check = [&](Location loc, Attribute device,
                   const Twine &what) -> LogicalResult {
    if (!device)
      return success();
    return emitError(loc) << what << "is on " << device
                          << " alone, and an SPMD program computes what is not "
                             "cut on every device; --baechi-export-mpmd says "
                             "where each operator is";
  };
  for (StringRef attribute : {BaechiDialect::kDevice, BaechiDialect::kPin}) {
    for (BlockArgument argument : step.getArguments()) {
      unsigned number = argument.getArgNumber();
      if (failed(check(argument.getLoc(), step.getArgAttr(number, attribute),
                       "argument " + Twine(number) + " ")))
        return failure();
    }
    for (Operation *op : operatorsOf(step))
      if (failed(check(op->getLoc(), op->getAttr(attribute),
                       "'" + op->getName().getStringRef() + "' ")))
        return failure();
  }
  return success();
}

namespace {
/// Writes what a plan says of tensors.
class Annotator {
public:
  Annotator(func::FuncOp step, const SpmdPlan &plan)
      : step(step), plan(plan), context(step.getContext()) {}

  void write(int64_t devices) {
    OpBuilder builder =
        OpBuilder::atBlockBegin(step->getParentOfType<ModuleOp>().getBody());
    OperationState mesh(step.getLoc(), "sdy.mesh");
    mesh.propertiesAttr = builder.getDictionaryAttr(
        {builder.getNamedAttr("mesh",
                              parsed("#sdy.mesh<[\"" + kAxis.str() +
                                     "\"=" + std::to_string(devices) + "]>")),
         builder.getNamedAttr("sym_name", builder.getStringAttr(kMesh))});
    builder.create(mesh);
    for (BlockArgument argument : step.getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        step.setArgAttr(
            argument.getArgNumber(), kSharding,
            parsed("#sdy.sharding" +
                   sharding(argument.getType(), plan.shareOf(argument))));
    for (auto [number, type] : llvm::enumerate(step.getResultTypes()))
      if (isa<RankedTensorType>(type))
        step.setResultAttr(
            number, kSharding,
            parsed("#sdy.sharding" + sharding(type, plan.resultShare(number))));
    for (Operation &op : step.front().without_terminator())
      annotate(&op);
  }

private:
  void annotate(Operation *op) {
    std::string all;
    for (Value result : op->getResults()) {
      if (!isa<RankedTensorType>(result.getType()) || plan.isFree(result))
        return;
      all += (all.empty() ? "" : ", ") +
             sharding(result.getType(), shareFor(result));
    }
    if (!all.empty())
      op->setAttr(kSharding, parsed("#sdy.sharding_per_value<[" + all + "]>"));
  }

  /// Partial results are said as joined where they are, and sums alone can be
  /// partial further on.
  Share shareFor(Value value) const {
    Share share = plan.shareOf(value);
    bool isJoinedHere =
        llvm::any_of(plan.collectives(), [&](const Collective &collective) {
          return collective.value == value;
        });
    bool isPartial = share.kind == Share::Kind::Partial;
    return isPartial && (isJoinedHere || !plan.isSum(value)) ? Share() : share;
  }

  /// As `<@mesh, [{"devices"}, {}]>`. Of a part whose elements lie apart no
  /// sharding can be said: it is left open.
  static std::string sharding(Type type, const Share &share) {
    bool isOpen = share.kind == Share::Kind::Part && share.position.outer != 1;
    std::string text = "<@" + kMesh.str() + ", [";
    for (int64_t dim = 0; dim < cast<RankedTensorType>(type).getRank(); ++dim) {
      bool isCut = share.kind == Share::Kind::Part && !isOpen &&
                   dim == int64_t(share.position.dim);
      text += dim ? ", " : "";
      text += isOpen ? "{?}" : (isCut ? "{\"" + kAxis.str() + "\"}" : "{}");
    }
    text += "]";
    if (share.kind == Share::Kind::Partial)
      text += ", unreduced={\"" + kAxis.str() + "\"}";
    return text + ">";
  }

  Attribute parsed(const std::string &text) const {
    return parseAttribute(text, context);
  }

  func::FuncOp step;
  const SpmdPlan &plan;
  MLIRContext *context;
};

/// The plan for who has no MLIR at hand: dimensions that are cut, or null.
llvm::json::Value toJson(func::FuncOp step, const SpmdPlan &plan,
                         int64_t devices) {
  auto dimension = [](const Share &share) -> llvm::json::Value {
    if (share.kind != Share::Kind::Part)
      return nullptr;
    return int64_t(share.position.dim);
  };
  llvm::json::Array arguments, results, collectives;
  for (BlockArgument argument : step.getArguments())
    arguments.push_back(dimension(plan.shareOf(argument)));
  for (unsigned number = 0; number < step.getNumResults(); ++number)
    results.push_back(dimension(plan.resultShare(number)));
  llvm::DenseMap<Value, std::string> names;
  SmallVector<std::string> all = namesOf(step);
  for (BlockArgument argument : step.getArguments())
    names[argument] = all[argument.getArgNumber()];
  for (auto [number, op] : llvm::enumerate(operatorsOf(step)))
    for (Value result : op->getResults())
      names[result] = all[step.getNumArguments() + number];
  for (const Collective &collective : plan.collectives()) {
    auto type = cast<RankedTensorType>(collective.value.getType());
    std::string element;
    llvm::raw_string_ostream(element) << type.getElementType();
    llvm::json::Array shape(type.getShape());
    collectives.push_back(
        llvm::json::Object{{"kind", collective.kind},
                           {"of", names.lookup(rootOf(collective.value))},
                           {"type", element},
                           {"shape", std::move(shape)}});
  }
  return llvm::json::Object{{"format", "baechi-shardings"},
                            {"version", 1},
                            {"devices", devices},
                            {"arguments", std::move(arguments)},
                            {"results", std::move(results)},
                            {"collectives", std::move(collectives)}};
}

struct ExportSdy : public baechi::impl::ExportSdyBase<ExportSdy> {
  using ExportSdyBase::ExportSdyBase;

  LogicalResult initialize(MLIRContext *context) override {
    // Before the passes run in parallel: Shardy's dialect is not linked.
    context->allowUnregisteredDialects();
    return success();
  }

  void runOnOperation() override {
    if (failed(exportStep()))
      signalPassFailure();
  }

private:
  LogicalResult exportStep() {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> step = findFuncStep(module);
    std::optional<placement::Machine> target = machineOf(module, machine);
    if (failed(step) || !target || failed(checkSpmd(*step, *target)))
      return failure();
    if (Operation *taken = SymbolTable::lookupSymbolIn(module, kMesh))
      return taken->emitOpError()
             << "has the name of the mesh of devices; rename it";
    int64_t devices = target->devices.size();
    PlanOptions options;
    options.pieces = choose ? devices : 0;
    options.reductions = options.even = true;
    options.largestFirst = true; // XLA's devices do not share their memory.
    FailureOr<SplitPlan> plan = planSplits(*step, options);
    if (failed(plan) || failed(checkEven(*plan, devices)))
      return failure();
    if (plan->cuts.empty())
      return emitError(step->getLoc())
             << "nothing is cut: no class of dimensions saves time in "
             << devices << " equal pieces; say what is to be cut "
             << "(baechi.split)";
    SpmdPlan shared(*step, *plan);
    if (!planFile.empty() && failed(writePlan(*step, shared, devices)))
      return failure();
    Annotator(*step, shared).write(devices);
    removeOwnAttributes(module);
    return success();
  }

  LogicalResult writePlan(func::FuncOp step, const SpmdPlan &plan,
                          int64_t devices) {
    std::error_code code;
    llvm::raw_fd_ostream os(planFile, code);
    if (!code) {
      os << llvm::formatv("{0:2}\n", toJson(step, plan, devices));
      os.close();
      code = os.error();
      os.clear_error();
    }
    if (!code)
      return success();
    return emitError(step.getLoc()) << "cannot write the plan to '" << planFile
                                    << "': " << code.message();
  }
};
} // namespace
