//===- HostJit.h - Host code in memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_HOSTJIT_HOSTJIT_H
#define BAECHI_CONVERSION_HOSTJIT_HOSTJIT_H

#include "Baechi/Conversion/HostJit/CompileThreads.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace baechi {

struct HostJitOptions {
  /// Thread: the code reports its memory accesses to ThreadSanitizer, which the
  /// process must have been built with. (AddressSanitizer would see nothing:
  /// all buffers lie in one arena.)
  enum class Sanitizer { None, Thread };
  Sanitizer sanitizer = Sanitizer::None;

  /// Threads that compile. Every added module is compiled in as many parts.
  unsigned threads = 2;
  /// The threads, where others have work for them, too. Null: its own.
  std::shared_ptr<CompileThreads> workers;

  /// Functions that the code may call, by name: the runtime's. Those of the
  /// process (libm) and of gemmLibraries() are found without.
  llvm::StringMap<void *> symbols;

  /// A folder of compiled functions, made if it is missing. Empty: none.
  std::string store;

  /// The processor that the code is for, by LLVM's name; empty: this machine's.
  /// Code of another one is kept as objects, and none of it is to be run.
  std::string processor;

  /// Asked often, on any thread: once it says true, what is being compiled ends
  /// soon with an error. Empty: nobody stops it.
  std::function<bool()> stopped;

  /// Keep a copy of the relocatable code of all that is added (`objects`).
  bool keepObjects = false;
};

/// How a module is compiled.
struct HostCode {
  /// Quick: for code that is run through once a step, calls and no loops.
  enum class Effort { Best, Quick };
  Effort effort = Effort::Best;

  /// Names in the store (`HostJit::storeKey`) of the module's functions. They
  /// are added to it if every function that the module defines has one.
  llvm::StringMap<std::string> keys;
};

/// Compiles modules of the LLVM dialect for the machine that it runs on, and
/// keeps their code for as long as it lives. Not thread-safe; the code may run
/// on any thread.
class HostJit {
public:
  static llvm::Expected<std::unique_ptr<HostJit>>
  create(HostJitOptions options = {});
  ~HostJit();

  /// Compiles `module`. It must translate to LLVM IR
  /// (registerKernelDialects registers the translations), and define no
  /// symbol that was added before.
  llvm::Error add(mlir::ModuleOp module, const HostCode &code = {});
  /// The same in two steps: other threads go on compiling what was begun, of
  /// any number of modules, until it is finished, which adds their code.
  llvm::Error begin(mlir::ModuleOp module, const HostCode &code = {});
  llvm::Error finish();

  /// The name in the store of what this compiler makes of `text` for this host.
  std::string storeKey(llvm::StringRef text) const;
  /// Adds the function that the store has under that name; false when it has
  /// none that is as it was written.
  llvm::Expected<bool> addStored(llvm::StringRef key);
  /// What was wrong with the store since the last call, a line each.
  std::string takeStoreWarnings();
  /// The same as warnings at \p location.
  void warnOfStore(mlir::Location location);

  /// Adds relocatable code that another HostJit kept, for a processor like this
  /// one.
  llvm::Error addObject(llvm::StringRef object);

  /// The address of a symbol of the added modules.
  llvm::Expected<void *> lookup(llvm::StringRef name);

  /// The added modules' code, position-independent, when it is kept.
  llvm::SmallVector<llvm::MemoryBufferRef> objects() const;

  /// The extensions of the instruction set that code may use, by the names that
  /// the system has for them (/proc/cpuinfo): "avx2", "avx512_bf16".
  std::vector<std::string> extensions() const;
  bool isForThisHost() const;

  /// A thread was left behind in the code: it stays when this ends.
  void keepForGood();

  /// What code is compiled for: the processor's name and its vector extensions,
  /// for example "znver4+avx2+avx512f".
  static std::string hostTarget();

private:
  struct Implementation;
  explicit HostJit(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace baechi

#endif // BAECHI_CONVERSION_HOSTJIT_HOSTJIT_H
