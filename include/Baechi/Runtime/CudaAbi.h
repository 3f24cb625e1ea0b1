/*===- CudaAbi.h - What the code of CUDA kernels calls ------------*- C -*-===*\
|*
|* Part of the Baechi project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Each kernel of a program for GPUs becomes a host function (docs/cuda-kernels.md)
|*
|*     void NAME__cuda(void *argument…, void *result…, void *scratch);
|*
|* on device pointers. It calls only the functions below. They put work on the
|* compute stream of the device whose step function the calling thread runs, and
|* return: they neither wait for the device nor copy to the host. What goes wrong
|* aborts the step.
\*===----------------------------------------------------------------------===*/
#ifndef BAECHI_RUNTIME_CUDAABI_H
#define BAECHI_RUNTIME_CUDAABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Launches function `kernel` of a fat binary on a grid of (gx, gy, gz) blocks
   of (bx, by, bz) threads, with `shared_bytes` of dynamic shared memory.
   `image` names the fat binary: it has the same address in all calls that mean
   the same one, so it is loaded once a device, when it is first launched from.
   `parameters` are the addresses of the kernel's parameters, all of them
   pointers, and valid only during the call. */
void baechi_cuda_launch(const void *image, size_t image_bytes,
                        const char *kernel, uint32_t gx, uint32_t gy,
                        uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                        uint32_t shared_bytes, void **parameters,
                        uint32_t parameter_count);

/* For every i of [0, batch): C_i = op(A_i) * op(B_i), plus what C_i holds when
   `accumulate` is not 0, in single precision. op(A) is m x k, op(B) k x n and C
   m x n, all row-major; op transposes where `transposeX` is not 0: A is then
   stored as k x m, B as n x k. ldX is how many elements lie from a stored row to
   the next, strideX from a matrix of the batch to the next (0: all the same; not
   for C). C overlaps neither A nor B. */
void baechi_cuda_sgemm(int32_t transposeA, int32_t transposeB, int64_t m,
                       int64_t n, int64_t k, const float *a, int64_t lda,
                       int64_t strideA, const float *b, int64_t ldb,
                       int64_t strideB, float *c, int64_t ldc, int64_t strideC,
                       int64_t batch, int32_t accumulate);

/* Copies within the device. */
void baechi_cuda_copy(void *target, const void *source, size_t bytes);

/* The device's own copy of a constant of the program, which is made when it is
   first asked for; null after a failure. `data` names the constant. */
const void *baechi_cuda_constant(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* BAECHI_RUNTIME_CUDAABI_H */
