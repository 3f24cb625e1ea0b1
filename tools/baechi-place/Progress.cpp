//===- Progress.cpp - What is going on --------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

Progress::Progress() : begin(std::chrono::steady_clock::now()) {
  if (isatty(fileno(stderr)))
    thread = std::thread([this] { loop(); });
}

Progress::~Progress() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  wake.notify_one();
  thread.join();
}

void Progress::show(const std::string &newPhase) {
  std::lock_guard lock(mutex);
  phase = newPhase;
}

void Progress::loop() {
  std::unique_lock lock(mutex);
  bool shown = false;
  auto delay = std::chrono::milliseconds(1000);
  while (!wake.wait_for(lock, delay, [this] { return stop; })) {
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    fmt::print(stderr, "\r\033[K{:.0f} s: {}", seconds.count(), phase);
    std::fflush(stderr);
    shown = true;
    delay = std::chrono::milliseconds(200);
  }
  if (shown)
    fmt::print(stderr, "\r\033[K");
}
