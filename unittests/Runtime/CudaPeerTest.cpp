//===- CudaPeerTest.cpp - Messages between GPUs ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"
#include "CudaPrograms.h"
#include "LargeMessage.h"
#include "Sanitized.h"
#include "drivers/cuda/CudaStaging.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// How two GPUs are connected, and whether messages go through the host then.
struct Topology {
  const char *name;
  int gpus;
  bool peerAccess;
  int peerError;
  bool staged;

  friend void PrintTo(const Topology &value, std::ostream *os) {
    *os << value.name;
  }
};

class CudaPeerTest : public testing::TestWithParam<Topology> {
protected:
  void SetUp() override {
    if (!usesFakeCuda())
      GTEST_SKIP() << "the GPUs are connected as they are";
  }

  static void reset(uint64_t seed) {
    fakecuda::FakeOptions options;
    options.seed = seed;
    options.devices = GetParam().gpus;
    options.peerAccess = GetParam().peerAccess;
    options.peerError = GetParam().peerError;
    resetCuda(options);
  }
};

TEST_P(CudaPeerTest, ARingGivesTheRightNumbers) {
  for (const std::vector<std::string> &kinds :
       {std::vector<std::string>{"cuda", "cuda"},
        {"cuda", "host", "cuda"},
        {"cuda", "cuda", "cuda", "cuda"}})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(seed);
      reset(seed);
      Ring ring(kinds);
      auto session = makeSession(ring.program, ring.bodies());
      ASSERT_TRUE(session);
      for (int64_t step = 0; step < 4; ++step)
        ring.stepsRight(*session, step);
      // Two halves of a message for each queue between two GPUs, which the
      // CUDA devices share in blocks.
      int64_t staged = 0;
      auto cudas = std::count(kinds.begin(), kinds.end(), "cuda");
      auto gpuOf = [&](int32_t device) {
        auto ordinal =
            std::count(kinds.begin(), kinds.begin() + device, "cuda");
        return ordinal * GetParam().gpus / cudas;
      };
      for (const QueueInfo &queue : ring.program.queues)
        if (kinds[size_t(queue.from)] == "cuda" &&
            kinds[size_t(queue.to)] == "cuda" && GetParam().staged &&
            gpuOf(queue.from) != gpuOf(queue.to))
          staged += 2 * queue.messages.front().bytes;
      EXPECT_EQ(staged, session->stagingBytes());
      session.reset();
      ASSERT_EQ("", cudaMisuse());
    }
}

/// A message of several pieces, the last one short, and one without bytes.
TEST_P(CudaPeerTest, LargeAndEmptyMessages) {
  const int64_t bytes = 5 * cuda::Staging::mostPieceBytes / 2 + 12;
  reset(3);
  Program program = makeProgram(2, bytes);
  for (DeviceInfo &device : program.devices)
    device.kind = "cuda";
  addQueue(program, 0, 1, {bytes, 0, bytes});
  addArgument(program, 0, 0, bytes);
  addResult(program, 1, 0, bytes);
  auto session = makeSession(
      program, {[](Context context, char *arena) {
                  for (int32_t seq = 0; seq < 3; ++seq)
                    if (int32_t stop = sendAndWait(context, 0, seq, arena))
                      return stop;
                  return 0;
                },
                [](Context context, char *arena) {
                  for (int32_t seq = 0; seq < 3; ++seq)
                    if (int32_t stop = recvAndWait(context, 0, seq, arena))
                      return stop;
                  return 0;
                }});
  ASSERT_TRUE(session);
  EXPECT_EQ(GetParam().staged ? 2 * cuda::Staging::mostPieceBytes : 0,
            session->stagingBytes());
  for (int step = 0; step < 2; ++step) {
    std::vector<char> values(static_cast<size_t>(bytes)), got(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = char(i * 31 + i / 977 + size_t(step));
    ASSERT_SUCCESS(session->setArgument(0, values.data(), values.size()));
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getResult(0, got.data(), got.size()));
    EXPECT_TRUE(values == got);
    for (const CopyRecord &copy : session->timeline().queues[0])
      EXPECT_TRUE(copy.happened());
  }
}

/// Seconds each: once for each way that messages go.
class CudaLargeMessageTest : public CudaPeerTest {};

/// More than 31 bits can count, in one message.
TEST_P(CudaLargeMessageTest, OfMoreThan2GiB) {
  if (BAECHI_SANITIZED)
    GTEST_SKIP() << "a sanitizer's shadow of it takes 10 GiB and minutes";
  if (queryHost().memoryBytes < 4 * LargeMessage::bytes)
    GTEST_SKIP() << "this machine has no memory for two devices of 2 GiB";
  fakecuda::FakeOptions options;
  options.devices = GetParam().gpus;
  options.peerAccess = GetParam().peerAccess;
  options.peerError = GetParam().peerError;
  options.memoryBytes = size_t(3 * LargeMessage::bytes);
  resetCuda(options);
  // Gigabytes that are zeroed and copied on a busy machine are nothing stuck.
  SessionOptions patient;
  patient.watchdogSeconds = 0;
  Program program = LargeMessage::program();
  auto session = makeSession(program, LargeMessage::bodies(), patient);
  ASSERT_TRUE(session);
  LargeMessage::arrives(*session);
}

const Topology topologies[] = {
    {"OneGpu", 1, false, 0, false},
    {"PeerAccess", 2, true, 0, false},
    {"NoPeerAccess", 2, false, 0, true},
    {"TooManyPeers", 2, true, cuda::tooManyPeers, true},
};
INSTANTIATE_TEST_SUITE_P(Topologies, CudaPeerTest,
                         testing::ValuesIn(topologies),
                         [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Ways, CudaLargeMessageTest,
                         testing::Values(topologies[0], topologies[2]),
                         [](const auto &info) { return info.param.name; });

TEST(CudaPeers, AccessThatCannotBeEnabled) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "only the fake driver can be made to do this";
  fakecuda::FakeOptions options;
  options.devices = 2;
  options.peerError = 999;
  resetCuda(options);
  EXPECT_THAT(creationError(Ring({"cuda", "cuda"})),
              AllOf(HasSubstr("queue 0 (cuda0 to cuda1): access to another "
                              "GPU cannot be enabled: CUDA_ERROR_UNKNOWN")));
}

/// The shortest time of a copy between two allocations, by the driver alone.
float plainMilliseconds(size_t bytes) {
  const cuda::Api &api = **cuda::loadApi();
  int gpus = 0;
  api.deviceGetCount(&gpus);
  cuda::Context contexts[2] = {};
  cuda::DevicePointer memory[2] = {};
  for (int i : {0, 1}) {
    api.primaryRetain(&contexts[i], i % gpus);
    api.setCurrent(contexts[i]);
    EXPECT_EQ(cuda::success, api.memAlloc(&memory[i], bytes));
  }
  if (gpus > 1)
    api.enablePeerAccess(contexts[0], 0); // Where it cannot be, so be it.
  cuda::Stream stream = nullptr;
  cuda::Event begin = nullptr, end = nullptr;
  api.streamCreate(&stream, cuda::streamNonBlocking);
  api.eventCreate(&begin, cuda::eventDefault);
  api.eventCreate(&end, cuda::eventDefault);
  float best = 0, time = 0;
  for (int i = 0; i < 10; ++i) {
    api.eventRecord(begin, stream);
    EXPECT_EQ(cuda::success,
              api.memcpyAsync(memory[1], memory[0], bytes, stream));
    api.eventRecord(end, stream);
    api.synchronize();
    api.eventElapsed(&time, begin, end);
    best = i == 0 ? time : std::min(best, time);
  }
  api.eventDestroy(begin);
  api.eventDestroy(end);
  api.streamDestroy(stream);
  for (int i : {1, 0}) {
    api.setCurrent(contexts[i]);
    api.memFree(memory[i]);
    api.primaryRelease(i % gpus);
  }
  return best;
}

/// How fast messages are beside plain copies; benchmarks/gpu/run.sh shows it.
TEST(CudaPeers, Bandwidth) {
  if (usesFakeCuda())
    GTEST_SKIP() << "what the fake driver takes says nothing";
  for (int64_t bytes : {int64_t(4) << 20, int64_t(64) << 20}) {
    Program program = makeProgram(2, bytes);
    for (DeviceInfo &device : program.devices)
      device.kind = "cuda";
    addQueue(program, 0, 1, {bytes});
    auto session =
        makeSession(program, {[](Context context, char *arena) {
                                return sendAndWait(context, 0, 0, arena);
                              },
                              [](Context context, char *arena) {
                                return recvAndWait(context, 0, 0, arena);
                              }});
    ASSERT_TRUE(session);
    int64_t best = 0;
    for (int step = 0; step < 10; ++step) {
      ASSERT_SUCCESS(session->step());
      int64_t time = session->timeline().queues[0][0].durationNs();
      best = step == 0 ? time : std::min(best, time);
    }
    int64_t staged = session->stagingBytes();
    session.reset();
    auto rate = [&](double ns) { return double(bytes) / std::max(ns, 1.0); };
    double plain = plainMilliseconds(size_t(bytes)) * 1e6;
    std::printf("a message of %lld MiB between two devices%s: %.1f GB/s; a "
                "plain copy: %.1f GB/s\n",
                static_cast<long long>(bytes >> 20),
                staged ? ", through the host" : "", rate(double(best)),
                rate(plain));
    std::printf("goal: messages of %lld MiB at 90 %% of a plain copy: %s\n",
                static_cast<long long>(bytes >> 20),
                rate(double(best)) >= 0.9 * rate(plain) ? "reached" : "missed");
  }
}

/// The fake driver sees what the tests above rely on.
TEST(CudaPeers, ACopyWithoutAccessIsFound) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "a driver may stage the copy itself";
  fakecuda::FakeOptions options;
  options.devices = 2;
  resetCuda(options);
  auto loaded = cuda::loadApi();
  ASSERT_TRUE(loaded);
  const cuda::Api &api = **loaded;
  cuda::Context contexts[2] = {};
  cuda::DevicePointer memory[2] = {};
  for (int i : {0, 1}) {
    ASSERT_EQ(cuda::success, api.primaryRetain(&contexts[i], i));
    ASSERT_EQ(cuda::success, api.setCurrent(contexts[i]));
    ASSERT_EQ(cuda::success, api.memAlloc(&memory[i], 64));
  }
  cuda::Stream stream = nullptr;
  ASSERT_EQ(cuda::success, api.streamCreate(&stream, 1));
  EXPECT_NE(cuda::success, api.memcpyAsync(memory[1], memory[0], 64, stream));
  EXPECT_EQ(cuda::success, api.enablePeerAccess(contexts[0], 0));
  EXPECT_EQ(cuda::peerAlreadyEnabled, api.enablePeerAccess(contexts[0], 0));
  EXPECT_EQ(cuda::success, api.memcpyAsync(memory[1], memory[0], 64, stream));
  EXPECT_EQ(cuda::success, api.synchronize());
  EXPECT_THAT(cudaMisuse(), HasSubstr("a copy of GPU 1 uses memory of GPU 0 "
                                      "without access to it"));
  resetCuda();
}

} // namespace
