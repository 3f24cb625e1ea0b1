//===- Partition.cpp - Split a placed program into one module a device -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Transforms/Passes.h"
#include "TransferSchedule.h"
#include "mlir/IR/IRMapping.h"

namespace baechi {
#define GEN_PASS_DEF_PARTITION
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// Writes one device's step.
class DeviceWriter {
public:
  DeviceWriter(func::FuncOp step, const TransferSchedule &schedule,
               const SymbolTable &whole, int32_t device, ModuleOp module)
      : step(step), schedule(schedule), whole(whole), device(device),
        module(module), builder(module.getBodyRegion()) {}

  void write() {
    createFunction();
    ArrayRef<Operation *> operators = schedule.operators[device];
    // The messages offered or posted before each position, in global order.
    SmallVector<SmallVector<const Message *, 1>> due(operators.size() + 1);
    for (const Message &message : schedule.messages) {
      if (message.from == device)
        due[message.sendAt].push_back(&message);
      else if (message.to == device)
        due[message.recvAt].push_back(&message);
    }
    for (int32_t position = 0, n = operators.size(); position <= n;
         ++position) {
      for (const Message *message : due[position])
        writeMessage(*message);
      if (position < n)
        writeOperator(operators[position]);
    }
    writeReturn();
    writeSignature();
    importCallees();
  }

private:
  void createFunction() {
    SmallVector<Type> types;
    SmallVector<Location> locations;
    SmallVector<BlockArgument> arguments;
    for (BlockArgument argument : step.getArguments())
      if (schedule.deviceOf(argument) == device)
        arguments.push_back(argument);
    for (BlockArgument argument : arguments)
      types.push_back(argument.getType());
    function = func::FuncOp::create(builder, step.getLoc(), step.getName(),
                                    builder.getFunctionType(types, {}));
    Block *body = function.addEntryBlock();
    for (auto [index, argument] : llvm::enumerate(arguments)) {
      unsigned whole = argument.getArgNumber();
      mapping.map(argument, body->getArgument(index));
      body->getArgument(index).setLoc(argument.getLoc());
      if (Attribute name = step.getArgAttr(whole, BaechiDialect::kName))
        function.setArgAttr(index, BaechiDialect::kName, name);
      function.setArgAttr(index, BaechiDialect::kArgument,
                          builder.getI64IntegerAttr(whole));
    }
    builder.setInsertionPointToEnd(body);
  }

  void writeMessage(const Message &message) {
    Location loc = message.value.getLoc();
    Attribute name;
    if (auto argument = dyn_cast<BlockArgument>(message.value))
      name = step.getArgAttr(argument.getArgNumber(), BaechiDialect::kName);
    else
      name = message.value.getDefiningOp()->getAttr(BaechiDialect::kName);
    auto withName = [&](Operation *op) {
      if (name)
        op->setAttr(BaechiDialect::kName, name);
    };
    if (message.from == device) {
      auto send =
          SendOp::create(builder, loc, TokenType::get(builder.getContext()),
                         local(message.value),
                         builder.getStringAttr(schedule.devices[message.to]),
                         builder.getI64IntegerAttr(message.queue),
                         builder.getI64IntegerAttr(message.seq),
                         builder.getI64IntegerAttr(message.start),
                         builder.getI64IntegerAttr(message.end));
      withName(send);
      tokens.push_back(send.getToken());
      return;
    }
    auto type = cast<RankedTensorType>(message.value.getType());
    auto recv = RecvOp::create(
        builder, loc, FutureType::get(builder.getContext(), type),
        builder.getStringAttr(schedule.devices[message.from]),
        builder.getI64IntegerAttr(message.queue),
        builder.getI64IntegerAttr(message.seq),
        builder.getI64IntegerAttr(message.start),
        builder.getI64IntegerAttr(message.end));
    withName(recv);
    futures[message.value] = recv;
  }

  /// The value that stands for \p value here: received, viewed and made
  /// constant where it is first needed.
  Value local(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    if (auto it = futures.find(value); it != futures.end()) {
      auto await =
          AwaitOp::create(builder, it->second.getLoc(),
                          cast<RankedTensorType>(value.getType()), it->second);
      mapping.map(value, await.getValue());
      return await.getValue();
    }
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      (void)local(operand);
    builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

  void writeOperator(Operation *op) {
    for (Value value : valuesReadBy(op))
      (void)local(value);
    Operation *clone = builder.clone(*op, mapping);
    for (StringRef done : {BaechiDialect::kDevice, BaechiDialect::kSends,
                           BaechiDialect::kGroup, BaechiDialect::kPin})
      clone->removeAttr(done);
    if (auto call = dyn_cast<func::CallOp>(clone))
      callees.insert(call.getCalleeAttr().getAttr());
  }

  void writeReturn() {
    Operation *terminator = step.getBody().front().getTerminator();
    SmallVector<NamedAttribute> attrs;
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      Value root = rootOf(value);
      Operation *producer = root.getDefiningOp();
      bool constant = producer && !producer->hasAttr(BaechiDialect::kDevice);
      if (constant ? device != 0 : schedule.deviceOf(root) != device)
        continue;
      returned.push_back(local(value));
      NamedAttrList list(step.getResultAttrs(index));
      list.set(BaechiDialect::kResult, builder.getI64IntegerAttr(index));
      resultAttrs.push_back(list.getDictionary(builder.getContext()));
    }
    for (Value token : tokens)
      AwaitOp::create(builder, token.getLoc(), TypeRange(), token);
    func::ReturnOp::create(builder, terminator->getLoc(), returned);
  }

  /// The function's type and attributes, once its results are known.
  void writeSignature() {
    function.setFunctionType(builder.getFunctionType(
        function.getArgumentTypes(), TypeRange(ValueRange(returned))));
    llvm::DenseMap<Attribute, int64_t> positionOf;
    for (auto [index, attrs] : llvm::enumerate(resultAttrs)) {
      function.setResultAttrs(index, attrs);
      positionOf[attrs.get(BaechiDialect::kResult)] = index;
    }
    // An update is now a pair of positions in this device's function.
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      auto whole = function.getArgAttrOfType<IntegerAttr>(
          index, BaechiDialect::kArgument);
      Attribute by = step.getArgAttr(whole.getInt(), BaechiDialect::kUpdatedBy);
      if (auto it = positionOf.find(by); by && it != positionOf.end())
        function.setArgAttr(index, BaechiDialect::kUpdatedBy,
                            builder.getI64IntegerAttr(it->second));
    }
  }

  /// Kernels are declared in a device's module and defined once outside; other
  /// functions are copied with whatever they call.
  void importCallees() {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    SmallVector<StringAttr> worklist(callees.begin(), callees.end());
    while (!worklist.empty()) {
      StringAttr name = worklist.pop_back_val();
      auto callee = whole.lookup<func::FuncOp>(name);
      if (!callee || !imported.insert(name).second)
        continue;
      auto copy = cast<func::FuncOp>(callee->hasAttr(BaechiDialect::kKernel)
                                         ? top.cloneWithoutRegions(*callee)
                                         : top.clone(*callee));
      copy.setPrivate();
      copy.walk([&](func::CallOp call) {
        worklist.push_back(call.getCalleeAttr().getAttr());
      });
    }
  }

  func::FuncOp step, function;
  const TransferSchedule &schedule;
  const SymbolTable &whole;
  int32_t device;
  ModuleOp module;
  OpBuilder builder;
  IRMapping mapping;
  llvm::DenseMap<Value, Value> futures;
  SmallVector<Value> tokens, returned;
  SmallVector<DictionaryAttr> resultAttrs;
  llvm::SetVector<StringAttr> callees;
  llvm::DenseSet<StringAttr> imported;
};

struct Partition : public baechi::impl::PartitionBase<Partition> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> step = findStep(module);
    auto machine = module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine);
    if (failed(step))
      return signalPassFailure();
    if (!machine) {
      emitError(module.getLoc()) << "no 'baechi.machine'; run --baechi-place";
      return signalPassFailure();
    }
    FailureOr<TransferSchedule> schedule = scheduleTransfers(*step, machine);
    if (failed(schedule))
      return signalPassFailure();

    SymbolTable whole(module);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    for (auto [device, name] : llvm::enumerate(schedule->devices)) {
      auto deviceModule = ModuleOp::create(builder, module.getLoc(), name);
      deviceModule->setAttr(BaechiDialect::kDevice,
                            builder.getStringAttr(name));
      DeviceWriter(*step, *schedule, whole, device, deviceModule).write();
    }
    declareWhole(*step);
  }

  /// What is left of the step is its signature: where arguments and results
  /// live, under their own names and positions.
  void declareWhole(func::FuncOp step) {
    Operation *terminator = step.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      Value root = rootOf(value);
      Attribute device;
      if (auto argument = dyn_cast<BlockArgument>(root))
        device =
            step.getArgAttr(argument.getArgNumber(), BaechiDialect::kDevice);
      else
        device = root.getDefiningOp()->getAttr(BaechiDialect::kDevice);
      if (device)
        step.setResultAttr(index, BaechiDialect::kDevice, device);
    }
    for (unsigned index = 0; index < step.getNumArguments(); ++index) {
      step.removeArgAttr(index, BaechiDialect::kSends);
      step.removeArgAttr(index, BaechiDialect::kGroup);
    }
    step.eraseBody();
    step.setPrivate();
  }
};
} // namespace
