//===- ExportMpmd.cpp - A placed program in Shardy's MPMD dialect ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device is a mesh of one device, an operator a fragment on it. Fragments
// see nothing from outside but their operands, so what is no operator
// (constants, views) is made again in each that reads it.
//
// Shardy's dialects are not linked: their operations are made unregistered,
// their attributes and types from their text. One stands for MPMD, as symbols
// are not looked up from within operations of no dialect at all.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Exports.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace baechi {
#define GEN_PASS_DEF_EXPORTMPMD
#include "Baechi/Conversion/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

/// \p text as the dialects' text quotes it.
static std::string quoted(StringRef text) {
  std::string result = "\"";
  llvm::raw_string_ostream os(result);
  llvm::printEscapedString(text, os);
  return result + "\"";
}

//===----------------------------------------------------------------------===//
// What MPMD can say
//===----------------------------------------------------------------------===//

static LogicalResult checkTensor(Location loc, Type type, const Twine &what) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.hasStaticShape())
    return success();
  return emitError(loc) << what << "has type " << type
                        << ", which no mesh holds; meshes hold tensors of "
                           "static shape";
}

static LogicalResult checkForMpmd(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments())
    if (failed(checkTensor(argument.getLoc(), argument.getType(),
                           "argument " + Twine(argument.getArgNumber()) + " ")))
      return failure();
  for (Operation *op : operatorsOf(step))
    for (Type type : op->getResultTypes())
      if (failed(checkTensor(op->getLoc(), type,
                             "'" + op->getName().getStringRef() + "' ")))
        return failure();
  Operation *terminator = step.getBody().front().getTerminator();
  for (auto [index, type] : llvm::enumerate(terminator->getOperandTypes()))
    if (failed(checkTensor(terminator->getLoc(), type,
                           "result " + Twine(index) + " ")))
      return failure();
  SymbolTableCollection symbols;
  auto module = step->getParentOfType<ModuleOp>();
  WalkResult result = module.walk([&](func::CallOp call) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (callee && !callee.isDeclaration())
      return WalkResult::advance();
    call.emitOpError() << "calls @" << call.getCallee()
                       << ", which has no body for a fragment to run";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Fragments and transfers
//===----------------------------------------------------------------------===//

namespace {
class StandInDialect final : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StandInDialect)

  explicit StandInDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<StandInDialect>()) {
    allowUnknownOperations();
    allowUnknownTypes();
  }

  static constexpr StringLiteral getDialectNamespace() { return {"mpmd"}; }

  static Type type(StringRef text, MLIRContext *context) {
    return OpaqueType::get(StringAttr::get(context, getDialectNamespace()),
                           text);
  }
  static Attribute attribute(StringRef text, MLIRContext *context) {
    return OpaqueAttr::get(StringAttr::get(context, getDialectNamespace()),
                           text, NoneType::get(context));
  }
};

/// Writes the step of a checked, placed module on meshes, beside the step.
class MeshWriter {
public:
  MeshWriter(func::FuncOp step, MachineAttr machine)
      : step(step), machine(machine), builder(step), names(namesOf(step)),
        operators(operatorsOf(step)) {}

  void write() {
    for (auto [number, op] : llvm::enumerate(operators))
      numberOf[op] = number;
    noteSends();
    createFunction();
    for (Operation *op : inPlannedOrder())
      writeOperator(op);
    writeReturn();
  }

private:
  /// From where the plan moves a value to a device: where it was made, or from
  /// another that has it by then.
  void noteSends() {
    auto note = [&](ValueRange values, ArrayAttr sends) {
      if (sends)
        for (auto send : sends.getAsRange<TransferAttr>())
          if (send.getResult() < static_cast<int64_t>(values.size()))
            sender[{values[send.getResult()],
                    builder.getStringAttr(send.getTo())}] =
                builder.getStringAttr(send.getFrom());
    };
    for (BlockArgument argument : step.getArguments())
      note(ValueRange(argument),
           step.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                            BaechiDialect::kSends));
    for (Operation *op : operators)
      note(op->getResults(),
           op->getAttrOfType<ArrayAttr>(BaechiDialect::kSends));
  }

  /// The order of planned starts, in which each mesh runs its fragments, as far
  /// as values are there.
  SmallVector<Operation *> inPlannedOrder() {
    auto startOf = [](Operation *op) {
      auto start = op->getAttrOfType<IntegerAttr>(BaechiDialect::kStart);
      return start ? start.getInt() : 0;
    };
    SmallVector<Operation *> wanted(operators);
    llvm::stable_sort(wanted, [&](Operation *a, Operation *b) {
      return startOf(a) < startOf(b);
    });
    llvm::SetVector<Operation *> ordered;
    SmallVector<Operation *> open;
    for (Operation *op : wanted) {
      open.push_back(op);
      while (!open.empty()) {
        Operation *next = open.back();
        size_t before = open.size();
        for (Value value : valuesReadBy(next))
          if (Operation *producer = rootOf(value).getDefiningOp();
              producer && numberOf.contains(producer) &&
              !ordered.contains(producer))
            open.push_back(producer);
        if (open.size() > before)
          continue;
        ordered.insert(next);
        open.pop_back();
      }
    }
    return ordered.takeVector();
  }

  /// Its arguments are the step's, on their meshes.
  void createFunction() {
    SmallVector<Type> types;
    for (BlockArgument argument : step.getArguments())
      types.push_back(meshType(argument.getType(), homeOf(argument)));
    SmallVector<Type> results;
    Operation *terminator = step.getBody().front().getTerminator();
    for (Value value : terminator->getOperands())
      results.push_back(meshType(value.getType(), homeOf(rootOf(value))));
    function = func::FuncOp::create(builder, step.getLoc(), step.getName(),
                                    builder.getFunctionType(types, results));
    Block *body = function.addEntryBlock();
    for (BlockArgument argument : step.getArguments()) {
      unsigned number = argument.getArgNumber();
      Value mine = body->getArgument(number);
      mine.setLoc(argument.getLoc());
      onMesh[{argument, homeOf(argument)}] = mine;
      auto updated =
          step.getArgAttrOfType<IntegerAttr>(number, BaechiDialect::kUpdatedBy);
      if (updated && results[updated.getInt()] == types[number])
        function.setArgAttr(number, "tf.aliasing_output",
                            builder.getI32IntegerAttr(updated.getInt()));
    }
    std::string topology;
    for (DeviceSpecAttr device : machine.getDevices())
      topology += (topology.empty() ? "<" : ", <") + quoted(device.getName()) +
                  " : <[\"x\"=1]>>";
    function->setAttr("topology",
                      StandInDialect::attribute("topology<" + topology + ">",
                                                builder.getContext()));
    builder.setInsertionPointToEnd(body);
  }

  void writeOperator(Operation *op) {
    auto device = op->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
    SmallVector<Value> read = valuesReadBy(op);
    const std::string &name =
        names[step.getNumArguments() + numberOf.lookup(op)];
    writeFragment(name, device, read, op->getResults(),
                  [&](IRMapping &inside) { builder.clone(*op, inside); });
  }

  void writeReturn() {
    Operation *terminator = step.getBody().front().getTerminator();
    SmallVector<Value> results;
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      StringAttr device = homeOf(rootOf(value));
      // A constant, or a view of what a device has.
      if (!isPlaced(value) && !onMesh.contains({value, device}))
        writeFragment("result" + std::to_string(index), device, value, value,
                      [](IRMapping &) {});
      results.push_back(arrived(value, device));
    }
    func::ReturnOp::create(builder, terminator->getLoc(), results);
  }

  /// A fragment that makes \p made of \p read, all of them values of the step.
  void writeFragment(const std::string &name, StringAttr device,
                     ValueRange read, ValueRange made,
                     function_ref<void(IRMapping &)> compute) {
    llvm::SetVector<Value> roots;
    for (Value value : read)
      if (Value root = rootOf(value); isPlaced(root))
        roots.insert(root);
    Location loc = made.empty() ? step.getLoc() : made.front().getLoc();
    OperationState state(loc, "mpmd.fragment");
    for (Value root : roots)
      state.operands.push_back(arrived(root, device));
    for (Value value : made)
      state.types.push_back(meshType(value.getType(), device));
    state.propertiesAttr = builder.getDictionaryAttr(
        {builder.getNamedAttr("mesh_name", device),
         builder.getNamedAttr(
             "origin",
             builder.getArrayAttr(StandInDialect::attribute(
                 "user_origin<" + quoted(name) + ">", builder.getContext())))});
    Block *body = new Block();
    state.addRegion()->push_back(body);
    Operation *fragment = builder.create(state);

    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(body);
    IRMapping inside;
    for (Value root : roots)
      inside.map(root, body->addArgument(root.getType(), root.getLoc()));
    for (Value value : read)
      makeWithin(value, inside);
    compute(inside);
    OperationState end(loc, "mpmd.return");
    for (auto [value, result] : llvm::zip_equal(made, fragment->getResults())) {
      end.operands.push_back(inside.lookup(value));
      onMesh[{value, device}] = result;
    }
    builder.create(end);
  }

  /// Constants and views, where the builder stands.
  void makeWithin(Value value, IRMapping &inside) {
    if (inside.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      makeWithin(operand, inside);
    builder.clone(*op, inside);
  }

  /// \p value on \p device, moved there before its first reader.
  Value arrived(Value value, StringAttr device) {
    if (Value there = onMesh.lookup({value, device}))
      return there;
    StringAttr from = sender.lookup({value, device});
    // What the plan says is followed once; a circle of messages has no start.
    sender.erase({value, device});
    Value source = arrived(value, from ? from : homeOf(value));
    OperationState state(value.getLoc(), "mpmd.transfer", source,
                         meshType(value.getType(), device));
    return onMesh[{value, device}] = builder.create(state)->getResult(0);
  }

  /// True for arguments and what operators make.
  bool isPlaced(Value value) const {
    Operation *producer = value.getDefiningOp();
    return !producer || numberOf.contains(producer);
  }

  /// Where a root lies; constants count as the first device's.
  StringAttr homeOf(Value root) {
    StringAttr device;
    if (auto argument = dyn_cast<BlockArgument>(root))
      device = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                 BaechiDialect::kDevice);
    else if (isPlaced(root))
      device = root.getDefiningOp()->getAttrOfType<StringAttr>(
          BaechiDialect::kDevice);
    return device
               ? device
               : builder.getStringAttr(machine.getDevices().front().getName());
  }

  Type meshType(Type tensor, StringAttr device) {
    Type &type = meshTypes[{tensor, device}];
    if (!type) {
      std::string text;
      llvm::raw_string_ostream(text)
          << "mesh_tensor<" << quoted(device) << ", " << tensor << ">";
      type = StandInDialect::type(text, builder.getContext());
    }
    return type;
  }

  func::FuncOp step;
  MachineAttr machine;
  OpBuilder builder;
  SmallVector<std::string> names;
  SmallVector<Operation *> operators;
  func::FuncOp function;
  llvm::DenseMap<Operation *, size_t> numberOf;
  using Place = std::pair<Value, StringAttr>;
  llvm::DenseMap<Place, StringAttr> sender;
  llvm::DenseMap<Place, Value> onMesh;
  llvm::DenseMap<std::pair<Type, StringAttr>, Type> meshTypes;
};

struct ExportMpmd : public baechi::impl::ExportMpmdBase<ExportMpmd> {
  using ExportMpmdBase::ExportMpmdBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    ExportMpmdBase::getDependentDialects(registry);
    registry.insert<StandInDialect>();
  }

  LogicalResult initialize(MLIRContext *context) override {
    // Before the passes run in parallel: `tf` is not linked.
    context->allowUnregisteredDialects();
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<PlacedStep> placed = findPlacedStep(module);
    if (failed(placed) || failed(checkForMpmd(placed->step)))
      return signalPassFailure();
    MeshWriter(placed->step, placed->machine).write();
    placed->step.erase();
    removeOwnAttributes(module);
  }
};
} // namespace
