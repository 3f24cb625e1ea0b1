//===- BaechiDialect.cpp - The dialect and its attributes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Dialect/CudaBlocks.h"
#include "Baechi/Dialect/Outside.h"
#include "Baechi/Dialect/Parts.h"
#include "Baechi/Dialect/Pieces.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Dialect/SimulatedNetwork.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace baechi;

#include "Baechi/Dialect/BaechiDialect.cpp.inc"

void BaechiDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerOperations();
}

namespace {
using EmitError = function_ref<InFlightDiagnostic()>;

LogicalResult expectString(NamedAttribute attr, EmitError emitError) {
  auto text = dyn_cast<StringAttr>(attr.getValue());
  if (!text || text.empty())
    return emitError() << "'" << attr.getName().getValue()
                       << "' must be a non-empty string";
  return success();
}

LogicalResult expectNonNegative(NamedAttribute attr, EmitError emitError) {
  auto number = dyn_cast<IntegerAttr>(attr.getValue());
  if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
    return emitError() << "'" << attr.getName().getValue()
                       << "' must be a non-negative i64";
  return success();
}

template <typename AttrT>
LogicalResult expect(NamedAttribute attr, StringRef form, EmitError emitError) {
  if (!isa<AttrT>(attr.getValue()))
    return emitError() << "'" << attr.getName().getValue() << "' must be "
                       << form;
  return success();
}

LogicalResult expectTransfers(NamedAttribute attr, EmitError emitError) {
  auto list = dyn_cast<ArrayAttr>(attr.getValue());
  if (!list || !llvm::all_of(list, llvm::IsaPred<TransferAttr>))
    return emitError() << "'" << attr.getName().getValue()
                       << "' must be an array of #baechi.transfer";
  return success();
}

/// {kind = "uniform", low, high, seed} | {kind = "randint", low, high, seed} |
/// {kind = "constant", value}: docs/import.md.
LogicalResult expectInit(NamedAttribute attr, EmitError emitError) {
  auto init = dyn_cast<DictionaryAttr>(attr.getValue());
  auto kind = init ? init.getAs<StringAttr>("kind") : StringAttr();
  if (!kind)
    return emitError() << "'baechi.init' must be a dictionary with a kind";
  auto need = [&](auto tag, StringRef key, StringRef form) -> LogicalResult {
    if (init.getAs<decltype(tag)>(key))
      return success();
    return emitError() << "'baechi.init' of kind '" << kind.getValue()
                       << "' needs '" << key << "', " << form;
  };
  if (kind == "constant") {
    if (init.getAs<FloatAttr>("value") || init.getAs<IntegerAttr>("value"))
      return success();
    return emitError() << "'baechi.init' of kind 'constant' needs 'value', a "
                          "number";
  }
  if (kind == "uniform")
    return success(succeeded(need(FloatAttr(), "low", "a float")) &&
                   succeeded(need(FloatAttr(), "high", "a float")) &&
                   succeeded(need(IntegerAttr(), "seed", "an i64")));
  if (kind == "randint")
    return success(succeeded(need(IntegerAttr(), "low", "an i64")) &&
                   succeeded(need(IntegerAttr(), "high", "an i64")) &&
                   succeeded(need(IntegerAttr(), "seed", "an i64")));
  return emitError() << "unknown kind '" << kind.getValue()
                     << "' of 'baechi.init'; known: constant, randint, uniform";
}

/// {effects = "pure" | "ordered", ns}: docs/host-calls.md.
LogicalResult expectHostCall(NamedAttribute attr, EmitError emitError) {
  auto call = dyn_cast<DictionaryAttr>(attr.getValue());
  auto effects = call ? call.getAs<StringAttr>("effects") : StringAttr();
  if (!effects || (effects != "pure" && effects != "ordered"))
    return emitError() << "'baechi.host_call' needs 'effects', \"pure\" or "
                          "\"ordered\"";
  auto ns = call.getAs<IntegerAttr>("ns");
  if (!ns || !ns.getType().isInteger(64) || ns.getInt() < 0 || call.size() != 2)
    return emitError() << "'baechi.host_call' needs 'ns', a non-negative i64, "
                          "and nothing else";
  return success();
}

/// unit | for each dimension the replicas of each part, as bits.
LogicalResult expectBatched(NamedAttribute attr, EmitError emitError) {
  auto layout = dyn_cast<ArrayAttr>(attr.getValue());
  if (isa<UnitAttr>(attr.getValue()) ||
      (layout && llvm::all_of(layout, llvm::IsaPred<DenseI64ArrayAttr>)))
    return success();
  return emitError() << "'baechi.batched' must be a unit attribute or, for "
                        "each dimension, an array of i64 with the replicas "
                        "that have each part";
}

/// What a `baechi.*` attribute must look like, wherever it stands.
LogicalResult verifyForm(NamedAttribute attr, EmitError emitError) {
  StringRef name = attr.getName().getValue();
  using D = BaechiDialect;
  if (name == D::kGroup || name == D::kPin || name == D::kDevice ||
      name == D::kName || name == D::kImplementation || name == kExchange)
    return expectString(attr, emitError);
  if (name == D::kStart || name == D::kUpdatedBy || name == D::kArgument ||
      name == D::kResult || name == D::kKernelScratch || name == kCudaBlocks ||
      name == kCudaCommands || name == D::kOperator || name == D::kOutput ||
      name == kReplicas || name == kReplica || name == kCarried ||
      name == kPriority || name == kSliceBytes)
    return expectNonNegative(attr, emitError);
  if (name == D::kMachine)
    return expect<MachineAttr>(attr, "a #baechi.machine", emitError);
  if (name == D::kCost)
    return expect<CostAttr>(attr, "a #baechi.cost", emitError);
  if (name == D::kCertificate)
    return expect<PlacementCertificateAttr>(
        attr, "a #baechi.placement_certificate", emitError);
  if (name == D::kCudaProduct)
    return expect<CudaProductAttr>(attr, "a #baechi.cuda_product", emitError);
  if (name == D::kCudaConvolution)
    return expect<CudaConvolutionAttr>(attr, "a #baechi.cuda_convolution",
                                       emitError);
  if (name == D::kArena)
    return expect<ArenaAttr>(attr, "a #baechi.arena", emitError);
  if (name == D::kSplit)
    return expect<SplitAttr>(attr, "a #baechi.split", emitError);
  if (name == kPiece)
    return expect<PieceAttr>(attr, "a #baechi.piece", emitError);
  if (name == D::kKernel || name == D::kView || name == D::kPartials ||
      name == D::kChained || name == D::kRecompute || name == D::kEnds ||
      name == D::kStash || name == kSimulatedNetwork || name == kMirror ||
      name == kCopied || name == kJoined || name == kCudaTogether)
    return expect<UnitAttr>(attr, "a unit attribute", emitError);
  if (name == kBatched)
    return expectBatched(attr, emitError);
  if (name == kOutside)
    return expect<ArrayAttr>(attr, "an array", emitError);
  if (name == D::kHostCall)
    return expectHostCall(attr, emitError);
  if (name == D::kSends)
    return expectTransfers(attr, emitError);
  if (name == D::kInit)
    return expectInit(attr, emitError);
  if (name == kCarrierCosts) {
    auto costs = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    if (costs && costs.size() == 2 && costs[0] >= 0 && costs[1] >= 1)
      return success();
    return emitError() << "'" << name
                       << "' must be an array of two i64, not negative, the "
                          "second at least 1";
  }
  if (name == D::kMayAlias || name == kParts)
    return expect<DenseI64ArrayAttr>(attr, "an array of i64", emitError);
  if (name == D::kOffset) {
    if (isa<DenseI64ArrayAttr>(attr.getValue()))
      return success();
    return expectNonNegative(attr, emitError);
  }
  return emitError() << "unknown attribute '" << name
                     << "' of the baechi dialect";
}
} // namespace

LogicalResult BaechiDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  auto emitError = [&] { return op->emitOpError(); };
  if (failed(verifyForm(attr, emitError)))
    return failure();
  StringRef name = attr.getName().getValue();
  if ((name == kMachine || name == kArena || name == kSimulatedNetwork ||
       name == kCarrierCosts || name == kExchange || name == kSliceBytes) &&
      !isa<ModuleOp>(op))
    return emitError() << "'" << name << "' stands on modules only";
  if ((name == kKernel || name == kCertificate || name == kImplementation ||
       name == kKernelScratch || name == kCudaBlocks || name == kCudaCommands ||
       name == kCudaProduct || name == kCudaConvolution ||
       name == kCudaTogether || name == kEnds || name == kReplicas) &&
      !isa<FunctionOpInterface>(op))
    return emitError() << "'" << name << "' stands on functions only";
  if (auto function = dyn_cast<FunctionOpInterface>(op);
      name == kHostCall && (!function || !function.isExternal()))
    return emitError() << "'" << name << "' stands on declared functions only";
  if ((name == kView || name == kCopied) &&
      op->getName().getStringRef() != "tensor.extract_slice")
    return emitError() << "'" << name << "' stands on 'tensor.extract_slice' "
                       << "only";
  if ((name == kRecompute || name == kJoined) &&
      op->getName().getStringRef() != "func.call")
    return emitError() << "'" << name << "' stands on 'func.call' only";
  if (name == kCarried && !isa<SendOp, RecvOp>(op))
    return emitError() << "'" << name << "' stands on messages only";
  if (name == kPriority && !isa<SendOp>(op))
    return emitError() << "'" << name << "' stands on 'baechi.send' only";
  if (name == kUpdatedBy || name == kInit || name == kArgument ||
      name == kResult || name == kMayAlias || name == kParts ||
      name == kPiece || name == kBatched || name == kMirror)
    return emitError() << "'" << name
                       << "' stands on a function's arguments or results only";
  return success();
}

/// A function's argument or result that is a piece has a piece's type.
static LogicalResult verifyPiece(ArrayRef<Type> types, unsigned index,
                                 PieceAttr piece, EmitError emitError) {
  if (index < types.size() && types[index] != piece.getPieceType())
    return emitError() << "'" << kPiece << "' is of type "
                       << piece.getPieceType() << ", not " << types[index];
  return success();
}

LogicalResult BaechiDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                      unsigned argIndex,
                                                      NamedAttribute attr) {
  auto emitError = [&] {
    return op->emitOpError() << "argument " << argIndex << ": ";
  };
  if (failed(verifyForm(attr, emitError)))
    return failure();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (function && attr.getName() == kPiece)
    return verifyPiece(function.getArgumentTypes(), argIndex,
                       cast<PieceAttr>(attr.getValue()), emitError);
  if (!function || attr.getName() != kUpdatedBy)
    return success();
  uint64_t result = cast<IntegerAttr>(attr.getValue()).getInt();
  if (result >= function.getNumResults())
    return emitError() << "'baechi.updated_by' names result " << result
                       << ", the function has " << function.getNumResults();
  if (function.getArgumentTypes()[argIndex] !=
      function.getResultTypes()[result])
    return emitError() << "'baechi.updated_by' names result " << result
                       << " of type " << function.getResultTypes()[result]
                       << ", the argument is "
                       << function.getArgumentTypes()[argIndex];
  return success();
}

LogicalResult BaechiDialect::verifyRegionResultAttribute(Operation *op,
                                                         unsigned,
                                                         unsigned resultIndex,
                                                         NamedAttribute attr) {
  auto emitError = [&] {
    return op->emitOpError() << "result " << resultIndex << ": ";
  };
  StringRef name = attr.getName().getValue();
  if (name == kPin || name == kGroup)
    return emitError() << "'" << name
                       << "' has no meaning on a result; put it on the "
                          "operator or argument that the result comes from";
  if (failed(verifyForm(attr, emitError)))
    return failure();
  if (auto function = dyn_cast<FunctionOpInterface>(op);
      function && name == kPiece)
    return verifyPiece(function.getResultTypes(), resultIndex,
                       cast<PieceAttr>(attr.getValue()), emitError);
  return success();
}
