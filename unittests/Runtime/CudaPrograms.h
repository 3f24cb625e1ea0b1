//===- CudaPrograms.h - Programs for CUDA devices, written by hand ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_CUDAPROGRAMS_H
#define BAECHI_UNITTESTS_RUNTIME_CUDAPROGRAMS_H

#include "Baechi/Runtime/CudaAbi.h"
#include "FakeCuda/FakeCuda.h"
#include "TestPrograms.h"

#include <array>
#include <optional>

namespace baechi::runtime::test {

/// A ring of devices: each doubles its argument, sends that to the next and
/// adds what it receives, again and again, so that buffers are used anew.
struct Ring {
  static constexpr int64_t slot = 256;
  /// Numbers that a tensor has.
  static constexpr int64_t count = 8;

  /// The kinds of the devices, in order. `forgets`: device 0 reads what it
  /// receives without waiting for it.
  explicit Ring(std::vector<std::string> kinds, bool forgets = false,
                int32_t rounds = 4);

  std::vector<Body> bodies();
  /// Sets arguments, steps, and compares the results.
  void stepsRight(Session &session, int64_t seed) const;

  Program program;
  std::vector<std::string> kinds;
  bool forgets;
  int32_t rounds;
};

/// Why a session of the ring cannot be created.
std::string creationError(Ring ring);

/// Sets a variable of the environment as long as it lives; between sessions.
class Environment {
public:
  Environment(const char *name, const char *value);
  ~Environment();
  Environment(const Environment &) = delete;

private:
  const char *name;
  std::optional<std::string> before;
};

/// What a launch says of the memory that its kernel touches.
enum class Said { All, Nothing, OnlyWrites };
/// Launches one of the kernels on the calling device: double_numbers(to, from),
/// add_numbers(to, a, b).
/// `shape`: gx, gy, bx and bytes of shared memory, instead of a block for the
/// numbers of a tensor.
void launch(const char *kernel, std::vector<void *> pointers,
            std::array<uint32_t, 4> shape = {1, 1, uint32_t(Ring::count), 0},
            Said said = Said::All);

/// One product of dense matrices in single precision, without a workspace.
baechi_cuda_product denseProduct(int64_t m, int64_t n, int64_t k);

/// Whether the tests run against the fake driver; else there is a GPU.
bool usesFakeCuda();
/// Starts the fake driver anew; nothing with a GPU.
void resetCuda(fakecuda::FakeOptions options = {});
/// What the fake driver was used wrongly for; "" with a GPU.
std::string cudaMisuse();

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_CUDAPROGRAMS_H
