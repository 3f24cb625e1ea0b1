/*===- CudaAbi.h - What the code of CUDA kernels calls ------------*- C -*-===*\
|*
|* Part of the Baechi project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Each kernel of a program for GPUs becomes a host function
(docs/cuda-kernels.md)
|*
|*     void NAME__cuda(void *argument…, void *result…, void *scratch);
|*
|* on device pointers. It calls only the functions below. They put work on the
|* compute stream of the device whose step function the calling thread runs, and
|* return: they neither wait for the device nor copy to the host. What goes
wrong
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
   pointers, and valid only during the call. What it touches is not known, so
   that it runs alone. */
void baechi_cuda_launch(const void *image, size_t image_bytes,
                        const char *kernel, uint32_t gx, uint32_t gy,
                        uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                        uint32_t shared_bytes, void **parameters,
                        uint32_t parameter_count);

/* What a kernel does with the memory behind a parameter: a sum of these. */
enum { BAECHI_CUDA_READS = 1, BAECHI_CUDA_WRITES = 2 };

/* All that a kernel touches behind a parameter: `rows` pieces of so many bytes,
   `stride` bytes from one to the next, the first of them `offset` behind it.
   `bytes` below 0: it is not known what. */
typedef struct baechi_cuda_access {
  int64_t offset, bytes;
  int64_t rows, stride;
  int64_t uses;
} baechi_cuda_access;

/* The same for a kernel that touches no memory but what `accesses` says, one
   for each parameter: kernels, products and copies that touch nothing in common
   that one of them writes may run at the same time. `accesses` stays as it is
   as long as `image` does. */
void baechi_cuda_launch_accesses(const void *image, size_t image_bytes,
                                 const char *kernel, uint32_t gx, uint32_t gy,
                                 uint32_t gz, uint32_t bx, uint32_t by,
                                 uint32_t bz, uint32_t shared_bytes,
                                 void **parameters, uint32_t parameter_count,
                                 const baechi_cuda_access *accesses);

/* Types of elements, with CUDA's own numbers. */
enum { BAECHI_CUDA_F32 = 0, BAECHI_CUDA_F16 = 2, BAECHI_CUDA_BF16 = 14 };

/* What single-precision factors may be rounded to before they are multiplied:
   nothing, or a shorter type. Sums are in single precision. */
enum {
  BAECHI_CUDA_MATH_FP32,
  BAECHI_CUDA_MATH_TF32,
  BAECHI_CUDA_MATH_BF16,
  BAECHI_CUDA_MATH_FP16
};

/* A batch of products C_i = op(A_i) * op(B_i). op(A) is m x k, op(B) k x n and
   C m x n, all row-major; op transposes where transpose_x is not 0: A is then
   stored as k x m, B as n x k. ld_x is how many elements lie from a stored row
   to the next, stride_x from a matrix of the batch to the next (0: all the
   same; not for C). align_x is a power of two that divides the addresses, in
   bytes. All members have 64 bits, so that products are compared as words. */
typedef struct baechi_cuda_product {
  int64_t transpose_a, transpose_b;
  int64_t m, n, k;
  int64_t ld_a, stride_a, ld_b, stride_b, ld_c, stride_c, batch;
  int64_t align_a, align_b, align_c;
  int64_t factor_type; /* of A and B */
  int64_t result_type; /* of C */
  int64_t math;
  int64_t has_bias;
  int64_t workspace_bytes;
  /* cuBLASLt's own description of how to compute it (cublasLtMatmulAlgo_t), for
     the GPU and the library that a profile names; zeros: the library's choice.
   */
  uint64_t algorithm[8];
} baechi_cuda_product;

/* Multiplies, and adds what C holds when `accumulate` is not 0. `bias`: n
   elements of C's type, 64-byte aligned, that are added to each row, where the
   product has_bias.
   `workspace` is device memory of workspace_bytes, 256-byte aligned. C overlaps
   nothing else. `product` need be valid during the call only. */
void baechi_cuda_multiply(const baechi_cuda_product *product, const void *a,
                          const void *b, void *c, const void *bias,
                          void *workspace, int32_t accumulate);

enum { BAECHI_CUDA_MOST_SPACES = 3, BAECHI_CUDA_ENGINE_WORDS = 24 };

/* A tensor of a convolution. First the images of a batch, then channels; then
   `spaces` dimensions of space. Of filters: channels of the results, then
   channels of the images within a group. Strides are in elements. */
typedef struct baechi_cuda_space_tensor {
  int64_t sizes[2 + BAECHI_CUDA_MOST_SPACES];
  int64_t strides[2 + BAECHI_CUDA_MOST_SPACES];
  int64_t align; /* a power of two that divides the address, in bytes */
} baechi_cuda_space_tensor;

/* A convolution without padding, whose filters are not turned around
   (cross-correlation): results = images * filters, in as many groups as the
   images have channels for one of the filters'. With `of_filters` what is
   computed are the filters: the gradient, images by the results' gradient. All
   members have 64 bits, so that convolutions are compared as words; those
   beyond `spaces` are 0. */
typedef struct baechi_cuda_convolution {
  int64_t of_filters;
  int64_t spaces; /* 2 or 3 */
  baechi_cuda_space_tensor images, filters, results;
  int64_t steps[BAECHI_CUDA_MOST_SPACES], dilations[BAECHI_CUDA_MOST_SPACES];
  int64_t type; /* of all elements */
  int64_t math;
  int64_t workspace_bytes;
  /* How cuDNN computes it, for the GPU and the library that a profile names:
     1 + the engine's index, the number of its choices, and the choices, type in
     the upper half of a word and value in the lower; zeros: the library's first
     proposal. */
  int64_t engine[BAECHI_CUDA_ENGINE_WORDS];
} baechi_cuda_convolution;

/* Computes C of A, the images, and B: the filters or the results' gradient.
   `workspace` is device memory of workspace_bytes, 256-byte aligned. C overlaps
   nothing else. `convolution` need be valid during the call only. */
void baechi_cuda_convolve(const baechi_cuda_convolution *convolution,
                          const void *a, const void *b, void *c,
                          void *workspace);

/* Copies within the device. */
void baechi_cuda_copy(void *target, const void *source, size_t bytes);

/* Has a constant of the program lie at `place`, which nothing else writes: it
   is copied there once. */
void baechi_cuda_constant(void *place, const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* BAECHI_RUNTIME_CUDAABI_H */
