//===- NodeWays.cpp - Operators in parts and in pieces --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NodeWays.h"
#include "Estimate.h"
#include <numeric>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;
using placement::Alternative;

NodeWays::NodeWays(const BatchRoles &batch, const NodesOptions &options)
    : batch(batch), whole(batch.whole.graph), options(options),
      rows(batch.extent / batch.parts) {
  for (int64_t count : options.pieces) {
    if (isParted())
      tensors.emplace_back(batch, count);
    if (rows % count != 0)
      continue;
    pieces.push_back(count);
    summands = std::lcm(summands, count);
  }
}

Alternative NodeWays::way(StringRef word, int64_t count,
                          const placement::Operator &piece) const {
  Alternative way;
  way.name = word.str() + "/" + std::to_string(count);
  way.pieces.assign(count, {piece.timeNs, piece.scratch, piece.resident});
  return way;
}

std::vector<int64_t> NodeWays::extents(int32_t id, int32_t output) const {
  auto type = dyn_cast<RankedTensorType>(batch.valueOf(id, output).getType());
  return type ? type.getShape().vec() : std::vector<int64_t>();
}

std::vector<int64_t> NodeWays::shapeOf(int32_t id, int32_t output) const {
  std::optional<CutPosition> at = batch.positionOf(id, output);
  std::vector<int64_t> all = extents(id, output);
  if (!at) {
    if (isParted())
      all.insert(all.begin(), summands);
    return all;
  }
  std::vector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(all))
    if (dim == at->dim)
      shape.insert(shape.end(), {at->outer, rows, at->inner});
    else
      shape.push_back(size);
  return shape;
}

static placement::Cut evenly(int32_t along, int64_t extent, int64_t count) {
  placement::Cut cut;
  cut.along = along;
  SmallVector<int64_t> sizes = evenPieces(extent, count);
  cut.sizes.assign(sizes.begin(), sizes.end());
  return cut;
}

placement::Cut NodeWays::cutOf(int32_t id, int32_t output,
                               int64_t count) const {
  std::optional<CutPosition> at = batch.positionOf(id, output);
  return at ? evenly(int32_t(at->dim) + 1, rows, count)
            : evenly(0, summands, count);
}

std::optional<int32_t> NodeWays::stated(int32_t id, int32_t output,
                                        unsigned dim) const {
  if (roleOf(id) != Role::OfPart)
    return int32_t(dim);
  std::optional<CutPosition> at = batch.positionOf(id, output);
  if (!at)
    return int32_t(dim) + 1;
  if (dim == at->dim)
    return std::nullopt;
  return int32_t(dim) + (dim > at->dim ? 2 : 0);
}

placement::Cut NodeWays::tensorCut(int32_t id, int32_t output, unsigned dim,
                                   int64_t count) const {
  std::optional<int32_t> along = stated(id, output, dim);
  return along ? evenly(*along, extents(id, output)[dim], count)
               : placement::Cut();
}

/// Reading two and writing one, on devices of the machine's kind.
int64_t NodeWays::sumNs(int64_t bytes) const {
  int64_t ns = 0;
  for (const Roofline &each : options.rooflines)
    if (each.kind == options.kind)
      ns = each.timeNs({0, 3.0 * double(bytes)});
  return ns;
}

placement::Operator NodeWays::share(int32_t id, int64_t count) const {
  placement::Operator op = whole.ops[id];
  op.resident = llvm::alignTo(op.resident / count, kAlignment);
  op.scratch = llvm::alignTo(op.scratch / count, kAlignment);
  for (auto [number, output] : llvm::enumerate(op.outputs)) {
    if (isSummand(id, int32_t(number)))
      continue;
    output.bytes /= count;
    output.memory = llvm::alignTo(output.memory / count, kAlignment);
    output.copy = llvm::alignTo(output.copy / count, kAlignment);
  }
  shareTimes(id, count, /*tensor=*/nullptr, op);
  return op;
}

/// A piece takes as much less than the whole as a roofline says: its share of
/// the operations, and of what it reads and writes in pieces.
void NodeWays::shareTimes(int32_t id, int64_t count, const TensorWays *tensor,
                          placement::Operator &op) const {
  Operation *operation = batch.whole.operation(id);
  if (!operation)
    return;
  const OperationCut *ofBatch =
      roleOf(id) == Role::OfPart ? batch.cutOf(id) : nullptr;
  const OperationCut *ofTensor = tensor ? tensor->cutOf(id) : nullptr;
  double all = 0, own = 0, pieces = 1;
  if (ofBatch)
    pieces *= double(count);
  if (ofTensor)
    pieces *= double(tensor->count);
  auto touch = [&](Value value, bool isOfBatch, bool isOfTensor) {
    double bytes = bytesOf(value.getType());
    all += bytes;
    own += bytes / (isOfBatch ? double(count) : 1) /
           (isOfTensor ? double(tensor->count) : 1);
  };
  for (auto [number, value] : llvm::enumerate(operation->getOperands()))
    touch(value, ofBatch && ofBatch->operands[number],
          ofTensor && ofTensor->operands[number]);
  for (auto [number, value] : llvm::enumerate(operation->getResults()))
    touch(value, ofBatch && ofBatch->results[number],
          ofTensor && ofTensor->results[number]);
  Work work = workOf(operation), piece = work;
  piece.flops /= pieces;
  if (all > 0)
    piece.bytes *= own / all;
  for (auto &[kind, ns] : op.timeNs) {
    double part = 1 / pieces;
    for (const Roofline &each : options.rooflines)
      if (each.kind == kind)
        part = double(each.timeNs(piece)) /
               std::max(double(each.timeNs(work)), 1.0);
    ns = int64_t(std::ceil(double(ns) * std::min(part, 1.0)));
  }
}

/// False where the outputs are in no pieces. Of summands each piece has
/// summands, too: that is no way.
bool NodeWays::addTensorOutputs(const TensorWays &tensor, int32_t id,
                                Alternative &way) const {
  const placement::Operator &member = whole.ops[id];
  for (int32_t o = 0, n = member.outputs.size(); o < n; ++o) {
    placement::OutputCut output;
    std::optional<unsigned> dim = tensor.dimOf(id, o);
    if (dim && stated(id, o, *dim)) {
      output.cut = tensorCut(id, o, *dim, tensor.count);
    } else {
      const OperationCut *how = tensor.cutOf(id);
      if (roleOf(id) != Role::OfPart || isSummand(id, o) || !how ||
          how->results[o])
        return false;
      output.isPartial = true;
      way.sumNs =
          std::max(way.sumNs, sumNs(member.outputs[o].bytes / batch.parts));
    }
    way.outputs.push_back(std::move(output));
  }
  return true;
}

void NodeWays::addTensorWays(Ways &ways, const placement::Operator &op,
                             ArrayRef<int32_t> members) const {
  for (const TensorWays &tensor : tensors) {
    placement::Operator piece = op;
    piece.resident = llvm::alignTo(op.resident / tensor.count, kAlignment);
    piece.scratch = llvm::alignTo(op.scratch / tensor.count, kAlignment);
    for (auto &[kind, ns] : piece.timeNs)
      ns = 0;
    Alternative found;
    bool isCut = llvm::all_of(members, [&](int32_t id) {
      placement::Operator member = whole.ops[id];
      shareTimes(id, batch.parts, &tensor, member);
      for (auto &[kind, ns] : piece.timeNs)
        ns += placement::timeOn(member, kind).value_or(0);
      bool isMade = roleOf(id) != Role::OfAll || member.result;
      return (tensor.cutOf(id) || !batch.whole.operation(id)) &&
             (!isMade || addTensorOutputs(tensor, id, found));
    });
    if (!isCut)
      continue;
    Alternative made = way("tensor", tensor.count, piece);
    made.outputs = std::move(found.outputs);
    made.sumNs = found.sumNs;
    ways.push_back(std::move(made));
  }
}
