//===- CudaReplay.h - Runs of commands as graphs -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A step asks for the same work every time. What a device asks for between two
/// points where its thread meets others (an offer, an await, the step's end) is
/// a run. The first step tells the stream each command as it comes, and
/// notes it. In the second, commands are compared with the notes and held back
/// until the run ends; then they are captured as a graph. Later steps compare
/// and launch the graph. A run that turns out different is told command by
/// command and noted anew: a graph never does what was not asked for.
///
/// The capture is one tight loop on the device's thread, over commands that
/// have run before: GPU code, plans and constants are there, so nothing in it
/// allocates or waits, and other threads are not in its way (thread-local
/// mode).
///
/// The stream would have each command follow the one before, as one chain. So
/// it is told, before each, which commands that one is in conflict with
/// (Baechi/Support/Conflicts.h): the GPU runs others at the same time. A run
/// begins when all that the stream was told before has ended, and has ended
/// before anything that it is told later begins; what devices hand each other
/// stands between runs. A driver that cannot be told captures a chain.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAREPLAY_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAREPLAY_H

#include "drivers/cuda/CudaCommands.h"

#include <string>
#include <utility>

namespace baechi::runtime::cuda {

class Replay {
public:
  /// `branches`: commands follow those that they are in conflict with, instead
  /// of the one before.
  Replay(CudaDevice &device, std::string name, bool branches)
      : device(device), name(std::move(name)), branches(branches) {}
  Replay(const Replay &) = delete;

  /// A step begins; what a failed one has left is forgotten.
  void begin();
  /// Takes one command.
  Problem add(std::span<const uint64_t> command);
  /// The run ends: all of it is on its way.
  Problem flush();
  /// Whether graphs were made since this was asked last.
  bool takeNews() { return std::exchange(hasNews, false); }
  /// Destroys the graphs, which have ended.
  void close();

private:
  struct Run {
    Words words;
    size_t commands = 0;
    GraphExec graph = nullptr;
    /// It could not be captured.
    bool eager = false;
  };
  void enter(size_t run);
  /// What is held back is told, and the run noted anew from there.
  Problem diverge(Run &run);
  void capture(Run &run);
  /// Tells the captured stream commands, and what each must follow.
  Problem tellBranches(std::span<const uint64_t> words);
  void forget(Run &run);

  CudaDevice &device;
  const std::string name;
  const bool branches;
  std::vector<Run> runs;
  size_t current = 0;
  /// Words of this run that were asked for in this step.
  size_t asked = 0;
  /// So far this run is as noted; nothing of it has been told.
  bool follows = false;
  bool noted = false;
  bool hasNews = false;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAREPLAY_H
