//===- StepBuffers.cpp - The buffers of a device's step -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepBuffers.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Carried.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

/// How many sets of wholes are looked at.
static constexpr int64_t joinBudget = 100;

/// What is received on loan lies in the sender's arena.
static bool isLent(Operation *op) {
  auto recv = dyn_cast<RecvOp>(op);
  return recv && recv.getLent();
}

static int64_t scratchBytes(Operation *op) {
  auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
  return cost ? llvm::alignTo(cost.getScratch(), kAlignment) : 0;
}

StepBuffers::StepBuffers(func::FuncOp step) : step(step) {
  for (Operation &op : step.getBody().front()) {
    positionOf[&op] = order.size();
    order.push_back(&op);
  }
  findLastReads();
  findInPlaceUpdates();
}

/// The last position that reads each root's buffer. A send reads it until
/// the first operator that is planned to start after the transfer.
void StepBuffers::findLastReads() {
  for (Operation *op : order)
    for (Value value : valuesReadBy(op)) {
      int32_t &last = lastRead[rootOf(value)];
      last = std::max(last, positionOf[op]);
      if (auto send = dyn_cast<SendOp>(op))
        last = std::max(last, releaseOf(send));
    }
}

void StepBuffers::findLastUses() {
  lastUse = lastRead;
  // A part is there as long as the buffer that it lies in.
  for (auto &[part, place] : partPlaces) {
    int32_t read = lastUse.lookup(part);
    int32_t &last = lastUse[place.whole];
    last = std::max(last, read);
  }
}

/// What arrives right before that operator, in a transfer that is planned to
/// start later, may take the room as well: a tensor comes back where another
/// has just left.
int32_t StepBuffers::releaseOf(SendOp send) {
  int32_t end = order.size() - 1;
  if (send.getEnd() == 0)
    return end;
  int32_t arrives = -1;
  for (int32_t position = positionOf[send]; position <= end; ++position) {
    Operation *op = order[position];
    if (auto recv = dyn_cast<RecvOp>(op);
        recv && arrives < 0 && recv.getStart() >= send.getEnd())
      arrives = position;
    auto start = op->getAttrOfType<IntegerAttr>(BaechiDialect::kStart);
    if (!start)
      continue;
    if (start.getInt() >= static_cast<int64_t>(send.getEnd()))
      return (arrives < 0 ? position : arrives) - 1;
    arrives = -1;
  }
  return end;
}

LogicalResult StepBuffers::create() {
  buffers.clear();
  owners.clear();
  bufferOf.clear();
  scratchBuffer.clear();
  findLastUses();
  for (Operation *op : order) {
    if (isView(op) || matchPattern(op, m_Constant()) ||
        isa<AwaitOp, SendOp, GiveBackOp>(op) || isLent(op))
      continue;
    llvm::SmallDenseSet<size_t> taken;
    for (OpResult result : op->getResults())
      if (failed(createBuffer(op, result, taken)))
        return failure();
    if (int64_t scratch = scratchBytes(op)) {
      scratchBuffer[op] = buffers.size();
      addBuffer(scratch, positionOf[op], positionOf[op], op);
    }
  }
  return success();
}

/// Updates that this order of operators allows: nothing reads what the
/// argument's buffer holds after it was overwritten. What the next step awaits
/// arrives in the argument's place, and what is joined is where its parts are.
void StepBuffers::findInPlaceUpdates() {
  for (Operation *op : order)
    if (auto recv = dyn_cast<RecvOp>(op))
      if (std::optional<int64_t> argument = carriedArgument(op))
        inArgument[recv.getFuture()] = step.getArgument(*argument);
  for (Operation *op : order)
    if (BlockArgument first = firstPart(op, symbols))
      inArgument[op->getResult(0)] = first;
  llvm::DenseMap<BlockArgument, Value> held;
  for (const InPlaceUpdate &update : inPlaceUpdates(step)) {
    BlockArgument argument = step.getArgument(update.argument);
    Value &now = held.try_emplace(argument, argument).first->second;
    bool readLater = false;
    for (Operation *reader : readersOf(now, update.updater))
      readLater |= positionOf[reader] > positionOf[update.updater];
    if (readLater)
      continue;
    now = update.updater->getResult(update.result);
    inArgument[now] = argument;
  }
}

/// \p taken: the buffers that an earlier result of \p op has taken over.
LogicalResult StepBuffers::createBuffer(Operation *op, OpResult result,
                                        llvm::SmallDenseSet<size_t> &taken) {
  std::optional<int64_t> bytes = tensorBytes(result.getType(), true);
  if (!bytes)
    return op->emitOpError() << "has a result of type " << result.getType()
                             << "; memory needs tensors of static shape";
  // The first of its parts has made room for what is put together.
  if (inArgument.contains(result) || bufferOf.contains(result))
    return success();
  int32_t position = positionOf[op];
  if (auto part = partPlaces.find(result); part != partPlaces.end()) {
    Value whole = part->second.whole;
    Operation *joined = whole.getDefiningOp();
    auto [known, isFirst] = bufferOf.try_emplace(whole, buffers.size());
    size_t buffer = known->second;
    if (isFirst)
      addBuffer(*tensorBytes(whole.getType(), true), position,
                std::max(positionOf[joined], lastUse[whole]), joined);
    bufferOf[result] = buffer;
    return success();
  }
  auto used = lastUse.find(result);
  int32_t last = std::max(position, used == lastUse.end() ? 0 : used->second);
  // A tensor that nobody awaits may still arrive at any time.
  if (isa<RecvOp>(op) && result.use_empty())
    last = order.size() - 1;
  // Take over the buffer of an operand that dies here.
  for (Value operand : op->getOperands()) {
    Value root = rootOf(operand);
    auto it = bufferOf.find(root);
    if (it == bufferOf.end() || taken.contains(it->second))
      continue;
    Buffer &buffer = buffers[it->second];
    if (lastUse[root] != position || buffer.last != position ||
        buffer.bytes != *bytes || readsBesides(op, root, it->second) ||
        !mayWriteInto(op, result.getResultNumber(), root, symbols))
      continue;
    buffer.last = last;
    taken.insert(it->second);
    bufferOf[result] = it->second;
    break;
  }
  if (bufferOf.try_emplace(result, buffers.size()).second)
    addBuffer(*bytes, position, last, op);
  return success();
}

/// Whether \p op reads another tensor than \p root in that buffer: a part.
bool StepBuffers::readsBesides(Operation *op, Value root, size_t buffer) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Value other = rootOf(operand);
    auto it = bufferOf.find(other);
    return other != root && it != bufferOf.end() && it->second == buffer;
  });
}

void StepBuffers::addBuffer(int64_t bytes, int32_t first, int32_t last,
                            Operation *op) {
  buffers.push_back({bytes, first, last, 0});
  owners.push_back(op);
}

std::optional<StepBuffers::Place> StepBuffers::placeOf(Value root) const {
  auto it = bufferOf.find(root);
  if (it == bufferOf.end())
    return std::nullopt;
  return Place{it->second, partPlaces.lookup(root).offset};
}

std::optional<size_t> StepBuffers::scratchOf(Operation *op) const {
  auto it = scratchBuffer.find(op);
  return it == scratchBuffer.end() ? std::nullopt : std::optional(it->second);
}

bool StepBuffers::tryJoining(ArrayRef<Operation *> more, int64_t most) {
  llvm::SmallPtrSet<Operation *, 8> before = joined;
  joined.insert_range(more);
  partPlaces = findPartPlaces(step, joined, inArgument);
  if (succeeded(create()) && livePeak(buffers).first <= most)
    return true;
  joined = std::move(before);
  return false;
}

void StepBuffers::joinInPlace(int64_t most) {
  SmallVector<Operation *> wholes;
  for (Operation *op : order)
    if (!partsOf(op, symbols).empty())
      wholes.push_back(op);
  if (wholes.empty())
    return;
  llvm::stable_sort(wholes, [](Operation *a, Operation *b) {
    return tensorBytes(a->getResult(0).getType(), true) >
           tensorBytes(b->getResult(0).getType(), true);
  });
  most = std::max(most, livePeak(buffers).first);
  // Halves of what is too much, the larger wholes first.
  SmallVector<ArrayRef<Operation *>> work{wholes};
  for (int64_t tried = 0; !work.empty() && tried < joinBudget; ++tried) {
    ArrayRef<Operation *> next = work.pop_back_val();
    if (tryJoining(next, most) || next.size() == 1)
      continue;
    work.push_back(next.drop_front(next.size() / 2));
    work.push_back(next.take_front(next.size() / 2));
  }
  partPlaces = findPartPlaces(step, joined, inArgument);
  (void)create(); // which had no error before
}

void StepBuffers::separate() {
  joined.clear();
  partPlaces.clear();
  (void)create();
}
