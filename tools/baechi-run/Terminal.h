//===- Terminal.h - What the driver does, on the terminal -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_TERMINAL_H
#define BAECHI_TOOLS_BAECHI_RUN_TERMINAL_H

#include "Baechi/Driver/Input/Listener.h"
#include "llvm/Support/Process.h"
#include <chrono>

namespace baechi {

/// Lines on the standard error; of a long phase a bar that is written over,
/// which nobody sees in a file. Or, for another program, a line each time:
/// `baechi-run: progress: PHASE [DONE/TOTAL]`.
class Terminal final : public Listener {
public:
  explicit Terminal(bool progressLines) : progressLines(progressLines) {}

  void begin(llvm::StringRef what) override {
    start = std::chrono::steady_clock::now();
    if (progressLines)
      llvm::errs() << "baechi-run: progress: " << what << '\n';
  }
  void end(llvm::StringRef) override {
    if (drawn)
      llvm::errs() << "\r\033[K";
    drawn = false;
  }
  void progress(llvm::StringRef what, size_t done, size_t total) override {
    if (progressLines) {
      llvm::errs() << "baechi-run: progress: " << what << ' ' << done << '/'
                   << total << '\n';
      return;
    }
    auto elapsed = std::chrono::steady_clock::now() - start;
    if (!shown || total == 0 || elapsed < std::chrono::milliseconds(500))
      return;
    drawn = true;
    size_t filled = 30 * done / total;
    llvm::errs() << '\r' << what << " [" << std::string(filled, '=')
                 << std::string(30 - filled, ' ') << "] " << done << '/'
                 << total;
  }
  void tell(const llvm::Twine &line) override { llvm::errs() << line << '\n'; }
  void note(const llvm::Twine &line) override {
    llvm::errs() << "baechi-run: note: " << line << '\n';
  }
  void warn(const llvm::Twine &line) override {
    llvm::errs() << "baechi-run: warning: " << line << '\n';
  }
  llvm::raw_ostream &diagnostics() override { return llvm::errs(); }

private:
  bool progressLines;
  bool shown = llvm::sys::Process::StandardErrIsDisplayed();
  bool drawn = false;
  std::chrono::steady_clock::time_point start;
};

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_TERMINAL_H
