//===- Ranks.cpp - baechi-run as one of several processes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Execution/Ranks.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Runtime/Launch.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/Session.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <csignal>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <unistd.h>

using namespace baechi;

namespace {
/// Of this process, for what runs at its end.
std::shared_ptr<runtime::Ranks> theRanks;

/// mpirun ends all processes, SIGTERM, a second after one of them ended badly.
/// A step has noticed by then; who was busy with something else says it here.
void tellAndEnd(int signal) {
  if (theRanks->broken())
    return; // It is being told.
  int32_t lost = -1;
  for (int look = 0; look < 30 && lost < 0; ++look) {
    lost = theRanks->findLost();
    timespec moment{0, 10'000'000};
    nanosleep(&moment, nullptr);
  }
  if (lost >= 0) {
    char text[] = "baechi-run: error: rank ???? was lost: its process has "
                  "ended\n";
    char *digits = text + sizeof("baechi-run: error: rank ") - 1;
    for (int i = 3, rest = lost; i >= 0; --i, rest /= 10)
      digits[i] = char('0' + rest % 10);
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
      _exit(1);
  } else {
    theRanks->sayEnding(signal);
  }
  _exit(1);
}

/// Signals that end a process by themselves, and what was to be done with them.
constexpr int kEndings[] = {SIGHUP, SIGINT, SIGSEGV, SIGABRT,
                            SIGBUS, SIGFPE, SIGILL};
struct sigaction ofEnding[std::size(kEndings)];

/// Tells the others, and ends as this process would have without them.
void sayAndEnd(int signal) {
  theRanks->sayEnding(signal);
  for (size_t i = 0; i < std::size(kEndings); ++i)
    if (kEndings[i] == signal)
      sigaction(signal, &ofEnding[i], nullptr);
  raise(signal);
}

void listenForEndings() {
  std::signal(SIGTERM, tellAndEnd);
  struct sigaction tells = {};
  tells.sa_handler = sayAndEnd;
  // LLVM has a stack for what overflows its own.
  tells.sa_flags = SA_ONSTACK;
  sigemptyset(&tells.sa_mask);
  for (size_t i = 0; i < std::size(kEndings); ++i) {
    sigaction(kEndings[i], nullptr, &ofEnding[i]);
    if (ofEnding[i].sa_handler != SIG_IGN)
      sigaction(kEndings[i], &tells, nullptr);
  }
}

/// A process that ends lets the others end; if one was lost, they notice.
void leave() {
  if (theRanks->leads())
    theRanks->dismiss();
  theRanks->close();
  if (!theRanks->broken())
    return;
  // MPI cannot end in order any more.
  llvm::outs().flush();
  std::fflush(nullptr);
  _exit(1);
}

/// What all ranks must have in common before anything is compiled.
llvm::Expected<std::string> describeStart(const DriverOptions &options,
                                          std::vector<std::string> words) {
  std::string text = "version: " BAECHI_VERSION ", LLVM " LLVM_VERSION_STRING
                     "\nthe model's name: " +
                     options.model + "\n";
  auto addFile = [&](const char *what, const std::string &path) -> llvm::Error {
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!file)
      return llvm::createStringError(
          path + ": cannot be read: " + file.getError().message());
    text += std::string(what) + ": content " +
            llvm::utohexstr(llvm::xxh3_64bits((*file)->getBuffer())) + "\n";
    return llvm::Error::success();
  };
  // A machine is measured without one.
  if (!options.model.empty())
    if (llvm::Error error = addFile("the model", options.model))
      return std::move(error);
  text += "--machine: " + options.machine + "\n";
  if (llvm::sys::fs::exists(options.machine))
    if (llvm::Error error = addFile("the machine file", options.machine))
      return std::move(error);
  // The order says nothing, and rank 0's alone would be used.
  llvm::sort(words);
  text += "the command line: " + llvm::join(words, " ") + "\n";
  return text;
}

/// In the build tree as in an installation.
std::string modulePath() {
  static int here;
  llvm::SmallString<256> file(llvm::sys::fs::getMainExecutable(nullptr, &here));
  llvm::sys::path::remove_filename(file);
  llvm::sys::path::append(file, "..", "lib", "libBaechiMpi.so");
  return file.str().str();
}
} // namespace

llvm::Expected<std::shared_ptr<runtime::Ranks>>
baechi::joinRanks(const DriverOptions &options,
                  std::vector<std::string> words) {
  auto launch = runtime::findLaunch();
  if (!launch)
    return toLlvm(launch.error());
  if (launch->way == runtime::Launch::Way::Alone)
    return nullptr;
  auto joined = runtime::Ranks::join(*launch, modulePath());
  if (!joined)
    return toLlvm(joined.error());
  theRanks = *joined;
  std::atexit(leave);
  listenForEndings();
  llvm::Expected<std::string> start = describeStart(options, std::move(words));
  runtime::Error wrong;
  if (!start)
    wrong = runtime::Error(llvm::toString(start.takeError()));
  if (runtime::Error error = theRanks->agree(wrong, wrong ? "" : *start)) {
    // Rank 0 says it.
    if (!theRanks->leads() && !theRanks->broken())
      return diagnosed();
    return toLlvm(error);
  }
  return theRanks;
}

std::shared_ptr<runtime::FaultInjector>
baechi::killerOf(int killed, const runtime::Ranks *ranks) {
  struct Killer final : runtime::FaultInjector {
    bool fails(runtime::Call call) override {
      return call == runtime::Call::BeginOperator && raise(SIGKILL) != 0;
    }
  };
  if (!ranks || ranks->rank() != killed)
    return nullptr;
  return std::make_shared<Killer>();
}

llvm::Error baechi::sendProgram(runtime::Ranks &ranks, llvm::StringRef manifest,
                                llvm::ArrayRef<llvm::MemoryBufferRef> objects) {
  for (int32_t rank = 1; rank < ranks.size(); ++rank) {
    llvm::SmallVector<llvm::StringRef> parts = {manifest};
    for (llvm::MemoryBufferRef object : objects)
      parts.push_back(object.getBuffer());
    if (llvm::Error error =
            toLlvm(ranks.send(rank, std::to_string(parts.size()))))
      return error;
    for (llvm::StringRef part : parts)
      if (llvm::Error error = toLlvm(ranks.send(rank, part)))
        return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<HostJit>>
baechi::linkProgram(llvm::ArrayRef<std::string> parts) {
  HostJitOptions options;
  for (const runtime::AbiSymbol &symbol : runtime::abiSymbols())
    options.symbols[symbol.name] = symbol.address;
  llvm::Expected<std::unique_ptr<HostJit>> jit =
      HostJit::create(std::move(options));
  if (!jit)
    return jit.takeError();
  for (llvm::StringRef object : parts.drop_front())
    if (llvm::Error error = (*jit)->addObject(object))
      return std::move(error);
  return jit;
}

static llvm::Expected<std::vector<std::string>>
receiveParts(runtime::Ranks &ranks, size_t parts) {
  std::vector<std::string> received;
  for (size_t i = 0; i < parts; ++i) {
    runtime::Expected<std::string> part = ranks.receive(0);
    if (!part)
      return toLlvm(part.error());
    received.push_back(std::move(*part));
  }
  return received;
}

llvm::Expected<std::vector<std::string>>
baechi::receiveProgram(runtime::Ranks &ranks) {
  runtime::Expected<std::string> parts = ranks.receive(0);
  if (!parts)
    return toLlvm(parts.error());
  size_t count = 0;
  // Anything else is rank 0's farewell.
  if (!llvm::StringRef(*parts).getAsInteger(10, count))
    return receiveParts(ranks, count);
  ranks.setDismissed();
  return std::vector<std::string>();
}

/// A program of rank 0 from its arrival to its end.
static llvm::Error serveProgram(const std::shared_ptr<runtime::Ranks> &ranks,
                                size_t parts, double watchdogSeconds,
                                int killed) {
  llvm::Expected<std::vector<std::string>> taken = receiveParts(*ranks, parts);
  if (!taken)
    return taken.takeError();
  std::vector<std::string> &received = *taken;
  llvm::Expected<std::unique_ptr<HostJit>> jit = linkProgram(received);
  auto program = runtime::Program::parse(received.front());
  if (!jit || !program) {
    std::string why = jit ? "" : llvm::toString(jit.takeError());
    why += program ? "" : program.error().message();
    // All ranks create a session or none does; rank 0 says why.
    runtime::Error error =
        runtime::Session::decline(*ranks, runtime::Error(why));
    return ranks->broken() ? toLlvm(error) : llvm::Error::success();
  }
  runtime::SessionOptions sessionOptions;
  sessionOptions.watchdogSeconds = watchdogSeconds;
  sessionOptions.ranks = ranks;
  sessionOptions.faults = killerOf(killed, ranks.get());
  auto session = runtime::Session::create(
      std::move(*program),
      [&](const std::string &name) -> void * {
        llvm::Expected<void *> address = (*jit)->lookup(name);
        if (address)
          return *address;
        // A session knows only that there is no code.
        llvm::errs() << "baechi-run: error: "
                     << runtime::Ranks::name(ranks->rank()) << ": "
                     << llvm::toString(address.takeError()) << '\n';
        return nullptr;
      },
      sessionOptions);
  // What a session fails of, rank 0 says.
  if (!session)
    return llvm::Error::success();
  if (runtime::Error error = (*session)->follow())
    return toLlvm(error);
  // Code that a thread still runs stays where it is.
  if (!(*session)->usable())
    jit->release(); // NOLINT(bugprone-unused-return-value)
  return llvm::Error::success();
}

llvm::Error baechi::serveRank(const std::shared_ptr<runtime::Ranks> &ranks,
                              double watchdogSeconds, int killed) {
  auto fail = [&](const std::string &why) {
    // Rank 0 tells of the others, if it is there.
    if (ranks->broken() && ranks->lostRank() != 0)
      return diagnosed();
    return llvm::createStringError(runtime::Ranks::name(ranks->rank()) + ": " +
                                   why);
  };
  while (!ranks->dismissed()) {
    runtime::Expected<std::string> parts = ranks->receive(0);
    if (!parts)
      return fail(parts.error().message());
    auto measured = runtime::followLinkMeasure(ranks, *parts);
    if (!measured)
      return fail(measured.error().message());
    if (*measured)
      continue;
    size_t count = 0;
    // Anything else is rank 0's farewell.
    if (llvm::StringRef(*parts).getAsInteger(10, count)) {
      ranks->setDismissed();
      break;
    }
    if (llvm::Error error = serveProgram(ranks, count, watchdogSeconds, killed))
      return fail(llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}
