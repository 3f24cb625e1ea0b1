//===- Convolution.cpp - Kernels that cuDNN may compute -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution is a contraction, one of whose operands, the images, is read at
// sums of loops: a place of the result times the step, plus a place of the
// window times the dilation. So is the gradient of its filters, whose result
// has the window's loops, while the larger ones are summed. What the model pads
// and turns around are kernels of their own, so the gradient of images is a
// convolution, too.
//
//===----------------------------------------------------------------------===//

#include "Convolution.h"
#include "Baechi/Analysis/Contraction.h"
#include "ConvolutionLoops.h"
#include "LibraryCall.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace baechi;

namespace {
constexpr size_t kMostDims = 2 + BAECHI_CUDA_MOST_SPACES;
constexpr int64_t kLeastWorkspace = 1 << 16;

/// The contraction of a kernel that is nothing else.
linalg::GenericOp contractionOf(func::FuncOp kernel) {
  for (auto op : kernel.getBody().front().getOps<linalg::GenericOp>())
    if (matchContraction(op))
      return op;
  return {};
}

using Tensor = baechi_cuda_space_tensor;

/// Sets a dimension of channels that groups share; false where they do not lie
/// one after the other.
bool setChannels(Tensor &tensor, size_t dim, int64_t size, int64_t stride,
                 int64_t groups, int64_t groupStride) {
  if (groups > 1 && size > 1 && groupStride != size * stride)
    return false;
  tensor.sizes[dim] = size * groups;
  tensor.strides[dim] = size > 1 ? stride : groupStride;
  return true;
}

/// Gives dimensions of one element a stride as if they were in their place,
/// channels innermost or, where these are further apart than pixels, not.
/// False where a stride is none.
bool fillStrides(Tensor &tensor, size_t dims, bool channelsInnermost) {
  SmallVector<size_t> order;
  if (channelsInnermost)
    order.push_back(1);
  for (size_t dim = dims; dim-- > 2;)
    order.push_back(dim);
  if (!channelsInnermost)
    order.push_back(1);
  order.push_back(0);
  int64_t next = 1;
  for (size_t dim : order) {
    if (tensor.sizes[dim] == 1)
      tensor.strides[dim] = next;
    if (tensor.strides[dim] <= 0)
      return false;
    next = std::max(next, tensor.strides[dim] * tensor.sizes[dim]);
  }
  return true;
}

/// Has elements lie densely, channels innermost or outside the space.
void setDense(Tensor &tensor, size_t dims, bool channelsInnermost) {
  int64_t next = 1;
  auto put = [&](size_t dim) {
    tensor.strides[dim] = next;
    next *= tensor.sizes[dim];
  };
  if (channelsInnermost)
    put(1);
  for (size_t dim = dims; dim-- > 2;)
    put(dim);
  if (!channelsInnermost)
    put(1);
  put(0);
}

/// Whether they do. cuDNN has engines that take other strides and compute
/// something else.
bool isDense(const Tensor &tensor, size_t dims, bool channelsInnermost) {
  Tensor dense = tensor;
  setDense(dense, dims, channelsInnermost);
  return llvm::all_of(llvm::seq(dims), [&](size_t dim) {
    return tensor.sizes[dim] == 1 || tensor.strides[dim] == dense.strides[dim];
  });
}

/// Lets images be as large as they are in memory, where there would otherwise
/// be gaps between rows, and the results stay as many.
void closeGaps(baechi_cuda_convolution &to, size_t dims, int64_t available) {
  Tensor &images = to.images;
  auto end = [&] {
    int64_t last = 0;
    for (size_t dim = 0; dim < dims; ++dim)
      last += (images.sizes[dim] - 1) * images.strides[dim];
    return last + 1;
  };
  for (size_t dim = dims; dim-- > 2;) {
    int64_t outer = images.strides[dim == 2 ? 0 : dim - 1];
    // Channels lie between the batch and the space.
    if (dim == 2 && images.strides[1] > images.strides[2])
      outer = images.strides[1];
    int64_t size = outer / images.strides[dim];
    int64_t window = (to.filters.sizes[dim] - 1) * to.dilations[dim - 2] + 1;
    int64_t before = images.sizes[dim];
    if (outer % images.strides[dim] != 0 || size < before ||
        (size - window) / to.steps[dim - 2] + 1 != to.results.sizes[dim])
      continue;
    images.sizes[dim] = size;
    if (end() > available)
      images.sizes[dim] = before;
  }
}

int64_t elementsOf(Type type) {
  return cast<RankedTensorType>(type).getNumElements();
}
} // namespace

int64_t LibraryConvolution::filterElements() const {
  int64_t elements = 1;
  for (int64_t dim = 0; dim < 2 + description.spaces; ++dim)
    elements *= description.filters.sizes[dim];
  return elements;
}

std::optional<LibraryConvolution>
baechi::matchConvolution(func::FuncOp kernel) {
  std::optional<StridedProduct> product =
      matchStridedProduct(kernel, ProductTypes::Short);
  if (!product || !product->operands.startsFromZero() ||
      product->operands.factors.size() != 1 ||
      product->factorType != product->resultType)
    return std::nullopt;
  linalg::GenericOp op = contractionOf(kernel);
  bool swapped = false;
  std::optional<ConvolutionLoops> loops =
      op ? sortConvolutionLoops(op, swapped) : std::nullopt;
  if (!loops)
    return std::nullopt;
  // Of the two, windows are the smaller ones, mostly.
  int64_t places = 1, windows = 1;
  for (const ConvolutionSpace &space : loops->spaces) {
    places *= space.place.size;
    windows *= space.window.size;
  }
  bool ofFilters = windows > places;
  ConvolutionLoops sorted = *loops;
  if (!setSpaces(sorted, ofFilters)) {
    sorted = *loops;
    ofFilters = !ofFilters;
    if (!setSpaces(sorted, ofFilters))
      return std::nullopt;
  }
  loops = std::move(sorted);

  auto only = [](ArrayRef<ProductLoop> loops) {
    return loops.empty() ? ProductLoop() : loops.front();
  };
  ProductLoop batch = only(ofFilters ? loops->summed : loops->ofResult);
  ProductLoop channels = only(ofFilters ? loops->ofResult : loops->summed);
  ProductLoop kinds = only(loops->ofOther), groups = only(loops->groups);
  // The operand, or the result, that holds filters, and the other one.
  int64_t ProductLoop::*ofFilter =
      ofFilters ? &ProductLoop::c : &ProductLoop::b;
  int64_t ProductLoop::*ofPlace = ofFilters ? &ProductLoop::b : &ProductLoop::c;

  LibraryConvolution found;
  baechi_cuda_convolution &to = found.description;
  to.of_filters = ofFilters;
  to.spaces = loops->spaces.size();
  size_t dims = 2 + to.spaces;
  to.images.sizes[0] = to.results.sizes[0] = batch.size;
  to.images.strides[0] = batch.a;
  to.results.strides[0] = batch.*ofPlace;
  to.filters.sizes[1] = channels.size;
  to.filters.strides[1] = channels.*ofFilter;
  if (!setChannels(to.images, 1, channels.size, channels.a, groups.size,
                   groups.a) ||
      !setChannels(to.filters, 0, kinds.size, kinds.*ofFilter, groups.size,
                   groups.*ofFilter) ||
      !setChannels(to.results, 1, kinds.size, kinds.*ofPlace, groups.size,
                   groups.*ofPlace))
    return std::nullopt;
  for (auto [i, space] : llvm::enumerate(loops->spaces)) {
    to.steps[i] = space.step;
    to.dilations[i] = space.dilation;
    to.images.sizes[2 + i] = (space.place.size - 1) * space.step +
                             (space.window.size - 1) * space.dilation + 1;
    to.images.strides[2 + i] = space.stride;
    to.filters.sizes[2 + i] = space.window.size;
    to.filters.strides[2 + i] = space.window.*ofFilter;
    to.results.sizes[2 + i] = space.place.size;
    to.results.strides[2 + i] = space.place.*ofPlace;
  }
  bool innermost = to.images.sizes[1] > 1
                       ? to.images.strides[1] < to.images.strides[dims - 1]
                       : to.results.strides[1] < to.results.strides[dims - 1];
  // Strides of dimensions of one element do not matter, but are compared.
  for (Tensor *tensor : {&to.images, &to.filters, &to.results})
    if (!fillStrides(*tensor, dims, innermost))
      return std::nullopt;

  found.operands = product->operands.factors.front();
  if (swapped)
    found.operands.transpose();
  closeGaps(to, dims,
            elementsOf(kernel.getArgumentTypes()[found.operands.argumentA]) -
                found.operands.offsetA);
  if (!isDense(to.images, dims, innermost) ||
      !isDense(to.results, dims, innermost))
    return std::nullopt;
  std::array<int64_t, kMostDims> lie;
  llvm::copy(to.filters.strides, lie.begin());
  setDense(to.filters, dims, innermost);
  if (!std::equal(lie.begin(), lie.begin() + dims, to.filters.strides))
    found.movedFrom = lie;

  found.type = product->factorType;
  int64_t bytes = found.type.getIntOrFloatBitWidth() / 8;
  int64_t alignA = std::gcd(kPointerAlignment, found.operands.offsetA * bytes);
  int64_t alignB = std::gcd(kPointerAlignment, found.operands.offsetB * bytes);
  to.images.align = alignA;
  to.filters.align = ofFilters || found.movedFrom ? kPointerAlignment : alignB;
  to.results.align = ofFilters ? alignB : kPointerAlignment;
  to.type = cudaTypeOf(found.type);
  return found;
}

CudaConvolutionAttr baechi::defaultHow(const LibraryConvolution &convolution,
                                       const CudaProductOptions &options,
                                       MLIRContext *context) {
  // Short types are not shortened.
  bool single = convolution.type.isF32();
  const baechi_cuda_convolution &to = convolution.description;
  int64_t elements = 0;
  for (const Tensor *tensor : {&to.images, &to.filters, &to.results}) {
    int64_t product = 1;
    for (int64_t dim = 0; dim < 2 + to.spaces; ++dim)
      product *= tensor->sizes[dim];
    elements += product;
  }
  // Tables of places in the window do not depend on the images.
  int64_t bytes =
      std::max(kLeastWorkspace,
               elements * (convolution.type.getIntOrFloatBitWidth() / 8));
  return CudaConvolutionAttr::get(context, single ? options.math : "fp32",
                                  std::min(options.workspaceBytes, bytes),
                                  /*always=*/options.convolutions == "cudnn",
                                  {});
}

baechi_cuda_convolution baechi::describe(const LibraryConvolution &convolution,
                                         CudaConvolutionAttr how) {
  baechi_cuda_convolution to = convolution.description;
  to.math = llvm::find(CudaProductAttr::knownMath(), how.getMath()) -
            CudaProductAttr::knownMath().begin();
  to.workspace_bytes = how.getWorkspace();
  if (how.getEngine())
    llvm::copy(how.getEngine().asArrayRef(), to.engine);
  return to;
}

std::optional<LibraryConvolution>
baechi::matchLibraryConvolution(func::FuncOp kernel) {
  auto how = kernel->getAttrOfType<CudaConvolutionAttr>(
      BaechiDialect::kCudaConvolution);
  if (!how || !how.callsLibrary())
    return std::nullopt;
  std::optional<LibraryConvolution> found = matchConvolution(kernel);
  if (found)
    found->description = describe(*found, how);
  return found;
}

std::optional<CudaConvolutionCall>
baechi::cudaConvolutionOf(func::FuncOp kernel) {
  auto how = kernel->getAttrOfType<CudaConvolutionAttr>(
      BaechiDialect::kCudaConvolution);
  std::optional<LibraryConvolution> found =
      how ? matchConvolution(kernel) : std::nullopt;
  if (!found)
    return std::nullopt;
  return CudaConvolutionCall{describe(*found, how), found->operands.argumentA,
                             found->operands.argumentB};
}

std::string baechi::wrongCudaConvolutions(StringRef how) {
  if (how == "measured" || how == "generated" || how == "cudnn")
    return "";
  return ("unknown way '" + how +
          "' of convolutions; known: measured, generated, cudnn")
      .str();
}
