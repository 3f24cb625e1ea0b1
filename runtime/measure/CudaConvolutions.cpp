//===- CudaConvolutions.cpp - Convolutions' fastest code ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaConvolutions.h"
#include "Baechi/Runtime/Abi.h"
#include "core/Exchange.h"
#include "drivers/cuda/CudaStopwatch.h"
#include "measure/SearchTools.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

// What is timed is a program of one device, whose operator i times convolution
// i in the device's arena.

double baechi::runtime::toleranceOf(const Convolution &convolution) {
  // Products of rounded factors err by as much as these, sums by less.
  if (convolution.type == BAECHI_CUDA_BF16)
    return 0x1p-6;
  if (convolution.type == BAECHI_CUDA_F16 ||
      convolution.math != BAECHI_CUDA_MATH_FP32)
    return 0x1p-8;
  return 0x1p-14;
}

namespace {
/// Where the arguments, the result and the scratch lie.
std::vector<int64_t> placesOf(const ConvolutionCandidate &candidate) {
  std::vector<int64_t> places{0};
  for (int64_t bytes : candidate.argumentBytes)
    places.push_back(places.back() + alignForSearch(bytes));
  places.push_back(places.back() + alignForSearch(candidate.resultBytes));
  places.push_back(places.back() + alignForSearch(candidate.scratchBytes));
  return places;
}

double loadNumber(const char *at, int64_t type, size_t index) {
  if (type == BAECHI_CUDA_F32) {
    float number;
    std::memcpy(&number, at + 4 * index, sizeof(number));
    return number;
  }
  uint16_t bits;
  std::memcpy(&bits, at + 2 * index, sizeof(bits));
  if (type == BAECHI_CUDA_BF16)
    return std::bit_cast<float>(uint32_t(bits) << 16);
  int exponent = bits >> 10 & 31;
  double fraction = bits & 1023;
  double size = exponent == 0    ? std::ldexp(fraction, -24)
                : exponent == 31 ? (fraction > 0 ? NAN : INFINITY)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

class Search {
public:
  Search(std::span<const ConvolutionCandidate> candidates,
         const ProductSearchOptions &options)
      : candidates(candidates), options(options), found(candidates.size()) {}

  int32_t run(baechi_context *context, char *arena,
              const std::function<void(size_t)> &progress);

  const std::span<const ConvolutionCandidate> candidates;
  const ProductSearchOptions options;
  std::vector<ConvolutionTimes> found;

private:
  Problem search(CudaDevice &device, Stopwatch &watch,
                 const ConvolutionCandidate &candidate, char *arena,
                 ConvolutionTimes &times);
  Problem readResult(CudaDevice &device, const ConvolutionCandidate &candidate,
                     const void *from, std::vector<char> &to);
};
} // namespace

int32_t Search::run(baechi_context *context, char *arena,
                    const std::function<void(size_t)> &progress) {
  CudaDevice &device = *currentDevice;
  Stopwatch watch(device);
  Problem problem = watch.open();
  for (size_t i = 0; i < candidates.size() && !problem; ++i) {
    baechi_operator_begin(context, int32_t(i));
    problem = search(device, watch, candidates[i], arena, found[i]);
    device.useEngine(nullptr);
    if (!problem)
      baechi_operator_end(context, int32_t(i));
    progress(i + 1);
  }
  watch.close();
  if (!problem)
    return 0;
  return context->exchange.fail(*context, {problem.reason, problem.detail});
}

Problem Search::readResult(CudaDevice &device,
                           const ConvolutionCandidate &candidate,
                           const void *from, std::vector<char> &to) {
  const char *what = "the result of a convolution cannot be read";
  to.resize(size_t(candidate.resultBytes));
  Problem problem =
      device.check(device.api().memcpyToHost(
                       to.data(), reinterpret_cast<DevicePointer>(from),
                       to.size(), device.computeStream()),
                   what);
  return problem ? problem : device.check(device.awaitStream(), what);
}

/// Whether results are as near to each other as they must be.
static bool areNear(const Convolution &convolution,
                    const std::vector<char> &expected,
                    const std::vector<char> &got) {
  size_t count =
      expected.size() / (convolution.type == BAECHI_CUDA_F32 ? 4 : 2);
  double largest = 0, away = 0;
  for (size_t i = 0; i < count; ++i) {
    double number = loadNumber(expected.data(), convolution.type, i);
    double other = loadNumber(got.data(), convolution.type, i);
    largest = std::max(largest, std::abs(number));
    // Not a number is away from all.
    if (!(std::abs(number - other) <= away))
      away = std::isnan(other) ? INFINITY : std::abs(number - other);
  }
  return away <= toleranceOf(convolution) * largest;
}

Problem Search::search(CudaDevice &device, Stopwatch &watch,
                       const ConvolutionCandidate &candidate, char *arena,
                       ConvolutionTimes &times) {
  const Convolution &convolution = candidate.convolution;
  std::vector<int64_t> places = placesOf(candidate);
  std::vector<void *> pointers;
  for (size_t i = 0; i + 1 < places.size(); ++i)
    pointers.push_back(arena + places[i]);
  void *result = pointers[candidate.argumentBytes.size()];
  void *scratch = pointers.back();
  Problem problem = fillNumbers(device, convolution.type, arena,
                                places[candidate.argumentBytes.size()]);

  // The generated code is the first way, engines are the others.
  std::vector<EngineProposal> proposals;
  auto work = [&](size_t way) {
    return [&, way](bool) -> Problem {
      device.useEngine(way > 0 ? &proposals[way - 1].engine : nullptr);
      (way > 0 ? candidate.library : candidate.generated)(pointers.data());
      return {};
    };
  };
  std::vector<char> expected, got;
  if (!problem)
    problem = work(0)(false);
  if (!problem)
    problem = readResult(device, candidate, result, expected);
  if (problem)
    return problem;

  std::vector<EngineProposal> proposed;
  // Where it has none, generated code it is.
  static_cast<void>(bool(device.dnn().propose(
      convolution, size_t(options.mostAlgorithms), proposed)));
  for (const EngineProposal &proposal : proposed) {
    Convolution asked = convolution;
    std::copy(proposal.engine.begin(), proposal.engine.end(), asked.engine);
    // What cannot run here is no failure of the search.
    if (device.dnn().convolve(
            asked,
            {pointers[candidate.a], pointers[candidate.b], result, scratch},
            device.computeStream()))
      continue;
    proposals.push_back(proposal);
    problem = work(proposals.size())(false);
    if (!problem)
      problem = readResult(device, candidate, result, got);
    if (problem)
      return problem;
    if (!areNear(convolution, expected, got))
      proposals.pop_back();
  }

  std::vector<Stopwatch::Repeats> repeats(1 + proposals.size());
  for (size_t i = 0; i < repeats.size() && !problem; ++i)
    problem = watch.prepare(work(i), /*warmUps=*/2, repeats[i]);
  // In turn, so that what else the machine does meets all.
  std::vector<std::vector<double>> samples(repeats.size());
  for (int32_t sample = 0; sample < options.samples; ++sample)
    for (size_t i = 0; i < repeats.size() && !problem; ++i)
      problem = watch.sample(work(i), repeats[i], samples[i].emplace_back());
  for (Stopwatch::Repeats &each : repeats)
    watch.release(each);
  if (problem)
    return problem;
  times.generated = summarize(samples[0]);
  for (size_t i = 0; i < proposals.size(); ++i) {
    CodeTime time = summarize(samples[1 + i]);
    // Of equals the library's favourite.
    if (i > 0 && time.medianNs >= times.library.medianNs)
      continue;
    times.library = time;
    times.engine = proposals[i].engine;
    times.workspaceBytes = proposals[i].workspaceBytes;
  }
  return {};
}

Expected<std::vector<ConvolutionTimes>> baechi::runtime::searchCudaConvolutions(
    std::span<const ConvolutionCandidate> convolutions,
    const ProductSearchOptions &options, std::function<void(size_t)> progress) {
  if (options.mostAlgorithms < 1 || options.samples < 1)
    return Error("convolutions are timed with at least one engine and sample");
  Program program = searchProgram();
  DeviceInfo &device = program.devices.front();
  for (const ConvolutionCandidate &each : convolutions) {
    device.operators.push_back({each.name, "", 0, 0});
    device.arenaBytes = std::max(device.arenaBytes, placesOf(each).back());
  }
  device.memory = device.arenaBytes;
  Search search(convolutions, options);
  if (Error error =
          runSearch(program, [&](baechi_context *context, char *arena) {
            return search.run(context, arena, progress);
          }))
    return error;
  return std::move(search.found);
}

Expected<int64_t> baechi::runtime::cudnnVersion() {
  Expected<const DnnApi *> api = loadDnnApi();
  if (!api)
    return api.takeError();
  return int64_t((*api)->version());
}
