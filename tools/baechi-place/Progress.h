//===- Progress.h - What is going on, on a terminal -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_PROGRESS_H
#define BAECHI_TOOLS_BAECHI_PLACE_PROGRESS_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

/// Shows the phase and the seconds on stderr, from the first second on, when
/// stderr is a terminal; silent otherwise.
class Progress {
public:
  Progress();
  ~Progress();
  void show(const std::string &phase);

private:
  void loop();

  std::mutex mutex;
  std::condition_variable wake;
  std::string phase = "reading";
  std::chrono::steady_clock::time_point begin;
  bool stop = false;
  std::thread thread;
};

#endif // BAECHI_TOOLS_BAECHI_PLACE_PROGRESS_H
