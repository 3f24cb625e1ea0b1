//===- PlainConvolution.h - What the runtime convolves, in plain loops -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_PLAINCONVOLUTION_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_PLAINCONVOLUTION_H

#include "PlainProduct.h"

#include <functional>
#include <map>

namespace fakecuda {

/// Calls `visit` with the places, in elements, of every image's pixel, filter's
/// weight and result that are multiplied with each other.
inline void
forEachTerm(const baechi_cuda_convolution &p,
            const std::function<void(int64_t, int64_t, int64_t)> &visit) {
  const auto &images = p.images, &filters = p.filters, &results = p.results;
  auto size = [&](const baechi_cuda_space_tensor &tensor, int64_t space) {
    return space < p.spaces ? tensor.sizes[2 + space] : 1;
  };
  int64_t channels = filters.sizes[1];
  int64_t kinds = filters.sizes[0] / (images.sizes[1] / channels);
  int64_t places = size(results, 0) * size(results, 1) * size(results, 2);
  int64_t windows = size(filters, 0) * size(filters, 1) * size(filters, 2);
  for (int64_t n = 0; n < images.sizes[0]; ++n)
    for (int64_t kind = 0; kind < filters.sizes[0]; ++kind)
      for (int64_t place = 0; place < places; ++place)
        for (int64_t window = 0; window < windows; ++window)
          for (int64_t channel = 0; channel < channels; ++channel) {
            int64_t image =
                n * images.strides[0] +
                (kind / kinds * channels + channel) * images.strides[1];
            int64_t filter =
                kind * filters.strides[0] + channel * filters.strides[1];
            int64_t result = n * results.strides[0] + kind * results.strides[1];
            int64_t outer = place, inner = window;
            for (int64_t space = p.spaces - 1; space >= 0; --space) {
              int64_t at = outer % size(results, space);
              int64_t in = inner % size(filters, space);
              outer /= size(results, space);
              inner /= size(filters, space);
              image += (at * p.steps[space] + in * p.dilations[space]) *
                       images.strides[2 + space];
              filter += in * filters.strides[2 + space];
              result += at * results.strides[2 + space];
            }
            visit(image, filter, result);
          }
}

/// The same of a tensor's elements.
inline void forEachElement(const baechi_cuda_space_tensor &tensor,
                           int64_t spaces,
                           const std::function<void(int64_t)> &visit) {
  int64_t elements = 1;
  for (int64_t dim = 0; dim < 2 + spaces; ++dim)
    elements *= tensor.sizes[dim];
  for (int64_t i = 0; i < elements; ++i) {
    int64_t left = i, at = 0;
    for (int64_t dim = 1 + spaces; dim >= 0; --dim) {
      at += left % tensor.sizes[dim] * tensor.strides[dim];
      left /= tensor.sizes[dim];
    }
    visit(at);
  }
}

/// baechi_cuda_convolve, on the host and at once. Spoils the workspace, as a
/// library may.
inline void convolvePlainly(const baechi_cuda_convolution *p, const void *a,
                            const void *b, void *c, void *workspace) {
  if (p->workspace_bytes > 0)
    std::memset(workspace, 0xAB, size_t(p->workspace_bytes));
  const auto &written = p->of_filters ? p->filters : p->results;
  forEachElement(written, p->spaces,
                 [&](int64_t at) { storeElement(c, p->type, at, 0); });
  auto round = [&](float factor) {
    return p->type == BAECHI_CUDA_F32 && p->math != BAECHI_CUDA_MATH_FP32
               ? shorten(factor, droppedByTf32)
               : factor;
  };
  // Short types are added up in single precision.
  std::map<int64_t, double> sums;
  forEachTerm(*p, [&](int64_t image, int64_t filter, int64_t result) {
    int64_t second = p->of_filters ? result : filter;
    sums[p->of_filters ? filter : result] +=
        double(round(loadElement(a, p->type, image))) *
        round(loadElement(b, p->type, second));
  });
  for (auto [at, sum] : sums)
    storeElement(c, p->type, at, float(sum));
}

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_PLAINCONVOLUTION_H
