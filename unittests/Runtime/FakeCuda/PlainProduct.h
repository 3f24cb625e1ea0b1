//===- PlainProduct.h - What the runtime multiplies, in plain loops -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_PLAINPRODUCT_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_PLAINPRODUCT_H

#include "Baechi/Runtime/CudaAbi.h"
#include "FakeFloats.h"

#include <cstring>

namespace fakecuda {

inline float loadElement(const void *base, int64_t type, int64_t index) {
  if (type == BAECHI_CUDA_F32)
    return static_cast<const float *>(base)[index];
  uint16_t bits = static_cast<const uint16_t *>(base)[index];
  return type == BAECHI_CUDA_F16 ? fromF16(bits) : fromBf16(bits);
}

inline void storeElement(void *base, int64_t type, int64_t index, float value) {
  if (type == BAECHI_CUDA_F32)
    static_cast<float *>(base)[index] = value;
  else
    static_cast<uint16_t *>(base)[index] =
        type == BAECHI_CUDA_F16 ? toF16(value) : toBf16(value);
}

/// baechi_cuda_multiply, on the host and at once. Spoils the workspace, as a
/// library may.
inline void multiplyPlainly(const baechi_cuda_product *p, const void *a,
                            const void *b, void *c, const void *bias,
                            void *workspace, int32_t accumulate) {
  std::memset(workspace, 0xAB, size_t(p->workspace_bytes));
  for (int64_t i = 0; i < p->batch; ++i)
    for (int64_t row = 0; row < p->m; ++row)
      for (int64_t column = 0; column < p->n; ++column) {
        int64_t to = i * p->stride_c + row * p->ld_c + column;
        double sum = accumulate ? loadElement(c, p->result_type, to) : 0;
        for (int64_t k = 0; k < p->k; ++k)
          sum += double(loadElement(a, p->factor_type,
                                    i * p->stride_a +
                                        (p->transpose_a ? k * p->ld_a + row
                                                        : row * p->ld_a + k))) *
                 loadElement(b, p->factor_type,
                             i * p->stride_b + (p->transpose_b
                                                    ? column * p->ld_b + k
                                                    : k * p->ld_b + column));
        if (p->has_bias)
          sum += loadElement(bias, p->result_type, column);
        storeElement(c, p->result_type, to, float(sum));
      }
}

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_PLAINPRODUCT_H
