//===- StepStore.cpp - Compiled steps in a folder -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Steps/StepStore.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Costs/Measure/KernelChoices.h"
#include "Baechi/Costs/Measure/StepCosts.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Io/Store.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Target/StepLibrary.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace baechi;
namespace json = llvm::json;

namespace {
/// Changes with what follows, and with what an entry holds.
constexpr llvm::StringLiteral kVersion = "step 3";

/// Larger ones would push out what takes longer to make again.
constexpr size_t kMostLibraryBytes = size_t(64) << 20;

/// Collects what a step is compiled of, each part with its name and size, so
/// that no two collections are alike.
class KeyText {
public:
  void add(llvm::StringRef name, llvm::StringRef value) {
    text +=
        (name + " " + llvm::Twine(value.size()) + "\n" + value + "\n").str();
  }
  /// False where it cannot be read.
  bool addFile(llvm::StringRef name, const std::string &path) {
    std::string content;
    if (!path.empty() && !placement::readTextFile(path, content).empty())
      return false;
    add(name, path.empty() ? "" : "is " + content);
    return true;
  }
  const std::string &str() const { return text; }

private:
  std::string text;
};

/// The model without what arguments begin with, which no library has: calls say
/// what they are.
std::string withoutFirstValues(llvm::StringRef text) {
  constexpr llvm::StringLiteral begin = "baechi.init = {";
  std::string rest;
  while (!text.empty()) {
    auto [before, after] = text.split(begin);
    rest += before;
    text = after.size() + before.size() == text.size()
               ? llvm::StringRef()
               : after.drop_until([](char c) { return c == '}'; });
  }
  return rest;
}

/// Whether the limits of devices are shares of the memory that is free now.
bool isOfFreeMemory(const DriverOptions &options) {
  llvm::StringRef spec = options.machine;
  return !llvm::sys::fs::exists(spec) && !spec.contains('@');
}

/// Options that do not tell what is compiled: where files are, and how long
/// something is measured, which the profile has the outcome of.
bool isElsewhere(const CompileOption &option) {
  return llvm::is_contained({"profile", "store", "step-times", "measure",
                             "compile-threads", "expert", "placement"},
                            option.name);
}

void addOptions(KeyText &key, const DriverOptions &options) {
  for (const CompileOption &option : compileOptions()) {
    if (isElsewhere(option))
      continue;
    if (option.text)
      key.add(option.name, options.*option.text);
    else if (option.number)
      key.add(option.name, std::to_string(options.*option.number));
    else
      for (const std::string &each : options.*option.list)
        key.add(option.name, each);
  }
  MeasureBudget budget = llvm::cantFail(measureBudgetOf(options));
  key.add("measure", budget.seconds ? options.measure : "");
  key.add("flags", std::to_string(options.keepObjects) +
                       std::to_string(options.hostCalls) +
                       std::to_string(options.sanitizeCode) +
                       std::to_string(options.otherProcesses) +
                       std::to_string(options.devicesHere.onComputer) + "," +
                       std::to_string(options.devicesHere.inProcess) + "," +
                       std::to_string(options.profile.empty()));
}

/// False where it cannot be written.
bool addMachine(KeyText &key, const DriverOptions &options,
                placement::Machine machine) {
  if (isOfFreeMemory(options))
    for (placement::Device &device : machine.devices)
      device.memory = 0;
  std::string text;
  if (!placement::formatMachine(machine, text).empty())
    return false;
  key.add("machine", text);
  runtime::HostInfo host = runtime::queryHost();
  key.add("cores", std::to_string(host.cores));
  key.add("extensions", llvm::join(host.extensions, " "));
  return true;
}

std::string hashOf(llvm::StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)),
                     /*LowerCase=*/true);
}

/// Of the library NAME.so.
std::string headerOf(llvm::StringRef file) {
  llvm::SmallString<128> path(file);
  llvm::sys::path::remove_filename(path);
  llvm::StringRef stem = llvm::sys::path::stem(file);
  stem.consume_front("lib");
  llvm::sys::path::append(path, cIdentifier(stem, /*upper=*/false) + ".h");
  return path.str().str();
}

/// An entry: a line of JSON, the header and the library.
struct Entry {
  Compilation::Origins origins;
  std::string profile;
  std::vector<int64_t> arenas;
  llvm::StringRef header, library;

  std::string write() const {
    json::Object head{{"kernels", json::Array(origins.kernels)},
                      {"plans", json::Array(origins.plans)},
                      {"program", origins.program},
                      {"profile", profile},
                      {"arenas", json::Array(arenas)},
                      {"header_bytes", int64_t(header.size())}};
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(head)) << "\n"
                                   << header << library;
    return text;
  }
  /// Of \p bytes, which live as long; false where they are no entry.
  bool read(llvm::StringRef bytes) {
    auto [line, rest] = bytes.split('\n');
    llvm::Expected<json::Value> parsed = json::parse(line);
    const json::Object *head = parsed ? parsed->getAsObject() : nullptr;
    llvm::consumeError(parsed.takeError());
    if (!head || !head->getArray("kernels") || !head->getArray("plans") ||
        !head->getArray("arenas"))
      return false;
    for (const json::Value &each : *head->getArray("kernels"))
      origins.kernels.push_back(each.getAsString().value_or("").str());
    for (const json::Value &each : *head->getArray("plans"))
      origins.plans.push_back(each.getAsString().value_or("").str());
    for (const json::Value &each : *head->getArray("arenas"))
      arenas.push_back(each.getAsInteger().value_or(0));
    origins.program = head->getString("program").value_or("").str();
    profile = head->getString("profile").value_or("").str();
    int64_t size = head->getInteger("header_bytes").value_or(-1);
    if (size < 0 || size > int64_t(rest.size()))
      return false;
    header = rest.take_front(size);
    library = rest.drop_front(size);
    return true;
  }
};
} // namespace

std::optional<StepStore> StepStore::open(const DriverOptions &options,
                                         const placement::Machine &machine,
                                         const std::string &file) {
  bool areHosts =
      llvm::all_of(machine.devices, [](const placement::Device &device) {
        return device.kind == "host" || placement::isPool(device);
      });
  if (options.store.empty() || !areHosts)
    return std::nullopt;
  KeyText key;
  key.add("model", withoutFirstValues(*options.text));
  key.add("name", options.model);
  key.add("file", llvm::sys::path::filename(file));
  addOptions(key, options);
  if (!addMachine(key, options, machine) ||
      !key.addFile("expert", options.expert) ||
      !key.addFile("placement", options.placement))
    return std::nullopt;
  for (const GemmLibrary &library : gemmLibraries())
    key.add(library.implementation, gemmLibraryVersion(library));
  key.add("target", HostJit::hostTarget());
  llvm::Expected<std::string> linker = describeLinking();
  if (!linker) {
    llvm::consumeError(linker.takeError()); // whoever links tells it
    return std::nullopt;
  }
  key.add("linker", *linker);
  llvm::Expected<ObjectStore> store = ObjectStore::open(options.store);
  if (!store) {
    llvm::consumeError(store.takeError()); // whoever compiles kernels tells it
    return std::nullopt;
  }
  return StepStore(
      std::move(*store), options, machine, file,
      ObjectStore::key(key.str(), (kVersion + describeCompiler()).str()));
}

std::string StepStore::profileOf(const Compilation::Origins &origins) const {
  if (options.profile.empty())
    return "none";
  if (!llvm::sys::fs::exists(options.profile))
    return "";
  llvm::Expected<Profile> read = readProfile(options.profile);
  if (!read) {
    llvm::consumeError(read.takeError()); // whoever compiles tells it
    return "";
  }
  llvm::StringSet<> kernels(llvm::from_range, origins.kernels),
      plans(llvm::from_range, origins.plans);
  llvm::erase_if(read->rows, [&](const ProfileRow &row) {
    return row.kind != "host" || !kernels.contains(row.hash);
  });
  llvm::sort(read->rows, [](const ProfileRow &a, const ProfileRow &b) {
    return std::tie(a.hash, a.implementation) <
           std::tie(b.hash, b.implementation);
  });
  llvm::erase_if(read->choices, [&](const ProgramChoice &choice) {
    return choice.program != origins.program;
  });
  int64_t cores = runtime::queryHost().cores;
  llvm::erase_if(read->hosts,
                 [&](const HostTimes &times) { return times.cores != cores; });
  llvm::erase_if(read->plans, [&](const PlanRow &plan) {
    return !plans.contains(plan.program);
  });
  llvm::sort(read->plans, [](const PlanRow &a, const PlanRow &b) {
    return a.program < b.program;
  });
  read->cudaTarget.clear();
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(profileObject(*read));
  return hashOf(text);
}

bool StepStore::haveRoom(llvm::ArrayRef<int64_t> arenas) const {
  return !isOfFreeMemory(options) ||
         (arenas.size() == machine.devices.size() &&
          llvm::all_of(llvm::zip_equal(arenas, machine.devices), [](auto pair) {
            auto [arena, device] = pair;
            return arena <= device.memory / 2;
          }));
}

void StepStore::warn(Listener &listener) {
  std::string warnings = store.takeWarnings();
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(warnings).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    listener.warn(line);
}

bool StepStore::take(Listener &listener) {
  // Who asks for all measurements, or has new ones, compiles by them.
  if (llvm::cantFail(measureBudgetOf(options)).all ||
      !options.stepTimes.empty())
    return false;
  std::unique_ptr<llvm::MemoryBuffer> bytes = store.load(key);
  warn(listener);
  Entry entry;
  if (!bytes || !entry.read(bytes->getBuffer()) || !haveRoom(entry.arenas))
    return false;
  if (entry.profile.empty() || entry.profile != profileOf(entry.origins))
    return false;
  Phase phase(listener, "linking");
  if (!placement::writeWhole(headerOf(file), entry.header).empty() ||
      !placement::writeWhole(file, entry.library).empty())
    return false;
  // As the linker leaves it.
  llvm::ErrorOr<llvm::sys::fs::perms> mode =
      llvm::sys::fs::getPermissions(headerOf(file));
  if (mode)
    (void)llvm::sys::fs::setPermissions(
        file, *mode | llvm::sys::fs::perms(unsigned(*mode) >> 2 & 0111));
  return true;
}

void StepStore::keep(Compilation &compilation, Listener &listener) {
  if (!compilation.isSettled())
    return;
  Entry entry;
  entry.origins = compilation.origins();
  entry.profile = profileOf(entry.origins);
  const json::Array *devices =
      compilation.program().manifest.getArray("devices");
  for (const json::Value &device : *devices)
    entry.arenas.push_back(
        device.getAsObject()->getInteger("arena_bytes").value_or(0));
  if (entry.profile.empty() || !haveRoom(entry.arenas))
    return;
  auto header = llvm::MemoryBuffer::getFile(headerOf(file));
  auto library = llvm::MemoryBuffer::getFile(file);
  if (!header || !library)
    return;
  if ((*library)->getBufferSize() > kMostLibraryBytes)
    return;
  entry.header = (*header)->getBuffer();
  entry.library = (*library)->getBuffer();
  store.save(key, entry.write());
  store.prune();
  warn(listener);
}

bool Compilation::isSettled() const {
  return isFromProfile && !compiled.manifest.get("to_measure") &&
         costs.isSettled(module());
}
