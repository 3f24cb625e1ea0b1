//===- ProductBias.cpp - Products that take a bias -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt adds a vector to the rows of a product as it writes them. Kernels
// are formed without regard to that: what is elementwise goes into the kernel
// that reads it. Only where an addition is left alone does it become the
// product's.
//
//===----------------------------------------------------------------------===//

#include "Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;

//===----------------------------------------------------------------------===//
// Recognition
//===----------------------------------------------------------------------===//

/// The reshapes from the result of `root` to `value`, the last one first; the
/// end of the list is `root`.
static Value throughReshapes(Value value,
                             SmallVectorImpl<Operation *> &reshapes) {
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
      value.getDefiningOp())) {
    reshapes.push_back(value.getDefiningOp());
    value = reshapes.back()->getOperand(0);
  }
  return value;
}

/// Which input of `op` is the tensor, when `op` adds the other one, a vector,
/// to each of its rows.
static std::optional<unsigned> matchAddition(linalg::GenericOp op) {
  if (!op || op.getNumReductionLoops() != 0 || op.getNumDpsInputs() != 2 ||
      op->getNumResults() != 1 || op.getBody()->getOperations().size() != 2)
    return std::nullopt;
  Block *body = op.getBody();
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!add || !maps[2].isIdentity())
    return std::nullopt;
  for (unsigned tensor : {0, 1}) {
    Value rows = body->getArgument(tensor);
    Value vector = body->getArgument(1 - tensor);
    bool adds = (add.getLhs() == rows && add.getRhs() == vector) ||
                (add.getLhs() == vector && add.getRhs() == rows);
    AffineMap map = maps[1 - tensor];
    unsigned rank = map.getNumDims(), results = map.getNumResults();
    if (adds && maps[tensor].isIdentity() && results > 0 && results < rank &&
        map == AffineMap::getMinorIdentityMap(rank, results, map.getContext()))
      return tensor;
  }
  return std::nullopt;
}

std::optional<BiasedKernel> baechi::splitBias(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock() || kernel.getNumResults() != 1)
    return std::nullopt;
  SmallVector<Operation *> reshapes;
  Operation *terminator = kernel.getBody().front().getTerminator();
  auto addition = throughReshapes(terminator->getOperand(0), reshapes)
                      .getDefiningOp<linalg::GenericOp>();
  std::optional<unsigned> tensor = matchAddition(addition);
  if (!tensor)
    return std::nullopt;
  Value vector = addition.getDpsInputs()[1 - *tensor];
  auto argument = dyn_cast<BlockArgument>(throughReshapes(vector, reshapes));
  Value product = throughReshapes(addition.getDpsInputs()[*tensor], reshapes);
  if (!argument || !product.getDefiningOp())
    return std::nullopt;

  BiasedKernel split;
  split.argument = argument.getArgNumber();
  split.elements = cast<RankedTensorType>(vector.getType()).getNumElements();
  IRMapping mapping;
  auto copy = cast<func::FuncOp>(kernel->clone(mapping));
  split.kernel = copy;
  Block &body = copy.getBody().front();
  body.getTerminator()->setOperand(0, mapping.lookup(product));
  copy.setFunctionType(FunctionType::get(
      copy.getContext(), copy.getArgumentTypes(), product.getType()));
  copy.removeResAttrsAttr();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  return split;
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

namespace {
/// A call of a product, the reshapes of its result, the last one first, and the
/// call that adds a bias to that.
struct BiasedCall {
  func::CallOp product, addition;
  SmallVector<Operation *> reshapes;
  /// The operand of the addition that is no bias.
  unsigned tensor = 0;

  Value bias() { return addition.getOperand(1 - tensor); }
};

class Joiner {
public:
  explicit Joiner(ModuleOp module) : module(module), symbols(module) {}
  void run();

private:
  func::FuncOp kernelOf(func::CallOp call) {
    auto kernel =
        call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
    return kernel && kernel->hasAttr(BaechiDialect::kKernel) ? kernel
                                                             : func::FuncOp();
  }
  std::optional<BiasedCall> match(func::CallOp addition);
  func::FuncOp build(BiasedCall &call);
  func::FuncOp kernelFor(BiasedCall &call);
  void replace(BiasedCall &call, func::FuncOp kernel);

  ModuleOp module;
  SymbolTable symbols;
  /// Kernels that were built, by the two they are of, what lies between them
  /// and which operand the bias is. Null where the library has no call.
  struct Built {
    func::FuncOp product, addition;
    SmallVector<Type> between;
    unsigned tensor;
    func::FuncOp kernel;
  };
  SmallVector<Built> built;
};
} // namespace

/// Whether `kernel` does nothing but add a vector to the rows of argument
/// `tensor`.
static bool onlyAdds(func::FuncOp kernel, unsigned tensor) {
  SmallVector<Operation *> reshapes;
  if (!kernel.getBody().hasOneBlock() || kernel.getNumResults() != 1)
    return false;
  Operation *terminator = kernel.getBody().front().getTerminator();
  auto addition = throughReshapes(terminator->getOperand(0), reshapes)
                      .getDefiningOp<linalg::GenericOp>();
  std::optional<unsigned> input = matchAddition(addition);
  return input && throughReshapes(addition.getDpsInputs()[*input], reshapes) ==
                      kernel.getArgument(tensor);
}

/// The call of a product whose only reader is `addition`.
std::optional<BiasedCall> Joiner::match(func::CallOp addition) {
  func::FuncOp adding = kernelOf(addition);
  if (!adding || addition.getNumOperands() != 2)
    return std::nullopt;
  for (unsigned tensor : {0, 1}) {
    BiasedCall found{{}, addition, {}, tensor};
    Value result = throughReshapes(addition.getOperand(tensor), found.reshapes);
    found.product = result.getDefiningOp<func::CallOp>();
    if (!onlyAdds(adding, tensor))
      continue;
    bool read = llvm::all_of(found.reshapes, [](Operation *reshape) {
      return reshape->hasOneUse();
    });
    // The product takes the bias where it is now.
    Operation *bias = found.bias().getDefiningOp();
    if (kernelOf(found.product) && found.product.getNumResults() == 1 && read &&
        result.hasOneUse() &&
        (!bias || (bias->getBlock() == found.product->getBlock() &&
                   bias->isBeforeInBlock(found.product))))
      return found;
  }
  return std::nullopt;
}

/// One kernel for both calls.
func::FuncOp Joiner::build(BiasedCall &call) {
  func::FuncOp product = kernelOf(call.product);
  func::FuncOp adding = kernelOf(call.addition);
  SmallVector<Type> types(product.getArgumentTypes());
  types.push_back(call.bias().getType());
  Location loc =
      FusedLoc::get(module.getContext(), {product.getLoc(), adding.getLoc()});
  OpBuilder builder(module.getContext());
  auto kernel = func::FuncOp::create(
      builder, loc, (product.getName() + "_bias").str(),
      builder.getFunctionType(types, adding.getResultTypes()));
  kernel.setPrivate();
  kernel->setAttr(BaechiDialect::kKernel, builder.getUnitAttr());
  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  auto take = [&](func::FuncOp from, ValueRange arguments) {
    IRMapping mapping;
    mapping.map(from.getArguments(), arguments);
    Block &code = from.getBody().front();
    for (Operation &op : code.without_terminator())
      builder.clone(op, mapping);
    return mapping.lookup(code.getTerminator()->getOperand(0));
  };
  IRMapping mapping;
  mapping.map(call.product.getResult(0),
              take(product, body->getArguments().drop_back()));
  for (Operation *reshape : llvm::reverse(call.reshapes))
    builder.clone(*reshape, mapping);
  Value operands[2];
  operands[call.tensor] = mapping.lookup(call.addition.getOperand(call.tensor));
  operands[1 - call.tensor] = body->getArguments().back();
  func::ReturnOp::create(builder, loc, take(adding, operands));
  return kernel;
}

func::FuncOp Joiner::kernelFor(BiasedCall &call) {
  func::FuncOp product = kernelOf(call.product);
  func::FuncOp adding = kernelOf(call.addition);
  SmallVector<Type> between =
      llvm::map_to_vector(call.reshapes, [](Operation *reshape) {
        return reshape->getResult(0).getType();
      });
  for (const Built &known : built)
    if (known.product == product && known.addition == adding &&
        known.between == between && known.tensor == call.tensor)
      return known.kernel;
  func::FuncOp kernel = build(call);
  std::optional<LibraryProduct> matched = matchLibraryProduct(kernel);
  if (matched && matched->bias) {
    symbols.insert(kernel);
  } else {
    kernel.erase();
    kernel = nullptr;
  }
  built.push_back({product, adding, between, call.tensor, kernel});
  return kernel;
}

void Joiner::replace(BiasedCall &call, func::FuncOp kernel) {
  OpBuilder builder(call.product);
  SmallVector<Value> operands(call.product.getOperands());
  operands.push_back(call.bias());
  auto joined = func::CallOp::create(
      builder,
      FusedLoc::get(module.getContext(),
                    {call.product.getLoc(), call.addition.getLoc()}),
      kernel, operands);
  call.addition.replaceAllUsesWith(joined);
  call.addition.erase();
  for (Operation *reshape : call.reshapes)
    reshape->erase();
  call.product.erase();
}

void Joiner::run() {
  SmallVector<func::CallOp> calls;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function->hasAttr(BaechiDialect::kKernel))
      llvm::append_range(calls, function.getOps<func::CallOp>());
  for (func::CallOp call : calls) {
    std::optional<BiasedCall> found = match(call);
    if (!found)
      continue;
    if (func::FuncOp kernel = kernelFor(*found))
      replace(*found, kernel);
  }
  llvm::SetVector<Operation *> replaced;
  for (const Built &each : built)
    if (each.kernel)
      replaced.insert_range(ArrayRef<Operation *>{each.product, each.addition});
  for (Operation *kernel : replaced)
    if (SymbolTable::symbolKnownUseEmpty(kernel, module))
      symbols.erase(kernel);
}

void baechi::joinBiases(ModuleOp module) { Joiner(module).run(); }
