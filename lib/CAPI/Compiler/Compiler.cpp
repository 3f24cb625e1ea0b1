//===- Compiler.cpp - Compiling steps from C -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi-c/Compiler.h"
#include "Baechi/Conversion/HostJit/ObjectStore.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/Transform.h"
#include "Baechi/Driver/Steps/EmitLibrary.h"
#include "llvm/ADT/ScopeExit.h"
#include <cfenv>

using namespace mlir;
using namespace baechi;

namespace {
/// file:line:column where a location has one, else its name.
std::string placeOf(Location loc) {
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return placeOf(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location each : fused.getLocations())
      if (std::string place = placeOf(each); !place.empty())
        return place;
    return "";
  }
  if (auto named = dyn_cast<NameLoc>(loc)) {
    std::string place = placeOf(named.getChildLoc());
    return place.empty() ? named.getName().str() : place;
  }
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) +
            ":" + llvm::Twine(file.getColumn()))
        .str();
  return "";
}

BaechiSeverity severityOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return BaechiNote;
  case DiagnosticSeverity::Remark:
    return BaechiRemark;
  case DiagnosticSeverity::Warning:
    return BaechiWarning;
  case DiagnosticSeverity::Error:
    return BaechiError;
  }
  llvm_unreachable("all severities are named");
}

/// The driver's listener for C's.
class CListener final : public Listener {
public:
  /// \p tool: the program that would write the same.
  CListener(StringRef tool, const BaechiCompileListener *told)
      : tool(tool), told(told ? *told : BaechiCompileListener()) {}
  ~CListener() override { flush(); }

  void begin(StringRef what) override { progress(what, 0, 0); }
  void progress(StringRef what, size_t done, size_t total) override {
    flush();
    if (told.phase)
      told.phase(told.user, what.str().c_str(), done, total);
  }
  void tell(const Twine &line) override { say(BaechiRemark, line, ""); }
  void note(const Twine &line) override {
    say(BaechiNote, line, tool + ": note: ");
  }
  void warn(const Twine &line) override {
    say(BaechiWarning, line, tool + ": warning: ");
  }
  void fail(const Twine &line) { say(BaechiError, line, tool + ": error: "); }

  raw_ostream &diagnostics() override { return stream; }
  void diagnosed(const Diagnostic &diagnostic) override {
    hasFailed |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (!told.said)
      return;
    told.said(told.user, severityOf(diagnostic.getSeverity()),
              placeOf(diagnostic.getLocation()).c_str(),
              diagnostic.str().c_str());
    for (const Diagnostic &note : diagnostic.getNotes())
      told.said(told.user, BaechiNote, placeOf(note.getLocation()).c_str(),
                note.str().c_str());
  }

  bool isStopped() override { return told.stopped && told.stopped(told.user); }
  /// Whether an error was said.
  bool failed() const { return hasFailed; }

private:
  void say(BaechiSeverity severity, const Twine &line, const Twine &before) {
    hasFailed |= severity == BaechiError;
    flush();
    if (told.said)
      told.said(told.user, severity, "", line.str().c_str());
    if (told.wrote)
      told.wrote(told.user, (before + line + "\n").str().c_str());
  }
  void flush() {
    if (!text.empty() && told.wrote)
      told.wrote(told.user, text.c_str());
    text.clear();
  }

  StringRef tool;
  BaechiCompileListener told;
  std::string text;
  llvm::raw_string_ostream stream{text};
  bool hasFailed = false;
};

llvm::Error compile(DriverOptions options, ArrayRef<const char *> words,
                    const char *file, Listener &listener) {
  for (StringRef word : words)
    if (word.consume_front("first-values="))
      options.firstValues = word;
    else if (llvm::Error error = setOption(options, word))
      return error;
  if (llvm::Error error = checkOptions(options))
    return error;
  if (llvm::Error error = checkWritable(file))
    return error;
  llvm::Expected<placement::Machine> machine = readMachine(options.machine);
  if (!machine)
    return machine.takeError();
  return emitLibrary(std::move(options), std::move(*machine), file, listener);
}

/// Runs \p work, and tells of its error, in the C standard's floating-point
/// environment, whatever the caller set: constants are folded.
BaechiCompileEnd run(CListener &listener,
                     llvm::function_ref<llvm::Error()> work) {
  std::fenv_t environment;
  std::feholdexcept(&environment);
  std::fesetenv(FE_DFL_ENV);
  auto restore = llvm::scope_exit([&] { std::fesetenv(&environment); });

  llvm::Error error = work();
  if (!error)
    return listener.isStopped() ? BaechiStopped : BaechiCompiled;
  llvm::handleAllErrors(
      std::move(error), [](const DiagnosedError &) {},
      [&](const llvm::ErrorInfoBase &info) { listener.fail(info.message()); });
  if (listener.isStopped())
    return BaechiStopped;
  if (!listener.failed())
    listener.fail("the compiler failed without saying why");
  return BaechiFailed;
}
} // namespace

/// Does \p work with the store of a folder and the name that \p key has there,
/// and tells what went wrong with it.
static void
withStore(const char *folder, StringRef key, const BaechiCompileListener *told,
          llvm::function_ref<void(ObjectStore &, const std::string &)> work) {
  CListener listener("baechi-run", told);
  llvm::Expected<ObjectStore> store = ObjectStore::open(folder);
  if (!store) {
    listener.warn(llvm::toString(store.takeError()));
    return;
  }
  work(*store, ObjectStore::key(key, describeCompiler()));
  std::string warnings = store->takeWarnings();
  SmallVector<StringRef> lines;
  StringRef(warnings).split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    listener.warn(line);
}

bool baechiTakeKept(const char *folder, const char *key, size_t keySize,
                    void (*gave)(void *user, const char *bytes, size_t size),
                    void *user, const BaechiCompileListener *told) {
  bool found = false;
  withStore(folder, StringRef(key, keySize), told,
            [&](ObjectStore &store, const std::string &name) {
              std::unique_ptr<llvm::MemoryBuffer> bytes = store.load(name);
              found = bytes != nullptr;
              if (found)
                gave(user, bytes->getBufferStart(), bytes->getBufferSize());
            });
  return found;
}

void baechiKeep(const char *folder, const char *key, size_t keySize,
                const char *bytes, size_t size,
                const BaechiCompileListener *told) {
  withStore(folder, StringRef(key, keySize), told,
            [&](ObjectStore &store, const std::string &name) {
              store.save(name, StringRef(bytes, size));
              store.prune();
            });
}

BaechiCompileEnd baechiCompileStep(const char *model, size_t size,
                                   const char *name, const char *const *options,
                                   size_t numOptions, const char *file,
                                   const BaechiCompileListener *told) {
  CListener listener("baechi-run", told);
  DriverOptions driver;
  driver.model = name;
  driver.text = std::string(model, size);
  return run(listener, [&] {
    return compile(std::move(driver), ArrayRef(options, numOptions), file,
                   listener);
  });
}

BaechiCompileEnd
baechiTransform(const char *model, size_t size, const char *name,
                const char *pipeline, const char *form,
                void (*gave)(void *user, const char *text, size_t size),
                void *user, const BaechiCompileListener *told) {
  CListener listener("baechi-opt", told);
  return run(listener, [&]() -> llvm::Error {
    llvm::Expected<std::string> text = transformModel(
        {name, std::string(model, size), pipeline, form}, listener);
    if (text)
      gave(user, text->data(), text->size());
    return text.takeError();
  });
}
