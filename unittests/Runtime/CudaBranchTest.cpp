//===- CudaBranchTest.cpp - Commands beside each other ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The fake driver runs the nodes of a graph in any order that its edges allow,
/// and blames those that touch the same bytes without an edge.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaAbi.h"
#include "CudaPrograms.h"
#include "drivers/cuda/CudaApi.h"

#include <gmock/gmock.h>

#include <random>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

#define NEEDS_THE_FAKE_DRIVER()                                                \
  if (!usesFakeCuda())                                                         \
  GTEST_SKIP() << "only the fake driver looks at graphs"

constexpr auto bytes = int64_t(Ring::count * sizeof(int32_t));

/// One device with an arena of so many bytes, which is all argument and result.
Program deviceOf(int64_t arena) {
  Program program = makeProgram(1, arena);
  program.devices[0].kind = "cuda";
  program.devices[0].name = "cuda0";
  addArgument(program, 0, 0, arena);
  addResult(program, 0, 0, arena);
  return program;
}

/// What the arena holds after each of some steps; a step starts from what its
/// argument says.
std::vector<std::vector<int32_t>> arenasAfter(int64_t arena, Body body,
                                              int steps = 4) {
  SessionOptions options;
  options.timeline = false;
  auto session = makeSession(deviceOf(arena), {std::move(body)}, options);
  std::vector<std::vector<int32_t>> all;
  for (int step = 0; session && step < steps; ++step) {
    std::vector<int32_t> numbers(size_t(arena) / sizeof(int32_t));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = int32_t(i * 7 + size_t(step) * 1000);
    EXPECT_SUCCESS(session->setArgument(0, numbers.data(), size_t(arena)));
    EXPECT_SUCCESS(session->step());
    EXPECT_SUCCESS(session->getResult(0, numbers.data(), size_t(arena)));
    all.push_back(numbers);
  }
  return all;
}

/// Eight numbers are doubled, each where it lies, then summed up by pairs.
Body tree(Said said) {
  return [said](Context, char *arena) {
    for (int i = 0; i < 8; ++i)
      launch("double_numbers", {arena + i * bytes, arena + i * bytes},
             {1, 1, uint32_t(Ring::count), 0}, said);
    for (int apart = 1; apart < 8; apart *= 2)
      for (int i = 0; i < 8; i += 2 * apart)
        launch(
            "add_numbers",
            {arena + i * bytes, arena + i * bytes, arena + (i + apart) * bytes},
            {1, 1, uint32_t(Ring::count), 0}, said);
    return 0;
  };
}

/// The longest chain of the tree's graph.
int chainOfTree(Said said = Said::All) {
  auto arenas = arenasAfter(8 * bytes, tree(said));
  auto words = bytes / int64_t(sizeof(int32_t));
  for (size_t step = 0; step < arenas.size(); ++step)
    for (int64_t at = 0; at < words; ++at) {
      int64_t sum = 0;
      for (int64_t i = 0; i < 8; ++i)
        sum += 2 * ((i * words + at) * 7 + int64_t(step) * 1000);
      EXPECT_EQ(sum, arenas[step][size_t(at)]);
    }
  return fakeCudaLongestChain();
}

TEST(CudaBranches, CommandsFollowOnlyThoseThatTheyMeet) {
  NEEDS_THE_FAKE_DRIVER();
  EXPECT_EQ(4, chainOfTree());
  EXPECT_EQ(15, chainOfTree(Said::Nothing));
  Environment chain("BAECHI_CUDA_GRAPHS", "chain");
  EXPECT_EQ(15, chainOfTree());
}

TEST(CudaBranches, ADriverThatCannotBeToldCapturesAChain) {
  NEEDS_THE_FAKE_DRIVER();
  auto loaded = cuda::loadApi();
  ASSERT_TRUE(loaded);
  auto &api = const_cast<cuda::Api &>(**loaded);
  const cuda::Api before = api;
  for (bool tells : {false, true}) {
    api.captureInfo = tells ? before.captureInfo : nullptr;
    api.setDependencies = tells ? nullptr : before.setDependencies;
    EXPECT_EQ(15, chainOfTree());
  }
  api = before;
}

TEST(CudaBranches, AReadThatIsNotSaidIsSeen) {
  NEEDS_THE_FAKE_DRIVER();
  arenasAfter(8 * bytes, tree(Said::OnlyWrites));
  std::string misuse = cudaMisuse();
  EXPECT_THAT(misuse, HasSubstr("kernel add_numbers reads what kernel "
                                "double_numbers writes, and nothing orders "
                                "the two"));
  resetCuda();
}

/// Four products, of a row each, into columns of one matrix, whose rows are so
/// long; then one that reads all of it.
int chainOfColumns(int64_t ld, int64_t apart) {
  arenasAfter(65536, [=](Context, char *arena) {
    auto *a = reinterpret_cast<float *>(arena), *c = a + 4096;
    baechi_cuda_product product = denseProduct(8, 8, 8);
    product.ld_c = ld;
    for (int64_t i = 0; i < 4; ++i)
      baechi_cuda_multiply(&product, a, a + 64, c + i * apart, nullptr, nullptr,
                           0);
    product.transpose_a = 1;
    product.m = product.ld_a = 64;
    product.k = 8;
    product.n = 4;
    product.ld_b = product.ld_c = 4;
    product.align_a = product.align_b = product.align_c = 4;
    baechi_cuda_multiply(&product, c, a, c + 4096, nullptr, nullptr, 0);
    return 0;
  });
  return fakeCudaLongestChain();
}

TEST(CudaBranches, ColumnsOfOneMatrixAreApart) {
  NEEDS_THE_FAKE_DRIVER();
  EXPECT_EQ(2, chainOfColumns(32, 8));
  // They share columns with the next one.
  EXPECT_EQ(5, chainOfColumns(32, 7));
}

/// Commands on random places of an arena, which overlap as they like.
Body randomBody(uint64_t seed, int64_t arena) {
  return [seed, arena](Context, char *memory) {
    std::mt19937_64 random(seed);
    auto draw = [&](int64_t below) {
      return int64_t(random() % uint64_t(below));
    };
    // Products' operands are of 16 x 16 numbers, their workspaces aligned.
    constexpr int64_t side = 16, square = side * side * 4, workspace = 1024;
    auto place = [&](int64_t size, int64_t alignment) {
      return memory + draw((arena - size) / alignment + 1) * alignment;
    };
    baechi_cuda_product product = denseProduct(side, side, side);
    product.workspace_bytes = workspace;
    baechi_cuda_product columns = denseProduct(side, 3, side);
    columns.ld_c = side;
    // Of the fake's algorithms the one that needs that.
    uint64_t algorithm[8] = {0x616c676f72697468, 1, workspace,
                             uint64_t(4) << 32 | 4, uint64_t(4) << 32 | 4};
    std::copy(std::begin(algorithm), std::end(algorithm), product.algorithm);
    for (int64_t command = 0, count = 5 + draw(40); command < count; ++command)
      switch (draw(9)) {
      case 8: {
        char *area = memory + draw((arena - 2 * square) / 4) * 4;
        baechi_cuda_multiply(&columns, area, area,
                             memory + arena - square + draw(side - 2) * 4,
                             nullptr, nullptr, int32_t(draw(2)));
        break;
      }
      case 0: {
        // From one half into the other one.
        char *from = memory + draw(arena / 8 - bytes / 4) * 4;
        char *to = memory + arena / 2 + draw(arena / 8 - bytes / 4) * 4;
        if (draw(2))
          std::swap(from, to);
        baechi_cuda_copy(to, from, size_t(1 + draw(bytes)));
        break;
      }
      case 1: {
        // Its result overlaps nothing else.
        char *own = memory + arena - square - workspace;
        char *area = memory + draw((arena - 3 * square - workspace) / 4) * 4;
        baechi_cuda_multiply(&product, area, area + square / 2, own, nullptr,
                             memory + arena - workspace, int32_t(draw(2)));
        break;
      }
      case 2:
        launch("double_numbers", {place(bytes, 4), place(bytes, 4)},
               {1, 1, uint32_t(Ring::count), 0}, Said::Nothing);
        break;
      case 3:
      case 4: {
        char *inPlace = place(bytes, 4);
        launch("double_numbers", {inPlace, inPlace});
        break;
      }
      default:
        launch("add_numbers",
               {place(bytes, 4), place(bytes, 4), place(bytes, 4)});
      }
    return 0;
  };
}

TEST(CudaBranches, RandomCommandsGiveWhatOneAfterTheOtherGives) {
  NEEDS_THE_FAKE_DRIVER();
  bool ranBesides = false;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    fakecuda::FakeOptions options;
    options.seed = seed;
    resetCuda(options);
    int64_t arena = 8192 * int64_t(1 + seed % 4);
    std::vector<std::vector<int32_t>> expected;
    {
      Environment off("BAECHI_CUDA_GRAPHS", "0");
      expected = arenasAfter(arena, randomBody(seed, arena));
      EXPECT_EQ(0, fakeCudaGraphLaunches());
    }
    int chain = 0;
    {
      Environment old("BAECHI_CUDA_GRAPHS", "chain");
      EXPECT_EQ(expected, arenasAfter(arena, randomBody(seed, arena)));
      chain = fakeCudaLongestChain();
    }
    EXPECT_EQ(expected, arenasAfter(arena, randomBody(seed, arena)));
    ranBesides |= fakeCudaLongestChain() < chain;
    EXPECT_GT(fakeCudaGraphLaunches(), 0);
    ASSERT_EQ("", cudaMisuse());
  }
  EXPECT_TRUE(ranBesides);
}

TEST(CudaBranches, TheFakeDriverSeesWrongUse) {
  NEEDS_THE_FAKE_DRIVER();
  auto loaded = cuda::loadApi();
  ASSERT_TRUE(loaded);
  const cuda::Api &api = **loaded;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  cuda::Graph graph = nullptr;
  ASSERT_EQ(cuda::success, api.primaryRetain(&context, 0));
  ASSERT_EQ(cuda::success, api.setCurrent(context));
  ASSERT_EQ(cuda::success, api.streamCreate(&stream, 1));
  int status = 0;
  const cuda::Node *nodes = nullptr;
  const cuda::EdgeData *edges = nullptr;
  size_t count = 0;
  auto info = [&] {
    return api.captureInfo(stream, &status, nullptr, nullptr, &nodes, &edges,
                           &count);
  };
  auto *foreign = reinterpret_cast<cuda::Node>(&status);
  EXPECT_NE(cuda::success, info());
  EXPECT_NE(cuda::success, api.setDependencies(stream, nullptr, nullptr, 0, 1));
  ASSERT_EQ(cuda::success, api.beginCapture(stream, cuda::captureThreadLocal));
  EXPECT_NE(cuda::success,
            api.setDependencies(stream, &foreign, nullptr, 1, 1));
  EXPECT_EQ(cuda::success, info());
  EXPECT_EQ(0u, count);
  ASSERT_EQ(cuda::success, api.endCapture(stream, &graph));
  EXPECT_EQ(cuda::success, api.graphDestroy(graph));
  EXPECT_EQ(cuda::success, api.streamDestroy(stream));
  // What later tests break must not be held here.
  EXPECT_EQ(cuda::success, api.primaryRelease(0));
  std::string misuse = cudaMisuse();
  for (const char *text : {"a capture is asked for that is not the thread's",
                           "a capture is told of that is not the thread's",
                           "a capture is told of other nodes than its own"})
    EXPECT_THAT(misuse, HasSubstr(text));
  resetCuda();
}

} // namespace
