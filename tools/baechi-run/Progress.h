//===- Progress.h - A progress bar on the terminal -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_PROGRESS_H
#define BAECHI_TOOLS_BAECHI_RUN_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace baechi {

/// One line that is written over; silent when nobody watches.
class Progress {
public:
  explicit Progress(llvm::StringRef what)
      : what(what), shown(llvm::sys::Process::StandardErrIsDisplayed()) {}
  ~Progress() {
    if (drawn)
      llvm::errs() << "\r\033[K";
  }
  void operator()(size_t done, size_t total) {
    auto elapsed = std::chrono::steady_clock::now() - start;
    if (!shown || total == 0 || elapsed < std::chrono::milliseconds(500))
      return;
    drawn = true;
    size_t filled = 30 * done / total;
    llvm::errs() << '\r' << what << " [" << std::string(filled, '=')
                 << std::string(30 - filled, ' ') << "] " << done << '/'
                 << total;
  }

private:
  llvm::StringRef what;
  bool shown, drawn = false;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_PROGRESS_H
