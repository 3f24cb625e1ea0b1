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

bool cuda::findAccesses(std::span<const uint64_t> words, Accesses &accesses) {
  accesses.clear();
  const uint64_t *command = words.data();
  switch (Kind(words[0] >> 32)) {
  case Kind::Kernel:
    return findAccesses(get<KernelCommand>(command),
                        command + 1 + wordsOf<KernelCommand>(), accesses);
  case Kind::Product:
    findAccesses(get<ProductCommand>(command), accesses);
    return true;
  case Kind::Convolution:
    findAccesses(get<ConvolutionCommand>(command), accesses);
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
