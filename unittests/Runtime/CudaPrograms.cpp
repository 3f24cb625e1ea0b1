//===- CudaPrograms.cpp - Programs for CUDA devices, written by hand ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"
#include "Baechi/Runtime/CudaAbi.h"

#include <cstdlib>
#include <numeric>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using fakecuda::FakeAccess;
using fakecuda::FakeKernel;

static constexpr int64_t count = Ring::count;
static constexpr size_t bytes = size_t(count) * sizeof(int32_t);

/// to = 2 * from, which wraps: in place it may be repeated to take its time.
static void doubleNumbers(int32_t *to, const int32_t *from) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = int32_t(2 * uint32_t(from[i]));
}
/// to = a + b.
static void addNumbers(int32_t *to, const int32_t *a, const int32_t *b) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = int32_t(uint32_t(a[i]) + uint32_t(b[i]));
}

template <typename Pointer>
static Pointer *parameter(void **parameters, int i) {
  return *static_cast<Pointer **>(parameters[i]);
}
static void runDouble(void **p) {
  doubleNumbers(parameter<int32_t>(p, 0), parameter<const int32_t>(p, 1));
}
static void runAdd(void **p) {
  addNumbers(parameter<int32_t>(p, 0), parameter<const int32_t>(p, 1),
             parameter<const int32_t>(p, 2));
}

static constexpr FakeAccess doubleAccesses[] = {{0, bytes, true},
                                                {1, bytes, false}};
static constexpr FakeAccess addAccesses[] = {
    {0, bytes, true}, {1, bytes, false}, {2, bytes, false}};
static constexpr FakeKernel kernels[] = {
    {"double_numbers", runDouble, doubleAccesses, 2, 2},
    {"add_numbers", runAdd, addAccesses, 3, 3}};
static constexpr fakecuda::FakeImage fakeImage{fakecuda::FakeImage::magicNumber,
                                               kernels, 2};

/// The same kernels for a GPU.
static const char *const ptx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry double_numbers(.param .u64 to, .param .u64 from) {
  .reg .u64 %a<4>; .reg .u32 %t; .reg .s32 %v;
  ld.param.u64 %a0, [to]; ld.param.u64 %a1, [from];
  mov.u32 %t, %tid.x; mul.wide.u32 %a2, %t, 4;
  add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2;
  ld.global.s32 %v, [%a1]; add.s32 %v, %v, %v; st.global.s32 [%a0], %v;
  ret;
}
.visible .entry add_numbers(.param .u64 to, .param .u64 x, .param .u64 y) {
  .reg .u64 %a<4>; .reg .u32 %t; .reg .s32 %v<2>;
  ld.param.u64 %a0, [to]; ld.param.u64 %a1, [x]; ld.param.u64 %a3, [y];
  mov.u32 %t, %tid.x; mul.wide.u32 %a2, %t, 4;
  add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2; add.u64 %a3, %a3, %a2;
  ld.global.s32 %v0, [%a1]; ld.global.s32 %v1, [%a3];
  add.s32 %v0, %v0, %v1; st.global.s32 [%a0], %v0;
  ret;
}
)";

/// The first parameter is written, all others are read.
static const baechi_cuda_access touched[] = {
    {0, int64_t(bytes), 1, 0, BAECHI_CUDA_WRITES},
    {0, int64_t(bytes), 1, 0, BAECHI_CUDA_READS},
    {0, int64_t(bytes), 1, 0, BAECHI_CUDA_READS}};
static const baechi_cuda_access onlyWritten[] = {
    {0, int64_t(bytes), 1, 0, BAECHI_CUDA_WRITES}, {}, {}};

void test::launch(const char *kernel, std::vector<void *> pointers,
                  std::array<uint32_t, 4> shape, Said said) {
  std::vector<void *> parameters;
  for (void *&pointer : pointers)
    parameters.push_back(&pointer);
  const void *image = usesFakeCuda() ? static_cast<const void *>(&fakeImage)
                                     : static_cast<const void *>(ptx);
  auto [gx, gy, bx, shared] = shape;
  auto count = uint32_t(parameters.size());
  if (said == Said::Nothing)
    baechi_cuda_launch(image, 0, kernel, gx, gy, 1, bx, 1, 1, shared,
                       parameters.data(), count);
  else
    baechi_cuda_launch_accesses(image, 0, kernel, gx, gy, 1, bx, 1, 1, shared,
                                parameters.data(), count,
                                said == Said::All ? touched : onlyWritten);
}

static int32_t *at(char *arena, int64_t slot) {
  return reinterpret_cast<int32_t *>(arena + slot * Ring::slot);
}

// Slots of an arena: 0 the argument, 1 what is sent, 2 what is received, 3 the
// result.

static int32_t runRing(Context context, char *arena, int32_t device,
                       const Ring &ring) {
  auto devices = int32_t(ring.kinds.size());
  int32_t in = (device + devices - 1) % devices;
  bool cuda = ring.kinds[size_t(device)] == "cuda";
  bool forgets = ring.forgets && device == 0;
  for (int32_t round = 0; round < ring.rounds; ++round) {
    if (baechi_recv(context, in, round, at(arena, 2)))
      return 1;
    baechi_operator_begin(context, 2 * round);
    int32_t *from = at(arena, round == 0 ? 0 : 3);
    if (cuda) {
      // Needless, but work between two messages is more than one kernel.
      baechi_cuda_copy(at(arena, 1), from, bytes);
      launch("double_numbers", {at(arena, 1), from});
    } else {
      doubleNumbers(at(arena, 1), from);
    }
    baechi_operator_end(context, 2 * round);
    if (baechi_send(context, device, round, at(arena, 1)))
      return 1;
    if (!forgets && baechi_await_recv(context, in, round))
      return 1;
    baechi_operator_begin(context, 2 * round + 1);
    if (cuda) {
      baechi_cuda_copy(at(arena, 3), at(arena, 1), bytes);
      launch("add_numbers", {at(arena, 3), at(arena, 1), at(arena, 2)});
    } else {
      addNumbers(at(arena, 3), at(arena, 1), at(arena, 2));
    }
    baechi_operator_end(context, 2 * round + 1);
    if (forgets && baechi_await_recv(context, in, round))
      return 1;
    if (baechi_await_send(context, device, round))
      return 1;
  }
  return 0;
}

std::string test::creationError(Ring ring) {
  std::vector<Body> list = ring.bodies();
  std::move(list.begin(), list.end(), bodies);
  return creationError(ring.program);
}

Ring::Ring(std::vector<std::string> given, bool forgets, int32_t rounds)
    : kinds(std::move(given)), forgets(forgets), rounds(rounds) {
  auto devices = int32_t(kinds.size());
  program = makeProgram(kinds.size(), 4 * slot);
  for (int32_t device = 0; device < devices; ++device) {
    DeviceInfo &info = program.devices[size_t(device)];
    info.kind = kinds[size_t(device)];
    info.name = info.kind + std::to_string(device);
    info.operators.clear();
    for (int32_t round = 0; round < rounds; ++round)
      for (const char *kernel : {"double_numbers", "add_numbers"})
        info.operators.push_back(
            {kernel + std::to_string(round), kernel, 0, 0});
    addQueue(program, device, (device + 1) % devices,
             std::vector<int64_t>(size_t(rounds), int64_t(bytes)));
    // A round awaits all of the one before.
    for (int32_t round = 0; round < rounds; ++round)
      program.queues.back().messages[size_t(round)].group = round;
    addArgument(program, device, 0, int64_t(bytes));
    addResult(program, device, 3 * slot, int64_t(bytes));
  }
}

std::vector<Body> Ring::bodies() {
  std::vector<Body> list;
  for (int32_t device = 0; device < int32_t(kinds.size()); ++device)
    list.push_back([this, device](Context context, char *arena) {
      return runRing(context, arena, device, *this);
    });
  return list;
}

void Ring::stepsRight(Session &session, int64_t seed) const {
  size_t devices = kinds.size();
  std::vector<std::vector<int32_t>> values(devices);
  for (size_t device = 0; device < devices; ++device) {
    values[device].resize(count);
    std::iota(values[device].begin(), values[device].end(),
              int32_t(seed * 31 + int64_t(device) * 7));
    ASSERT_SUCCESS(session.setArgument(device, values[device].data(), bytes));
  }
  ASSERT_SUCCESS(session.step());
  for (int32_t round = 0; round < rounds; ++round) {
    std::vector<std::vector<int32_t>> next = values;
    for (size_t device = 0; device < devices; ++device)
      for (size_t i = 0; i < size_t(count); ++i)
        next[device][i] = 2 * values[device][i] +
                          2 * values[(device + devices - 1) % devices][i];
    values = next;
  }
  std::vector<int32_t> got(count);
  for (size_t device = 0; device < devices; ++device) {
    ASSERT_SUCCESS(session.getResult(device, got.data(), bytes));
    ASSERT_EQ(values[device], got) << "device " << device;
  }
}

Environment::Environment(const char *name, const char *value) : name(name) {
  if (const char *was = std::getenv(name))
    before = was;
  setenv(name, value, /*overwrite=*/1);
}
Environment::~Environment() {
  if (before)
    setenv(name, before->c_str(), /*overwrite=*/1);
  else
    unsetenv(name);
}

bool test::usesFakeCuda() {
  static const bool fake = [] {
    const char *path = fakecuda::path();
    setenv("BAECHI_CUDA_LIBRARY", path, /*overwrite=*/0);
    bool isFake = std::string(std::getenv("BAECHI_CUDA_LIBRARY")) == path;
    if (isFake) {
      setenv("BAECHI_CUBLASLT_LIBRARY", path, /*overwrite=*/1);
      setenv("BAECHI_CUDNN_LIBRARY", path, /*overwrite=*/1);
      setenv("BAECHI_NCCL_LIBRARY", path, /*overwrite=*/1);
    }
    return isFake;
  }();
  return fake;
}

// Before any test, so that the conformance tests find the library.
static const bool chosen = usesFakeCuda();

void test::resetCuda(fakecuda::FakeOptions options) {
  if (usesFakeCuda())
    fakeCudaReset(&options);
}

std::string test::cudaMisuse() {
  return usesFakeCuda() ? fakeCudaMisuse() : "";
}

namespace {
/// Every test uses the driver rightly and leaves nothing behind.
class MisuseIsAFailure final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo &) override { resetCuda(); }
  void OnTestEnd(const testing::TestInfo &) override {
    EXPECT_EQ("", cudaMisuse());
    // What a test expected is not the next one's.
    resetCuda();
  }
};
[[maybe_unused]] const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new MisuseIsAFailure);
  return true;
}();
} // namespace

baechi_cuda_product baechi::runtime::test::denseProduct(int64_t m, int64_t n,
                                                        int64_t k) {
  baechi_cuda_product product{};
  product.m = m;
  product.n = n;
  product.k = k;
  product.ld_a = k;
  product.ld_b = product.ld_c = n;
  product.batch = 1;
  product.align_a = product.align_b = product.align_c = 4;
  return product;
}
