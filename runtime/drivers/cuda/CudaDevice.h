//===- CudaDevice.h - One logical CUDA device -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDADEVICE_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDADEVICE_H

#include "core/Driver.h"
#include "drivers/cuda/CudaApi.h"
#include "drivers/cuda/CudaBlas.h"
#include "drivers/cuda/CudaCommands.h"
#include "drivers/cuda/CudaContexts.h"
#include "drivers/cuda/CudaModules.h"
#include "drivers/cuda/CudaNvtx.h"
#include "drivers/cuda/CudaOverhead.h"
#include "drivers/cuda/CudaRepeats.h"
#include "drivers/cuda/CudaReplay.h"

#include <atomic>
#include <map>
#include <utility>
#include <vector>

namespace baechi::runtime::cuda {

/// Where a step begins: on the device's clock, and since the step's start on
/// the host's.
struct StepOrigin {
  Event event = nullptr;
  int64_t hostNs = 0;
};

class CudaDevice final : public Driver, public OperatorMarks {
public:
  CudaDevice(const DeviceInfo &device, Entry entry, const Share &share);
  ~CudaDevice() override;

  Error start() override;
  void rehearse(baechi_context &context) override;
  int32_t run(baechi_context *context) override;
  void repeatOperators() override {
    repeater = std::make_unique<Repeater>(*this, begins.size());
  }
  Error write(int64_t offset, const void *data, size_t bytes) override;
  Error read(int64_t offset, void *data, size_t bytes) const override;
  /// Takes memory of its GPU.
  Expected<bool> lend(const CallerMemory &memory) override;
  void forgetLent() override {
    lent.clear();
    endsLater = false;
  }
  /// Marks of times are read at the end of a step.
  bool endLater() override {
    endsLater = !blocking && !repeater;
    return endsLater;
  }
  void *takeEnd() override { return std::exchange(laterEnd, nullptr); }
  Expected<std::unique_ptr<Mover>>
  connect(Driver &other, bool otherSends,
          const std::vector<MessageInfo> &messages) override;
  bool usable() const override { return !lost.load(std::memory_order_acquire); }
  int64_t besideArena() const override { return overhead.bytes(); }

  Problem begin(int32_t op, bool timed) override;
  Problem end(int32_t op, bool timed) override;
  Problem flush() override;

  // For what belongs to the device: movers, launches.

  const Api &api() const { return *functions; }
  Stream computeStream() const { return stream; }
  Problem makeCurrent() const;
  Result select() const { return functions->setCurrent(context.get()); }
  /// Selects the device on a thread of the program, which may use CUDA itself.
  Selection hold() const { return {*functions, context.get()}; }
  /// The GPU's number among those that the process sees.
  int gpu() const { return ordinal; }
  /// Whether both lie on one GPU, so that each reads what the other writes.
  bool sharesMemoryWith(const CudaDevice &other) const {
    return context.get() == other.context.get();
  }
  /// Lets this device's copies reach the memory of `peer`; false where that is
  /// a GPU that this one cannot reach.
  Expected<bool> reach(const CudaDevice &peer);
  /// The time of two events of this device, ns since the step's start.
  Interval between(Event begin, Event end) const;
  Modules &modules() { return images; }
  Blas &blas() { return products; }
  Dnn &dnn() { return convolutions; }
  /// Has convolutions computed by that engine, whatever they name; by what they
  /// name where it is null.
  void useEngine(const Engine *engine) { triedEngine = engine; }
  const Engine *engine() const { return triedEngine; }
  /// Work for the compute stream: done now, or with what follows it.
  template <typename... Parts> Problem command(const Parts &...parts) {
    describe(words, parts...);
    if (rehearses)
      return prepare(*this, words);
    if (repeats && repeater->holdsBack()) {
      repeater->add(words);
      return {};
    }
    return replays ? replay.add(words) : perform(*this, words);
  }
  /// Room for the addresses of a kernel's parameters.
  void **parameterPlaces(size_t count) {
    if (places.size() < count)
      places.resize(count);
    return places.data();
  }
  /// Copies a constant of the program to its place, if that was not done.
  Problem constant(void *place, const void *data, size_t bytes);
  /// The problem of a call on the device's work. What a kernel did wrong ends
  /// the device: no later call of its context succeeds.
  Problem check(Result result, const char *what);
  /// Copies of the host's memory, which must stay as it is until the compute
  /// stream has come to the copy: every copy is that stream's, as no other one
  /// waits for the legacy stream.
  Result copyIn(DevicePointer to, const void *from, size_t bytes) const {
    return functions->memcpyToDevice(to, from, bytes, stream);
  }
  /// Waits until the compute stream has done all that it was told.
  Result awaitStream() const;

private:
  /// Waits until the device has done what it was told.
  Problem drain(const char *what);
  Problem markEnd(int32_t op, bool timed);
  void recordTimes(baechi_context &context) const;
  Result clearArena() const;
  /// An error where the arenas of all devices of the program on this GPU, of
  /// whatever process, are more than the GPU has.
  Error checkShared(int gpus) const;
  /// Copies between the arena, at `offset`, and the caller's memory, which may
  /// be this GPU's, too, as the tensors of other code are: then nothing goes
  /// through the host.
  Error exchange(int64_t offset, void *memory, size_t bytes, bool in) const;
  /// Whether memory is this GPU's; an error where it is another one's.
  Expected<bool> isHere(DevicePointer memory) const;
  /// Tells the stream the copies of what the caller lends, that way.
  Problem moveLent(bool in);
  /// The device's part of a step, up to the last command.
  int32_t compute(baechi_context &context);
  /// Copies results to where the caller lends memory for them, and waits.
  int32_t giveResults(baechi_context &context);
  /// Tells the stream the same, and whoever works on the legacy stream to wait
  /// for it; does not wait.
  int32_t giveResultsLater(baechi_context &context);

  const int64_t arenaBytes;
  const Entry entry;
  const Share share;
  const bool blocking;
  /// Null: none are wanted.
  const std::unique_ptr<Ranges> ranges;
  /// Whether steps without a timeline are replayed.
  const bool usesGraphs;
  /// This step is.
  bool replays = false;
  /// The operators of this step are repeated.
  bool repeats = false;
  /// Commands are prepared instead of done.
  bool rehearses = false;
  const Api *functions = nullptr;
  Device device = 0;
  int ordinal = 0;
  ContextUse context;
  Overhead overhead;
  DevicePointer arena = 0;
  Stream stream = nullptr;
  Event finish = nullptr;
  StepOrigin origin;
  std::vector<Event> begins, ends;
  Modules images;
  Blas products;
  Dnn convolutions;
  const Engine *triedEngine = nullptr;
  struct Constant {
    const void *data;
    size_t bytes;
  };
  /// By their places in the arena.
  std::map<DevicePointer, Constant> constants;
  /// Of the next step.
  std::vector<CallerMemory> lent;
  /// The next step is not waited for; and where that one ends.
  bool endsLater = false;
  Event laterEnd = nullptr;
  Replay replay;
  /// Null: operators are not repeated.
  std::unique_ptr<Repeater> repeater;
  Words words;
  std::vector<void *> places;
  std::atomic<bool> lost{false};
};

/// The device whose step function the calling thread runs; null elsewhere.
extern thread_local CudaDevice *currentDevice;

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDADEVICE_H
