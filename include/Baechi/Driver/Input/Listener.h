//===- Listener.h - Who is told what the driver does ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_LISTENER_H
#define BAECHI_DRIVER_INPUT_LISTENER_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

namespace baechi {

/// Is told of what a compilation or a run does. The driver prints nothing
/// itself: a tool writes lines, a notebook draws bars. Calls come from the
/// thread that called the driver, if nothing else is said.
class Listener {
public:
  virtual ~Listener() = default;

  /// Work named \p what begins and ends; phases do not overlap.
  virtual void begin(llvm::StringRef what) {}
  virtual void end(llvm::StringRef what) {}
  /// \p done of \p total parts of the phase \p what.
  virtual void progress(llvm::StringRef what, size_t done, size_t total) {}

  /// One line: what was measured, what a user should know, what did not work.
  virtual void tell(const llvm::Twine &line) {}
  virtual void note(const llvm::Twine &line) {}
  virtual void warn(const llvm::Twine &line) {}

  /// Where the compiler's diagnostics go, as text.
  virtual llvm::raw_ostream &diagnostics() { return llvm::nulls(); }
  /// The same, each by itself, before it is written there.
  virtual void diagnosed(const mlir::Diagnostic &diagnostic) {}

  /// Asked often, on any thread: once it says true, what runs ends soon with an
  /// error.
  virtual bool isStopped() { return false; }
};

/// A phase, from construction to destruction.
class Phase {
public:
  Phase(Listener &listener, llvm::StringRef what)
      : listener(listener), what(what) {
    listener.begin(what);
  }
  ~Phase() { listener.end(what); }
  Phase(const Phase &) = delete;
  Phase &operator=(const Phase &) = delete;

  void operator()(size_t done, size_t total) {
    listener.progress(what, done, total);
  }

private:
  Listener &listener;
  llvm::StringRef what;
};

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_LISTENER_H
