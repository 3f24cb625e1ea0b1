//===- CudaCommands.h - Work for the compute stream -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a step asks of the compute stream, in words: two runs of commands do
/// the same if their words are the same.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDACOMMANDS_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDACOMMANDS_H

#include "Baechi/Support/Conflicts.h"
#include "drivers/cuda/CudaBlas.h"
#include "drivers/cuda/CudaDnn.h"

#include <cstdint>
#include <span>
#include <vector>

namespace baechi::runtime::cuda {

class CudaDevice;

using support::Accesses;
using support::Conflicts;
using Words = std::vector<uint64_t>;

/// A kernel; the words of its parameters, pointers all of them, follow.
struct KernelCommand {
  const void *image;
  const char *name;
  /// What it does with each parameter; null: not known.
  const baechi_cuda_access *accesses;
  uint32_t gx, gy, gz, bx, by, bz;
  uint32_t sharedBytes, parameters;
};

struct ProductCommand {
  Product product;
  Factors factors;
};

struct ConvolutionCommand {
  Convolution convolution;
  ConvolutionOperands operands;
};

/// Within the device.
struct CopyCommand {
  void *to;
  const void *from;
  size_t bytes;
};

/// Each replaces what `words` held.
void describe(Words &words, const KernelCommand &command,
              const void *const *parameters);
void describe(Words &words, const ProductCommand &command);
void describe(Words &words, const ConvolutionCommand &command);
void describe(Words &words, const CopyCommand &command);

/// Tells the device's compute stream, in order. `capturing`: the commands go
/// into a graph, so that one that cannot is no failure of the device.
Problem perform(CudaDevice &device, std::span<const uint64_t> words,
                bool capturing = false);
/// What one command reads and writes, into `accesses`; false where that is not
/// known.
bool findAccesses(std::span<const uint64_t> command, Accesses &accesses);
bool findAccesses(const KernelCommand &command, const uint64_t *parameters,
                  Accesses &accesses);
void findAccesses(const ProductCommand &command, Accesses &accesses);
void findAccesses(const ConvolutionCommand &command, Accesses &accesses);
/// The first of some commands.
inline std::span<const uint64_t> firstOf(std::span<const uint64_t> words) {
  return words.first(uint32_t(words[0]));
}
/// Finds what one command needs, so that to perform it loads nothing.
Problem prepare(CudaDevice &device, std::span<const uint64_t> command);

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDACOMMANDS_H
