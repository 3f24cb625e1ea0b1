//===- CudaCommands.cpp - Work for the compute stream -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaCommands.h"
#include "drivers/cuda/CudaDevice.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

namespace {
/// The first word of a command: what it is, and how many words it has.
enum class Kind : uint32_t { Kernel, Product, Convolution, Copy };

uint64_t header(Kind kind, size_t words) {
  return uint64_t(kind) << 32 | uint64_t(words);
}

template <typename Command> constexpr size_t wordsOf() {
  // What lies between members would differ where commands are the same.
  static_assert(std::has_unique_object_representations_v<Command> &&
                sizeof(Command) % sizeof(uint64_t) == 0);
  return sizeof(Command) / sizeof(uint64_t);
}

template <typename Command>
void put(Words &words, Kind kind, const Command &command, size_t more = 0) {
  words.resize(1 + wordsOf<Command>() + more);
  words[0] = header(kind, words.size());
  std::memcpy(&words[1], &command, sizeof(command));
}

template <typename Command> Command get(const uint64_t *words) {
  Command command;
  std::memcpy(&command, words + 1, sizeof(command));
  return command;
}
} // namespace

void cuda::describe(Words &words, const KernelCommand &command,
                    const void *const *parameters) {
  put(words, Kind::Kernel, command, command.parameters);
  for (uint32_t i = 0; i < command.parameters; ++i)
    std::memcpy(&words[1 + wordsOf<KernelCommand>() + i], parameters[i],
                sizeof(uint64_t));
}
void cuda::describe(Words &words, const ProductCommand &command) {
  put(words, Kind::Product, command);
}
void cuda::describe(Words &words, const ConvolutionCommand &command) {
  put(words, Kind::Convolution, command);
}
void cuda::describe(Words &words, const CopyCommand &command) {
  put(words, Kind::Copy, command);
}

static Problem launch(CudaDevice &device, const uint64_t *words,
                      bool capturing) {
  auto command = get<KernelCommand>(words);
  const Api &api = device.api();
  Function function = nullptr;
  if (Problem problem =
          device.modules().find(api, command.image, command.name, function))
    return problem;
  void **parameters = device.parameterPlaces(command.parameters);
  for (uint32_t i = 0; i < command.parameters; ++i)
    parameters[i] =
        const_cast<uint64_t *>(words + 1 + wordsOf<KernelCommand>() + i);
  Result result =
      api.launch(function, command.gx, command.gy, command.gz, command.bx,
                 command.by, command.bz, command.sharedBytes,
                 device.computeStream(), parameters, nullptr);
  const char *what = "a kernel cannot be launched";
  return capturing ? api.problem(result, what) : device.check(result, what);
}

static Problem copy(CudaDevice &device, const CopyCommand &command,
                    bool capturing) {
  const Api &api = device.api();
  Result result = api.memcpyAsync(reinterpret_cast<DevicePointer>(command.to),
                                  reinterpret_cast<DevicePointer>(command.from),
                                  command.bytes, device.computeStream());
  const char *what = "a tensor cannot be copied";
  return capturing ? api.problem(result, what) : device.check(result, what);
}

/// Of one access. More are taken as one, with what lies between them.
static constexpr int64_t mostPieces = 2048;

/// `rows` pieces of so many bytes, `stride` apart.
static void addPieces(Accesses &accesses, uintptr_t begin, int64_t bytes,
                      int64_t rows, int64_t stride, bool writes) {
  if (rows <= 0 || bytes <= 0)
    return;
  if (stride <= bytes || rows > mostPieces) {
    bytes += (rows - 1) * stride;
    rows = 1;
  }
  for (int64_t row = 0; row < rows; ++row, begin += uintptr_t(stride))
    accesses.push_back({begin, begin + uintptr_t(bytes), writes});
}

static bool findAccesses(const uint64_t *words, const KernelCommand &command,
                         Accesses &accesses) {
  if (!command.accesses)
    return false;
  const uint64_t *parameters = words + 1 + wordsOf<KernelCommand>();
  for (uint32_t i = 0; i < command.parameters; ++i) {
    const baechi_cuda_access &access = command.accesses[i];
    if (access.bytes < 0)
      return false;
    for (int64_t use : {BAECHI_CUDA_READS, BAECHI_CUDA_WRITES})
      if (access.uses & use)
        addPieces(accesses, parameters[i] + uintptr_t(access.offset),
                  access.bytes, access.rows, access.stride,
                  use == BAECHI_CUDA_WRITES);
  }
  return true;
}

/// The matrices of a batch, whose elements are of `type`.
static void addMatrices(Accesses &accesses, const void *at, int64_t rows,
                        int64_t columns, int64_t ld, int64_t stride,
                        int64_t batch, int64_t type, bool writes) {
  const int64_t size = type == BAECHI_CUDA_F32 ? 4 : 2;
  auto begin = reinterpret_cast<uintptr_t>(at);
  if (stride == 0)
    batch = std::min<int64_t>(batch, 1);
  // Batches that lie one before the other, from their first.
  if (stride < 0) {
    begin -= uintptr_t((batch - 1) * -stride * size);
    stride = -stride;
  }
  if (ld == columns || rows == 1) {
    addPieces(accesses, begin, rows * columns * size, batch, stride * size,
              writes);
    return;
  }
  if (rows > mostPieces / std::max<int64_t>(1, batch)) {
    addPieces(accesses, begin,
              ((batch - 1) * stride + (rows - 1) * ld + columns) * size, 1, 0,
              writes);
    return;
  }
  for (int64_t i = 0; i < batch; ++i)
    addPieces(accesses, begin + uintptr_t(i * stride * size), columns * size,
              rows, ld * size, writes);
}

static void findAccesses(const ProductCommand &command, Accesses &accesses) {
  const Product &p = command.product;
  const Factors &f = command.factors;
  addMatrices(accesses, f.a, p.transpose_a ? p.k : p.m,
              p.transpose_a ? p.m : p.k, p.ld_a, p.stride_a, p.batch,
              p.factor_type, /*writes=*/false);
  addMatrices(accesses, f.b, p.transpose_b ? p.n : p.k,
              p.transpose_b ? p.k : p.n, p.ld_b, p.stride_b, p.batch,
              p.factor_type, /*writes=*/false);
  if (p.has_bias)
    addMatrices(accesses, f.bias, 1, p.n, p.n, 0, 1, p.result_type,
                /*writes=*/false);
  // It is read, too, where the product is added to it.
  addMatrices(accesses, f.c, p.m, p.n, p.ld_c, p.stride_c, p.batch,
              p.result_type, /*writes=*/true);
  // What it holds in between is nobody else's, whether the algorithm uses it
  // or not.
  addPieces(accesses, reinterpret_cast<uintptr_t>(f.workspace),
            p.workspace_bytes, 1, 0, /*writes=*/true);
}

static void findAccesses(const ConvolutionCommand &command,
                         Accesses &accesses) {
  const Convolution &convolution = command.convolution;
  const ConvolutionOperands &operands = command.operands;
  auto add = [&](const void *at, int64_t bytes, bool writes) {
    addPieces(accesses, reinterpret_cast<uintptr_t>(at), bytes, 1, 0, writes);
  };
  ConvolutionTensors tensors = tensorsOf(convolution);
  add(operands.a, bytesOf(*tensors.a, convolution), /*writes=*/false);
  add(operands.b, bytesOf(*tensors.b, convolution), /*writes=*/false);
  add(operands.c, bytesOf(*tensors.c, convolution), /*writes=*/true);
  add(operands.workspace, convolution.workspace_bytes, /*writes=*/true);
}

bool cuda::findAccesses(std::span<const uint64_t> words, Accesses &accesses) {
  accesses.clear();
  const uint64_t *command = words.data();
  switch (Kind(words[0] >> 32)) {
  case Kind::Kernel:
    return ::findAccesses(command, get<KernelCommand>(command), accesses);
  case Kind::Product:
    ::findAccesses(get<ProductCommand>(command), accesses);
    return true;
  case Kind::Convolution:
    ::findAccesses(get<ConvolutionCommand>(command), accesses);
    return true;
  case Kind::Copy: {
    auto copy = get<CopyCommand>(command);
    auto from = reinterpret_cast<uintptr_t>(copy.from);
    auto to = reinterpret_cast<uintptr_t>(copy.to);
    accesses.push_back({from, from + copy.bytes, /*writes=*/false});
    accesses.push_back({to, to + copy.bytes, /*writes=*/true});
    return true;
  }
  }
  return false;
}

Problem cuda::prepare(CudaDevice &device, std::span<const uint64_t> command) {
  switch (Kind(command[0] >> 32)) {
  case Kind::Kernel: {
    auto kernel = get<KernelCommand>(command.data());
    Function function = nullptr;
    return device.modules().find(device.api(), kernel.image, kernel.name,
                                 function);
  }
  case Kind::Product: {
    auto p = get<ProductCommand>(command.data());
    return device.blas().prepare(p.product, p.factors, device.computeStream());
  }
  case Kind::Convolution: {
    auto c = get<ConvolutionCommand>(command.data());
    return device.dnn().prepare(c.convolution, c.operands,
                                device.computeStream());
  }
  case Kind::Copy:
    break;
  }
  return {};
}

Problem cuda::perform(CudaDevice &device, std::span<const uint64_t> words,
                      bool capturing) {
  Problem problem;
  while (!words.empty() && !problem) {
    const uint64_t *command = words.data();
    switch (Kind(words[0] >> 32)) {
    case Kind::Kernel:
      problem = launch(device, command, capturing);
      break;
    case Kind::Product: {
      auto p = get<ProductCommand>(command);
      problem =
          device.blas().multiply(p.product, p.factors, device.computeStream());
      break;
    }
    case Kind::Convolution: {
      auto c = get<ConvolutionCommand>(command);
      problem = device.dnn().convolve(c.convolution, c.operands,
                                      device.computeStream());
      break;
    }
    case Kind::Copy:
      problem = copy(device, get<CopyCommand>(command), capturing);
      break;
    }
    words = words.subspan(firstOf(words).size());
  }
  return problem;
}
