//===- Partition.cpp - One module a device of a placed program -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Analysis/Termination.h"
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
/// Takes other dialects' attributes off arguments and results: many do not
/// verify without a body.
void keepOwnAttributes(FunctionOpInterface function) {
  auto own = [](DictionaryAttr attrs) {
    return llvm::filter_to_vector(
        attrs ? attrs.getValue() : ArrayRef<NamedAttribute>(),
        [](NamedAttribute attr) {
          return isa_and_nonnull<BaechiDialect>(attr.getNameDialect());
        });
  };
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.setArgAttrs(index, own(function.getArgAttrDict(index)));
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    function.setResultAttrs(index, own(function.getResultAttrDict(index)));
}

/// What operators are called by number, once the step is in pieces.
using OperatorNumbers = llvm::DenseMap<Operation *, int64_t>;

/// Writes one device's step.
class DeviceWriter {
public:
  DeviceWriter(FunctionOpInterface step, const TransferSchedule &schedule,
               const OperatorNumbers &numbers, const SymbolTable &whole,
               int32_t device, ModuleOp module)
      : step(step), schedule(schedule), numbers(numbers), whole(whole),
        device(device), module(module), builder(module.getBodyRegion()) {}

  LogicalResult write() {
    createFunction();
    ArrayRef<Operation *> operators = schedule.operators[device];
    // The messages offered or posted before each position, in global order.
    SmallVector<SmallVector<const Message *, 1>> due(operators.size() + 1);
    SmallVector<SmallVector<Value, 1>> givenBack(operators.size() + 1);
    for (const Message &message : schedule.messages) {
      if (message.from == device)
        due[message.sendAt].push_back(&message);
      else if (message.to == device)
        due[message.recvAt].push_back(&message);
      if (message.lent && message.to == device)
        givenBack[message.giveBackAt].push_back(message.value);
    }
    for (int32_t position = 0, n = operators.size(); position <= n;
         ++position) {
      for (Value value : givenBack[position])
        GiveBackOp::create(builder, value.getLoc(), futures.lookup(value));
      for (const Message *message : due[position])
        writeMessage(*message);
      if (position < n)
        writeOperator(operators[position]);
    }
    writeReturn();
    writeSignature();
    return importSymbols();
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
    UnitAttr lent = message.lent ? builder.getUnitAttr() : UnitAttr();
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
                         builder.getI64IntegerAttr(message.seq), lent,
                         builder.getI64IntegerAttr(message.start),
                         builder.getI64IntegerAttr(message.end));
      withName(send);
      noteProducer(send, message.value);
      tokens.push_back(send.getToken());
      return;
    }
    auto recv = RecvOp::create(
        builder, loc,
        FutureType::get(builder.getContext(), message.value.getType()),
        builder.getStringAttr(schedule.devices[message.from]),
        builder.getI64IntegerAttr(message.queue),
        builder.getI64IntegerAttr(message.seq), lent,
        builder.getI64IntegerAttr(message.start),
        builder.getI64IntegerAttr(message.end));
    withName(recv);
    futures[message.value] = recv;
  }

  /// What made the tensor that is sent.
  void noteProducer(SendOp send, Value value) {
    int64_t number, output = 0;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      number = argument.getArgNumber();
    } else {
      number = numbers.lookup(value.getDefiningOp());
      output = cast<OpResult>(value).getResultNumber();
    }
    send->setAttr(BaechiDialect::kOperator, builder.getI64IntegerAttr(number));
    if (output)
      send->setAttr(BaechiDialect::kOutput, builder.getI64IntegerAttr(output));
  }

  /// The value that stands for \p value here: received, viewed and made
  /// constant where it is first needed.
  Value local(Value value) {
    // Views may follow each other in any number: no recursion.
    SmallVector<Value> missing{value};
    while (!missing.empty()) {
      Value next = missing.back();
      if (mapping.contains(next)) {
        missing.pop_back();
        continue;
      }
      if (auto it = futures.find(next); it != futures.end()) {
        auto await = AwaitOp::create(builder, it->second.getLoc(),
                                     next.getType(), it->second);
        mapping.map(next, await.getValue());
        continue;
      }
      Operation *op = next.getDefiningOp();
      size_t known = missing.size();
      for (Value operand : op->getOperands())
        if (!mapping.contains(operand))
          missing.push_back(operand);
      if (missing.size() == known)
        noteSymbols(builder.clone(*op, mapping));
    }
    return mapping.lookup(value);
  }

  void writeOperator(Operation *op) {
    for (Value value : valuesReadBy(op))
      (void)local(value);
    Operation *clone = builder.clone(*op, mapping);
    for (StringRef done : {BaechiDialect::kDevice, BaechiDialect::kSends,
                           BaechiDialect::kGroup, BaechiDialect::kPin})
      removeAttribute(clone, done);
    clone->setAttr(BaechiDialect::kOperator,
                   builder.getI64IntegerAttr(numbers.lookup(op)));
    noteSymbols(clone);
  }

  void writeReturn() {
    Operation *terminator = step.getFunctionBody().front().getTerminator();
    SmallVector<NamedAttribute> attrs;
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      Value root = rootOf(value);
      Operation *producer = root.getDefiningOp();
      bool constant = producer && !producer->hasAttr(BaechiDialect::kDevice);
      if (constant ? device != 0 : schedule.deviceOf(root) != device)
        continue;
      returned.push_back(local(value));
      NamedAttrList list(step.getResultAttrs(index));
      list.erase(BaechiDialect::kDevice); // of an earlier placement
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

  /// Remembers what \p op and its regions name.
  void noteSymbols(Operation *op) {
    op->walk([&](Operation *inner) {
      inner->getAttrDictionary().walk([&](SymbolRefAttr reference) {
        symbols.try_emplace(reference.getRootReference(), inner);
      });
    });
  }

  /// Kernels are declared in a device's module and defined once outside; other
  /// symbols are copied with whatever they name.
  LogicalResult importSymbols() {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    // What a copy names is added to the end.
    for (size_t next = 0; next < symbols.size(); ++next) {
      auto [name, user] = *std::next(symbols.begin(), next);
      Operation *named = whole.lookup(name);
      if (!named)
        continue;
      if (named == step)
        return user->emitOpError() << "uses the step @" << name.getValue()
                                   << " itself, which is no function any more "
                                      "once it is partitioned";
      auto function = dyn_cast<FunctionOpInterface>(named);
      bool kernel =
          isa<func::FuncOp>(named) && named->hasAttr(BaechiDialect::kKernel);
      Operation *copy =
          kernel ? top.cloneWithoutRegions(*named) : top.clone(*named);
      if (kernel)
        keepOwnAttributes(cast<FunctionOpInterface>(copy));
      if (function)
        SymbolTable::setSymbolVisibility(copy,
                                         SymbolTable::Visibility::Private);
      noteSymbols(copy);
    }
    return success();
  }

  FunctionOpInterface step;
  func::FuncOp function;
  const TransferSchedule &schedule;
  const OperatorNumbers &numbers;
  const SymbolTable &whole;
  int32_t device;
  ModuleOp module;
  OpBuilder builder;
  IRMapping mapping;
  llvm::DenseMap<Value, Value> futures;
  SmallVector<Value> tokens, returned;
  SmallVector<DictionaryAttr> resultAttrs;
  /// What is named, with an operation that does.
  llvm::MapVector<StringAttr, Operation *> symbols;
};

struct Partition : public baechi::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<FunctionOpInterface> step = findStep(module);
    auto machine = module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine);
    if (failed(step))
      return signalPassFailure();
    if (!machine) {
      emitError(module.getLoc()) << "no 'baechi.machine'; run --baechi-place";
      return signalPassFailure();
    }
    FailureOr<TransferSchedule> schedule =
        scheduleTransfers(*step, machine, copiedFrom);
    if (failed(schedule))
      return signalPassFailure();

    keepNames(*step);
    // Known while the step is whole: devices' modules only declare kernels.
    if (surelyEnds(*step))
      (*step)->setAttr(BaechiDialect::kEnds, UnitAttr::get(&getContext()));
    else
      removeAttribute(*step, BaechiDialect::kEnds);
    OperatorNumbers numbers;
    for (auto [index, op] : llvm::enumerate(operatorsOf(*step)))
      numbers[op] = step->getNumArguments() + index;
    Builder builder(module.getContext());
    SymbolTable table(module);
    for (auto [device, name] : llvm::enumerate(schedule->devices)) {
      auto deviceModule = ModuleOp::create(module.getLoc(), name);
      deviceModule->setAttr(BaechiDialect::kDevice,
                            builder.getStringAttr(name));
      table.insert(deviceModule); // under another name where that is taken
      if (failed(DeviceWriter(*step, *schedule, numbers, table, device,
                              deviceModule)
                     .write()))
        return signalPassFailure();
    }
    declareWhole(*step);
  }

  /// Writes down the names that operators have because others have the same:
  /// a device that has few of them would count anew.
  void keepNames(FunctionOpInterface step) {
    SmallVector<std::string> names = namesOf(step);
    for (auto [op, name] :
         llvm::zip_equal(operatorsOf(step),
                         llvm::drop_begin(names, step.getNumArguments())))
      if (StringRef(name).contains('#') && nameOf(op) != name)
        op->setAttr(BaechiDialect::kName, StringAttr::get(&getContext(), name));
  }

  /// What is left of the step is its signature: where arguments and results
  /// live, under their own names and positions.
  void declareWhole(FunctionOpInterface step) {
    Operation *terminator = step.getFunctionBody().front().getTerminator();
    Builder builder(&getContext());
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
      else
        step.removeResultAttr(index,
                              builder.getStringAttr(BaechiDialect::kDevice));
    }
    for (unsigned index = 0; index < step.getNumArguments(); ++index) {
      step.removeArgAttr(index, BaechiDialect::kSends);
      step.removeArgAttr(index, BaechiDialect::kGroup);
    }
    if (isa<func::FuncOp>(step)) {
      step.eraseBody();
      step.setPrivate();
      keepOwnAttributes(step);
      return;
    }
    // Whatever the step was, its devices' functions and its signature are
    // func.func.
    OpBuilder before(step);
    auto whole = func::FuncOp::create(
        before, step.getLoc(), step.getName(),
        builder.getFunctionType(step.getArgumentTypes(),
                                terminator->getOperandTypes()));
    whole.setPrivate();
    for (StringRef kept : {BaechiDialect::kCertificate, BaechiDialect::kEnds})
      if (Attribute attribute = step->getAttr(kept))
        whole->setAttr(kept, attribute);
    for (unsigned index = 0; index < whole.getNumArguments(); ++index)
      whole.setArgAttrs(index, step.getArgAttrDict(index));
    for (unsigned index = 0; index < whole.getNumResults(); ++index)
      whole.setResultAttrs(index, step.getResultAttrDict(index));
    step.erase();
    keepOwnAttributes(whole);
  }
};
} // namespace
