//===- ExportIree.cpp - A placed program as IREE's input -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// IREE derives where an operation runs from where its operands lie. So data
// movement says it: a transfer on every edge that crosses devices, and a
// barrier on the local operands of an operator that also reads received ones;
// without it IREE would let that operator's device wait for the other one
// before it starts its own, independent work.
//
// IREE's dialects are not linked: its operations are made unregistered, its
// attributes from their text.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Exports.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/Passes.h"
#include "Check.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

namespace baechi {
#define GEN_PASS_DEF_EXPORTIREE
#include "Baechi/Conversion/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// Puts transfers, barriers and locations on a checked step.
class StepWriter {
public:
  StepWriter(func::FuncOp step, llvm::StringMap<Attribute> affinities)
      : step(step), affinities(std::move(affinities)),
        operators(operatorsOf(step)), names(namesOf(step)), builder(step),
        symbols(step->getParentOfType<ModuleOp>()) {}

  void write() {
    for (BlockArgument argument : step.getArguments())
      deviceOf[argument] = step.getArgAttrOfType<StringAttr>(
          argument.getArgNumber(), BaechiDialect::kDevice);
    for (Operation *op : operators)
      if (!isConstant(op))
        for (Value result : op->getResults())
          deviceOf[result] =
              op->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
    for (auto [index, op] : llvm::enumerate(operators))
      writeOperator(op, names[step.getNumArguments() + index]);
    writeReturn();
    for (BlockArgument argument : step.getArguments())
      step.setArgAttr(argument.getArgNumber(), kAffinity,
                      affinities.at(deviceOf[argument].getValue()));
  }

private:
  static constexpr StringLiteral kAffinity = "iree.abi.affinity";

  /// True for an operator that reads no argument, however indirectly: IREE
  /// computes it when it compiles, for no device.
  bool isConstant(Operation *op) {
    return llvm::none_of(valuesReadBy(op), [&](Value value) {
      return deviceOf.contains(rootOf(value));
    });
  }

  void writeOperator(Operation *op, StringRef name) {
    op->setLoc(NameLoc::get(builder.getStringAttr(name), op->getLoc()));
    if (isConstant(op))
      return;
    auto device = op->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
    SmallVector<Value> values = valuesReadBy(op);
    bool receives = llvm::any_of(values, [&](Value value) {
      StringAttr source = deviceOf.lookup(rootOf(value));
      return source && source != device;
    });
    pinInserts(op, device);
    if (auto call = dyn_cast<func::CallOp>(op))
      pinKernel(call, device);
    builder.setInsertionPoint(op);
    for (Value value : values) {
      Value here = received(value, device);
      if (here == value && receives)
        here = barred(value, device);
      if (here == value)
        continue;
      value.replaceUsesWithIf(
          here, [&](OpOperand &use) { return op->isAncestor(use.getOwner()); });
    }
  }

  /// Transfers the fresh tensors that \p op inserts into. IREE would share an
  /// equal one among devices and then place its readers together.
  void pinInserts(Operation *op, StringAttr device) {
    op->walk([&](tensor::InsertSliceOp insert) {
      if (!isFresh(rootOf(insert.getDest())))
        return;
      builder.setInsertionPoint(insert);
      insert.getDestMutable().set(transfer(insert.getDest(), device));
    });
  }

  static bool isFresh(Value root) {
    Operation *op = root.getDefiningOp();
    return op && (isa<tensor::EmptyOp, linalg::FillOp>(op) ||
                  matchPattern(op, m_Constant()));
  }

  /// Gives \p device a kernel of its own where one must be pinned.
  void pinKernel(func::CallOp call, StringAttr device) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    WalkResult inserts = callee.walk([](tensor::InsertSliceOp insert) {
      return isFresh(rootOf(insert.getDest())) ? WalkResult::interrupt()
                                               : WalkResult::advance();
    });
    func::FuncOp &pinned = kernels[{callee, device}];
    if (!pinned && inserts.wasInterrupted()) {
      pinned = callee.clone();
      pinned.setName((callee.getName() + "_" + device.getValue()).str());
      symbols.insert(pinned, std::next(callee->getIterator()));
      pinInserts(pinned, device);
    }
    if (pinned)
      call.setCallee(pinned.getName());
  }

  /// Results stay where they were computed.
  void writeReturn() {
    Operation *terminator = step.getBody().front().getTerminator();
    builder.setInsertionPoint(terminator);
    for (OpOperand &use : terminator->getOpOperands()) {
      StringAttr device = deviceOf.lookup(rootOf(use.get()));
      if (!device)
        device = builder.getStringAttr(firstDevice());
      use.set(received(use.get(), device));
      step.setResultAttr(use.getOperandNumber(), kAffinity,
                         affinities.at(device.getValue()));
    }
  }

  /// The machine's first device: there results without a device are returned.
  StringRef firstDevice() {
    auto machine =
        step->getParentOfType<ModuleOp>()->getAttrOfType<MachineAttr>(
            BaechiDialect::kMachine);
    return machine.getDevices().front().getName();
  }

  /// \p value on \p device: moved there once, before its first reader; views
  /// are made again there, so that their buffer crosses no second time.
  /// Constants are moved to whoever reads them: IREE would else place all
  /// readers of a constant together.
  Value received(Value value, StringAttr device) {
    Value root = rootOf(value);
    StringAttr source = deviceOf.lookup(root);
    if (source == device || !isa<TensorType>(value.getType()) || isFree(root))
      return value;
    Value &copy = copies[{value, device}];
    if (copy)
      return copy;
    if (value == root)
      return copy = transfer(value, device);
    Operation *view = value.getDefiningOp();
    IRMapping mapping;
    mapping.map(view->getOperand(0), received(view->getOperand(0), device));
    // The recursion may have moved the map.
    return copies[{value, device}] =
               builder.clone(*view, mapping)->getResult(0);
  }

  /// \p value, on \p device already, in a way that IREE sees.
  Value barred(Value value, StringAttr device) {
    if (!isa<TensorType>(value.getType()) || isFree(rootOf(value)))
      return value;
    Value &barrier = copies[{value, device}];
    if (!barrier)
      barrier = create("flow.tensor.barrier", value, device, {});
    return barrier;
  }

  /// Uninitialized tensors and splats are made anew wherever they are read.
  static bool isFree(Value root) {
    Operation *op = root.getDefiningOp();
    DenseElementsAttr elements;
    return op &&
           (isa<tensor::EmptyOp>(op) ||
            (matchPattern(op, m_Constant(&elements)) && elements.isSplat()));
  }

  Value transfer(Value value, StringAttr device) {
    return create("flow.tensor.transfer", value, device,
                  {builder.getNamedAttr("operandSegmentSizes",
                                        builder.getDenseI32ArrayAttr({1, 0}))});
  }

  Value create(StringRef name, Value value, StringAttr device,
               ArrayRef<NamedAttribute> more) {
    OperationState state(value.getLoc(), name, value, value.getType());
    NamedAttrList attributes(more);
    attributes.set("target", affinities.at(device.getValue()));
    state.propertiesAttr = attributes.getDictionary(builder.getContext());
    return builder.create(state)->getResult(0);
  }

  func::FuncOp step;
  llvm::StringMap<Attribute> affinities;
  SmallVector<Operation *> operators;
  SmallVector<std::string> names;
  OpBuilder builder;
  SymbolTable symbols;
  /// The kernels that are pinned, by the whole program's and the device.
  llvm::DenseMap<std::pair<Operation *, StringAttr>, func::FuncOp> kernels;
  llvm::DenseMap<Value, StringAttr> deviceOf; ///< of arguments and results
  /// What stands for a value on a device: received there or, where it lies on
  /// that device, barred.
  llvm::DenseMap<std::pair<Value, StringAttr>, Value> copies;
};

struct ExportIree : public baechi::impl::ExportIreeBase<ExportIree> {
  using ExportIreeBase::ExportIreeBase;

  LogicalResult initialize(MLIRContext *context) override {
    // Before the passes run in parallel: IREE's dialects are not linked.
    context->allowUnregisteredDialects();
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<PlacedStep> placed = findPlacedStep(module);
    if (failed(placed) || failed(checkForIree(placed->step)))
      return signalPassFailure();
    std::optional<llvm::StringMap<Attribute>> affinities =
        declareDevices(module, placed->machine);
    if (!affinities)
      return signalPassFailure();
    StepWriter(placed->step, std::move(*affinities)).write();
    removeOwnAttributes(module);
  }

private:
  /// A global a device, and what an operation on it says; nullopt with an
  /// error where that cannot be.
  std::optional<llvm::StringMap<Attribute>>
  declareDevices(ModuleOp module, MachineAttr machine) {
    llvm::StringMap<std::string> targets = {
        {"host", "local"}, {"cpu", "local"},     {"cuda", "cuda"},
        {"hip", "hip"},    {"vulkan", "vulkan"}, {"metal", "metal"}};
    SmallVector<StringRef> pairs;
    StringRef(devices).split(pairs, ',', -1, /*KeepEmpty=*/false);
    for (StringRef pair : pairs) {
      auto [kind, target] = pair.split('=');
      if (kind.empty() || target.empty()) {
        emitError(module.getLoc())
            << "'" << pair
            << "' in 'devices' is not KIND=TARGET, as host=local";
        return std::nullopt;
      }
      targets[kind] = target.str();
    }
    MLIRContext *context = &getContext();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    llvm::StringMap<Attribute> affinities;
    llvm::StringMap<int64_t> ordinals;
    for (DeviceSpecAttr device : machine.getDevices()) {
      auto target = targets.find(device.getKind());
      if (target == targets.end()) {
        emitError(module.getLoc())
            << "no IREE target for devices of kind '" << device.getKind()
            << "'; name it: --baechi-export-iree=devices=" << device.getKind()
            << "=TARGET";
        return std::nullopt;
      }
      if (Operation *taken =
              SymbolTable::lookupSymbolIn(module, device.getName())) {
        taken->emitOpError() << "has the name of device '" << device.getName()
                             << "'; rename one of them";
        return std::nullopt;
      }
      std::string alias;
      llvm::raw_string_ostream(alias)
          << "#hal.device.alias<\"" << target->second << "\"["
          << ordinals[target->second]++ << "]> : !hal.device";
      std::string affinity;
      llvm::raw_string_ostream(affinity)
          << "#hal.device.affinity<"
          << FlatSymbolRefAttr::get(context, device.getName()) << ">";
      OperationState state(module.getLoc(), "util.global");
      state.propertiesAttr = builder.getDictionaryAttr(
          {builder.getNamedAttr("initial_value",
                                parseAttribute(alias, context)),
           builder.getNamedAttr("sym_name",
                                builder.getStringAttr(device.getName())),
           builder.getNamedAttr("sym_visibility",
                                builder.getStringAttr("private")),
           builder.getNamedAttr(
               "type", TypeAttr::get(parseType("!hal.device", context)))});
      builder.create(state);
      affinities[device.getName()] = parseAttribute(affinity, context);
    }
    return affinities;
  }
};
} // namespace
