//===- TemporaryFolder.cpp - A folder that does not stay ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/TemporaryFolder.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <system_error>

#include <unistd.h>

using namespace baechi::placement;

namespace {

constexpr int endings[] = {SIGHUP, SIGINT, SIGTERM};

std::mutex mutex;
int living = 0; // Folders; guarded by the mutex, as is `before`.
struct sigaction before[std::size(endings)];
volatile std::sig_atomic_t came = 0;

void keep(int signal) { came = signal; }

void beginWaiting() {
  std::lock_guard lock(mutex);
  if (living++ > 0)
    return;
  came = 0;
  struct sigaction waits = {};
  waits.sa_handler = keep;
  waits.sa_flags = SA_RESTART;
  sigemptyset(&waits.sa_mask);
  for (size_t i = 0; i < std::size(endings); ++i) {
    ::sigaction(endings[i], nullptr, &before[i]);
    // What the process was told to ignore, it still ignores.
    if (before[i].sa_handler != SIG_IGN)
      ::sigaction(endings[i], &waits, nullptr);
  }
}

void endWaiting() {
  int raised = 0;
  {
    std::lock_guard lock(mutex);
    if (--living > 0)
      return;
    for (size_t i = 0; i < std::size(endings); ++i)
      ::sigaction(endings[i], &before[i], nullptr);
    raised = came;
  }
  if (raised)
    ::raise(raised);
}

} // namespace

TemporaryFolder::TemporaryFolder(const std::string &name) {
  beginWaiting();
  std::error_code failed;
  std::filesystem::path around = std::filesystem::temp_directory_path(failed);
  if (failed) {
    why = "cannot make a temporary folder: TMPDIR names none: " +
          failed.message();
    return;
  }
  std::string made = (around / (name + "-XXXXXX")).string();
  if (::mkdtemp(made.data()))
    path = std::move(made);
  else
    why = "cannot make a temporary folder in " + around.string() + ": " +
          std::strerror(errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (why.empty())
    std::filesystem::remove_all(path, ignored);
  endWaiting();
}
