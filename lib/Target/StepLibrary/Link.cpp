//===- Link.cpp - Link a step library ---------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "Baechi/Placement/Io/Environment.h"
#include "Baechi/Placement/Io/Store.h"
#include "Baechi/Placement/Io/TemporaryFolder.h"
#include "Baechi/Target/StepLibrary.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace baechi;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {
constexpr const char *kArchive = "libBaechiRuntime.a";

/// The program and what CC gives it, as in CC="ccache gcc -m64".
llvm::Expected<std::vector<std::string>> findCompiler() {
  const char *given = std::getenv("CC");
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString(given ? given : "", words);
  if (!words.empty()) {
    auto found = llvm::sys::findProgramByName(words.front());
    if (!found)
      return llvm::createStringError("CC names '" + words.front() +
                                     "', which is no program");
    std::vector<std::string> command{*found};
    command.insert(command.end(), words.begin() + 1, words.end());
    return command;
  }
  for (const char *name : {"cc", "clang", "clang-22", "gcc"})
    if (auto found = llvm::sys::findProgramByName(name))
      return std::vector<std::string>{*found};
  return llvm::createStringError(
      "no C compiler to link with: install gcc or clang, or set CC");
}

/// The folder of the program or the library that this code is in.
std::string ownFolder() {
  static int here;
  Dl_info info;
  bool isLibrary = ::dladdr(&here, &info) && info.dli_fname &&
                   llvm::StringRef(info.dli_fname).contains(".so");
  return path::parent_path(isLibrary ? std::string(info.dli_fname)
                                     : fs::getMainExecutable(nullptr, &here))
      .str();
}

/// Of the build tree or the installation that this code belongs to: programs
/// are in bin beside lib; Python's module is above lib in a package, and below
/// it in a build tree.
llvm::Expected<std::string> findArchive() {
  std::string folder = ownFolder();
  for (const char *lib : {"../lib", "lib", ".."}) {
    llvm::SmallString<256> file(folder);
    path::append(file, lib, kArchive);
    if (fs::exists(file))
      return file.str().str();
  }
  return llvm::createStringError(llvm::Twine(kArchive) +
                                 " is not where this program's installation "
                                 "has it, at " +
                                 folder + "/../lib/" + kArchive);
}

/// What every library is linked with.
struct LinkTools {
  std::vector<std::string> compiler;
  std::string archive;
};

llvm::Expected<LinkTools> findLinkTools() {
  llvm::Expected<std::vector<std::string>> compiler = findCompiler();
  if (!compiler)
    return compiler.takeError();
  llvm::Expected<std::string> archive = findArchive();
  if (!archive)
    return archive.takeError();
  return LinkTools{std::move(*compiler), std::move(*archive)};
}

llvm::Error fileError(llvm::StringRef file, std::error_code code) {
  return llvm::createStringError(file +
                                 ": cannot be written: " + code.message());
}

llvm::Error finish(llvm::raw_fd_ostream &os, llvm::StringRef file) {
  os.close();
  if (!os.has_error())
    return llvm::Error::success();
  std::error_code code = os.error();
  os.clear_error();
  return fileError(file, code);
}

llvm::Error writeFile(llvm::StringRef file, llvm::StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream os(file, code);
  if (code)
    return fileError(file, code);
  os << bytes;
  return finish(os, file);
}

/// Ends a file with the hash of what is in it: a shared object may have more
/// behind its sections. python/baechi/steps/library.py reads it.
llvm::Error seal(const std::string &file) {
  auto whole = llvm::MemoryBuffer::getFile(file);
  if (!whole)
    return fileError(file, whole.getError());
  auto digest =
      llvm::SHA256::hash(llvm::arrayRefFromStringRef((*whole)->getBuffer()));
  std::error_code code;
  llvm::raw_fd_ostream os(file, code, fs::OF_Append);
  if (code)
    return fileError(file, code);
  os << "\nbaechi-sha256 " << llvm::toHex(digest, /*LowerCase=*/true) << '\n';
  return finish(os, file);
}

/// The libraries whose functions the code calls.
llvm::Expected<llvm::SmallVector<const GemmLibrary *>>
neededLibraries(llvm::ArrayRef<llvm::MemoryBufferRef> objects) {
  llvm::StringSet<> called;
  for (llvm::MemoryBufferRef buffer : objects) {
    auto object = llvm::object::ObjectFile::createObjectFile(buffer);
    if (!object)
      return object.takeError();
    for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
      llvm::Expected<llvm::StringRef> name = symbol.getName();
      if (!name)
        return name.takeError();
      called.insert(*name);
    }
  }
  llvm::SmallVector<const GemmLibrary *> needed;
  for (const GemmLibrary &library : gemmLibraries())
    if (called.contains(library.symbols.front()))
      needed.push_back(&library);
  return needed;
}

llvm::Error runCompiler(llvm::ArrayRef<std::string> command,
                        llvm::StringRef log) {
  llvm::SmallVector<llvm::StringRef> words(command.begin(), command.end());
  std::optional<llvm::StringRef> outputs[] = {llvm::StringRef(""), log, log};
  std::vector<std::string_view> given = placement::environment();
  llvm::SmallVector<llvm::StringRef> environment(given.begin(), given.end());
  std::string error;
  if (llvm::sys::ExecuteAndWait(words[0], words, environment, outputs,
                                /*SecondsToWait=*/0, /*MemoryLimit=*/0,
                                &error) == 0)
    return llvm::Error::success();
  if (auto text = llvm::MemoryBuffer::getFile(log))
    error += (*text)->getBuffer().take_front(2000).str();
  return llvm::createStringError("'" + words[0] +
                                 "' cannot link the library: " + error);
}

/// What makes a C compiler link in half the time; empty: CC says how to link,
/// or there is no other linker.
std::string otherLinker() {
  if (const char *given = std::getenv("CC"); given && *given)
    return "";
  for (const char *linker : {"lld", "gold"})
    if (llvm::sys::findProgramByName(std::string("ld.") + linker))
      return std::string("-fuse-ld=") + linker;
  return "";
}

/// By the compiler's own linker where another is not there or fails.
llvm::Error link(std::vector<std::string> command, llvm::StringRef log) {
  if (std::string linker = otherLinker(); !linker.empty()) {
    command.push_back(linker);
    llvm::Error error = runCompiler(command, log);
    if (!error)
      return llvm::Error::success();
    llvm::consumeError(std::move(error));
    command.pop_back();
  }
  return runCompiler(command, log);
}
} // namespace

llvm::Expected<std::string> baechi::describeLinking() {
  llvm::Expected<LinkTools> tools = findLinkTools();
  if (!tools)
    return tools.takeError();
  fs::file_status status;
  if (std::error_code code = fs::status(tools->archive, status))
    return llvm::createStringError(tools->archive + ": " + code.message());
  auto changed = status.getLastModificationTime().time_since_epoch().count();
  return llvm::join(tools->compiler, " ") + " " +
         std::to_string(status.getSize()) + " " + std::to_string(changed);
}

llvm::Error
baechi::writeStepLibrary(llvm::StringRef file, llvm::StringRef manifest,
                         llvm::ArrayRef<llvm::MemoryBufferRef> objects) {
  llvm::StringRef stem = path::stem(file);
  if (path::extension(file) != ".so" || stem.empty())
    return llvm::createStringError("'" + file +
                                   "' is no name of a shared object: NAME.so");
  stem.consume_front("lib");
  std::string prefix = cIdentifier(stem, /*upper=*/false);
  if (isReservedInC(prefix))
    return llvm::createStringError(
        "'" + file + "': C has another meaning for '" + prefix +
        "', which all names of the library would begin with; choose another");
  runtime::Expected<runtime::Program> program =
      runtime::Program::parse(manifest);
  if (!program)
    return llvm::createStringError(program.error().message());
  llvm::Expected<LinkTools> tools = findLinkTools();
  if (!tools)
    return tools.takeError();
  auto libraries = neededLibraries(objects);
  if (!libraries)
    return libraries.takeError();
  bool callsOpenBlas = llvm::any_of(*libraries, [](const GemmLibrary *library) {
    return library->implementation == "openblas";
  });

  placement::TemporaryFolder folder("baechi-step");
  if (!folder.error().empty())
    return llvm::createStringError(folder.error());
  auto inside = [&](const llvm::Twine &name) {
    return folder.file(name.str());
  };
  std::string header = stepLibraryHeader(prefix, *program);
  std::string exports = "{ global: " + prefix + "_*; local: *; };\n";
  std::string source =
      stepLibrarySource(prefix, manifest, *program, callsOpenBlas);
  if (llvm::Error error = writeFile(inside(prefix + ".h"), header))
    return error;
  if (llvm::Error error = writeFile(inside("glue.c"), source))
    return error;
  if (llvm::Error error = writeFile(inside("exports"), exports))
    return error;
  placement::StagedFile linked(file.str());
  std::vector<std::string> command = std::move(tools->compiler);
  llvm::append_range(command, std::initializer_list<std::string>{
                                  "-shared", "-fPIC", "-O1", "-o",
                                  linked.temporary(), inside("glue.c")});
  for (auto [i, object] : llvm::enumerate(objects)) {
    command.push_back(inside("code" + llvm::Twine(i) + ".o"));
    if (llvm::Error error = writeFile(command.back(), object.getBuffer()))
      return error;
  }
  llvm::append_range(command, std::initializer_list<std::string>{
                                  tools->archive,
                                  "-Wl,--version-script=" + inside("exports"),
                                  "-Wl,--no-undefined",
                                  "-Wl,-soname," + path::filename(file).str(),
                                  "-lstdc++", "-lpthread", "-lm"});
  for (const GemmLibrary *library : *libraries)
    for (llvm::StringRef object : library->objects)
      command.push_back(("-l:" + object).str());
  if (llvm::Error error = link(std::move(command), inside("log")))
    return error;
  if (llvm::Error error = seal(linked.temporary()))
    return error;

  llvm::SmallString<128> headerFile(file);
  path::remove_filename(headerFile);
  path::append(headerFile, prefix + ".h");
  std::string error = placement::writeWhole(headerFile.str().str(), header);
  if (!error.empty())
    return llvm::createStringError(headerFile +
                                   ": cannot be written: " + error);
  error = linked.place();
  if (!error.empty())
    return llvm::createStringError(file + ": cannot be written: " + error);
  return llvm::Error::success();
}
