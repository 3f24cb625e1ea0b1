//===- Outline.cpp - Launches to GPU functions and calls -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Runtime/CudaAbi.h"
#include "Internal.h"
#include "LaunchCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/bit.h"
#include <array>

using namespace mlir;
using namespace baechi;

/// `name` as PTX can write it.
static std::string identifier(StringRef name) {
  std::string result;
  for (char c : name)
    result += llvm::isAlnum(c) || c == '_' ? c : '_';
  return result;
}

static uint32_t constantOf(Value size) {
  APInt value;
  matchPattern(size, m_ConstantInt(&value));
  return value.getZExtValue();
}

namespace {
/// What a launch does to the memory behind an operand.
struct Uses {
  bool reads = false, writes = false, unknown = false;
};
} // namespace

static void addUses(Value buffer, Uses &uses) {
  for (OpOperand &use : buffer.getUses()) {
    Operation *op = use.getOwner();
    if (isa<memref::LoadOp, LLVM::LoadOp>(op)) {
      uses.reads = true;
    } else if (isa<memref::StoreOp, LLVM::StoreOp>(op)) {
      uses.writes = true;
      uses.unknown |= op->getOperand(0) == buffer; // what is stored
    } else if (isa<LLVM::GEPOp>(op) ||
               (isa<ViewLikeOpInterface>(op) && op->getNumResults() == 1)) {
      addUses(op->getResult(0), uses);
    } else {
      uses.unknown = true;
    }
  }
}

/// How many bytes from where `operand` of a launch begins all that can be
/// reached by it lies in; -1 where that is not known. Buffers are arguments of
/// the function and parts of its scratch, whole; a pointer into an argument was
/// moved upwards, and code moves it on upwards, so that it reaches what lies
/// above it in the argument.
static int64_t reachOf(Value operand, func::FuncOp function) {
  if (auto moved = operand.getDefiningOp<LLVM::GEPOp>())
    return reachOf(moved.getBase(), function);
  auto argument = dyn_cast<BlockArgument>(operand);
  bool isOwn = argument && argument.getOwner() == &function.getBody().front();
  if (isOwn && isa<LLVM::LLVMPointerType>(operand.getType())) {
    auto bytes = function.getArgAttrOfType<IntegerAttr>(
        argument.getArgNumber(),
        LLVM::LLVMDialect::getDereferenceableAttrName());
    return bytes ? bytes.getInt() : -1;
  }
  auto buffer = dyn_cast<MemRefType>(operand.getType());
  if (!buffer || !(isOwn || operand.getDefiningOp<memref::ViewOp>()))
    return -1;
  return bytesOf(buffer).value_or(-1);
}

/// The part of a kernel's argument that it touches: all uses go through it.
static Value touchedPart(Value buffer) {
  while (buffer.hasOneUse()) {
    auto part = dyn_cast<memref::SubViewOp>(*buffer.user_begin());
    if (!part)
      break;
    buffer = part.getResult();
  }
  return buffer;
}

/// Makes an access to a whole buffer one to a part of it, where that is pieces
/// at one distance.
static void narrow(baechi_cuda_access &access, MemRefType part) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  Type element = part.getElementType();
  if (!part.hasStaticShape() || part.getNumElements() == 0 ||
      !element.isIntOrFloat() ||
      failed(part.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset) ||
      llvm::any_of(strides, [](int64_t stride) { return stride < 0; }))
    return;
  int64_t elements = 1, rows = 1, stride = 0;
  for (auto [size, step] :
       llvm::reverse(llvm::zip_equal(part.getShape(), strides))) {
    if (size == 1)
      continue;
    if (rows == 1 && step == elements) {
      elements *= size;
    } else if (rows == 1 && step > elements) {
      rows = size;
      stride = step;
    } else if (rows > 1 && step == rows * stride) {
      rows *= size;
    } else {
      return;
    }
  }
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  access.offset = offset * bytes;
  access.bytes = elements * bytes;
  access.rows = rows;
  access.stride = stride * bytes;
}

static SmallVector<int64_t>
accessesOf(gpu::GPUFuncOp kernel, func::FuncOp function, ValueRange operands) {
  SmallVector<int64_t> words;
  for (auto [number, operand] : llvm::enumerate(operands)) {
    Value argument = kernel.getArgument(number);
    Uses uses;
    addUses(argument, uses);
    baechi_cuda_access access{};
    access.bytes = uses.unknown ? -1 : reachOf(operand, function);
    access.rows = 1;
    access.uses = (uses.reads ? BAECHI_CUDA_READS : 0) |
                  (uses.writes ? BAECHI_CUDA_WRITES : 0);
    Value part = touchedPart(argument);
    if (access.bytes >= 0 && part != argument)
      narrow(access, cast<MemRefType>(part.getType()));
    llvm::append_range(
        words,
        llvm::bit_cast<std::array<int64_t, sizeof(access) / sizeof(int64_t)>>(
            access));
  }
  return words;
}

/// Tells the kernel what is known of its operands: that they begin at a
/// multiple of kBufferAlignment, without which no access has 16 bytes, and
/// which overlap no other one. The latter only where all accesses are alike: to
/// LLVM a barrier changes no memory that is not aliased, so of what threads
/// hand each other in it nothing may be promised.
static void markOperands(gpu::GPUFuncOp kernel, func::FuncOp function,
                         ValueRange operands) {
  StringRef alias = LLVM::LLVMDialect::getNoAliasAttrName();
  Builder builder(kernel.getContext());
  for (auto [number, operand] : llvm::enumerate(operands)) {
    auto argument = dyn_cast<BlockArgument>(operand);
    bool isOwn = argument && argument.getOwner() == &function.getBody().front();
    auto view = operand.getDefiningOp<memref::ViewOp>();
    bool isScratch = view && view.getSource() == function.getArguments().back();
    if (!isOwn && !isScratch)
      continue;
    kernel.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(kBufferAlignment));
    Uses uses;
    addUses(kernel.getArgument(number), uses);
    bool isApart =
        isScratch || function.getArgAttr(argument.getArgNumber(), alias);
    if (!isApart || uses.unknown || uses.reads == uses.writes)
      continue;
    kernel.setArgAttr(number, alias, builder.getUnitAttr());
    if (uses.reads)
      kernel.setArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName(),
                        builder.getUnitAttr());
  }
}

gpu::GPUModuleOp
baechi::outlineLaunches(ModuleOp functions,
                        SmallVectorImpl<OutlinedLaunch> &launches) {
  OpBuilder builder = OpBuilder::atBlockEnd(functions.getBody());
  auto module = gpu::GPUModuleOp::create(builder, functions.getLoc(),
                                         "baechi_cuda_kernels");
  SymbolTable names(module);
  for (auto function : functions.getOps<func::FuncOp>()) {
    int number = 0;
    function.walk([&](gpu::LaunchOp launch) {
      OutlinedLaunch &outlined = launches.emplace_back();
      outlined.launch = launch;
      outlined.blocks = constantOf(launch.getGridSizeX());
      outlined.threads = constantOf(launch.getBlockSizeX());
      std::string name =
          identifier(function.getSymName()) + "_" + std::to_string(number++);
      gpu::GPUFuncOp kernel =
          outlineKernelFunc(launch, name, outlined.operands);
      kernel.setKnownBlockSize(
          ArrayRef<int32_t>{int32_t(outlined.threads), 1, 1});
      // Buffers of bytes hold larger elements.
      for (unsigned i = 0; i < kernel.getNumWorkgroupAttributions(); ++i)
        kernel.setWorkgroupAttributionAttr(
            i, LLVM::LLVMDialect::getAlignAttrName(),
            builder.getI64IntegerAttr(kBufferAlignment));
      outlined.accesses = accessesOf(kernel, function, outlined.operands);
      markOperands(kernel, function, outlined.operands);
      if (function->hasAttr(kWideIndices))
        kernel->setAttr(kWideIndices, builder.getUnitAttr());
      names.insert(kernel);
      outlined.kernel = kernel.getName();
    });
    function->removeAttr(kWideIndices);
  }
  return module;
}

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

LogicalResult baechi::placeInScratch(func::FuncOp kernel) {
  OpBuilder builder(kernel.getContext());
  SmallVector<std::pair<memref::AllocOp, int64_t>> placed;
  int64_t bytes = 0;
  for (auto alloc : kernel.getOps<memref::AllocOp>()) {
    placed.emplace_back(alloc, bytes);
    bytes += bytesOfBuffer(alloc.getType());
  }
  if (failed(kernel.insertArgument(
          kernel.getNumArguments(),
          MemRefType::get({bytes}, builder.getI8Type()),
          DictionaryAttr::get(kernel.getContext()), kernel.getLoc())))
    return failure();
  for (auto [alloc, offset] : placed) {
    builder.setInsertionPoint(alloc);
    Value at = arith::ConstantIndexOp::create(builder, alloc.getLoc(), offset);
    Value view =
        memref::ViewOp::create(builder, alloc.getLoc(), alloc.getType(),
                               kernel.getArguments().back(), at, ValueRange());
    alloc.replaceAllUsesWith(view);
    alloc.erase();
  }
  kernel->setAttr(BaechiDialect::kKernelScratch,
                  builder.getI64IntegerAttr(bytes));
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
class Caller {
public:
  Caller(ModuleOp module, StringRef image)
      : module(module), builder(module.getContext()), loc(module.getLoc()) {
    pointer = LLVM::LLVMPointerType::get(module.getContext());
    i32 = builder.getI32Type();
    i64 = builder.getI64Type();
    builder.setInsertionPointToStart(module.getBody());
    declared = LLVM::LLVMFuncOp::create(
        builder, loc, "baechi_cuda_launch_accesses",
        LLVM::LLVMFunctionType::get(
            LLVM::LLVMVoidType::get(module.getContext()),
            {pointer, i64, pointer, i32, i32, i32, i32, i32, i32, i32, pointer,
             i32, pointer}));
    this->image = constant("baechi_cuda_image", image, /*alignment=*/64);
    imageBytes = image.size();
  }
  void call(const OutlinedLaunch &launch);

private:
  LLVM::GlobalOp constant(StringRef name, StringRef bytes, unsigned alignment) {
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
    auto global = LLVM::GlobalOp::create(
        builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
        builder.getStringAttr(bytes), alignment);
    return global;
  }
  LLVM::GlobalOp words(const std::string &name, ArrayRef<int64_t> values) {
    return LLVM::GlobalOp::create(builder, loc,
                                  LLVM::LLVMArrayType::get(i64, values.size()),
                                  /*isConstant=*/true, LLVM::Linkage::Internal,
                                  name, builder.getI64TensorAttr(values));
  }
  Value addressOf(LLVM::GlobalOp global) {
    return LLVM::AddressOfOp::create(builder, loc, global);
  }
  Value integer(int64_t value, Type type) {
    return LLVM::ConstantOp::create(builder, loc, type,
                                    builder.getIntegerAttr(type, value));
  }
  Value pointerOf(Value operand);

  ModuleOp module;
  OpBuilder builder;
  Location loc;
  Type pointer, i32, i64;
  LLVM::LLVMFuncOp declared;
  LLVM::GlobalOp image;
  int64_t imageBytes = 0;
};
} // namespace

/// Where a buffer starts; pointers are what they are.
Value Caller::pointerOf(Value operand) {
  if (!isa<MemRefType>(operand.getType()))
    return operand;
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, operand);
  Value integer = arith::IndexCastOp::create(builder, loc, i64, address);
  return LLVM::IntToPtrOp::create(builder, loc, pointer, integer);
}

void Caller::call(const OutlinedLaunch &outlined) {
  builder.setInsertionPointToStart(module.getBody());
  std::string terminated = outlined.kernel + '\0';
  LLVM::GlobalOp name =
      constant("baechi_cuda_name_" + outlined.kernel, terminated, 1);
  LLVM::GlobalOp accesses =
      words("baechi_cuda_accesses_" + outlined.kernel, outlined.accesses);

  // Stack is for the whole function: launches may be in branches.
  auto function = outlined.launch->getParentOfType<func::FuncOp>();
  builder.setInsertionPointToStart(&function.getBody().front());
  int64_t count = outlined.operands.size();
  auto array = LLVM::LLVMArrayType::get(pointer, std::max<int64_t>(1, count));
  Value one = integer(1, i32);
  Value slots = LLVM::AllocaOp::create(builder, loc, pointer, array, one);
  Value addresses = LLVM::AllocaOp::create(builder, loc, pointer, array, one);

  loc = outlined.launch->getLoc();
  builder.setInsertionPoint(outlined.launch);
  for (auto [number, operand] : llvm::enumerate(outlined.operands)) {
    auto at = [&](Value base) -> Value {
      return LLVM::GEPOp::create(builder, loc, pointer, pointer, base,
                                 ArrayRef<LLVM::GEPArg>{int32_t(number)});
    };
    Value slot = at(slots);
    LLVM::StoreOp::create(builder, loc, pointerOf(operand), slot);
    LLVM::StoreOp::create(builder, loc, slot, at(addresses));
  }
  LLVM::CallOp::create(
      builder, loc, declared,
      ValueRange{addressOf(image), integer(imageBytes, i64), addressOf(name),
                 integer(outlined.blocks, i32), one, one,
                 integer(outlined.threads, i32), one, one, integer(0, i32),
                 addresses, integer(count, i32), addressOf(accesses)});
}

void baechi::callLaunches(ModuleOp functions, ArrayRef<OutlinedLaunch> launches,
                          StringRef image) {
  if (launches.empty())
    return;
  Caller caller(functions, image);
  for (const OutlinedLaunch &launch : launches)
    caller.call(launch);
  for (const OutlinedLaunch &launch : launches)
    launch.launch->erase();
}
