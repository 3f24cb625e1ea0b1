//===- FakeNccl.cpp - NCCL without a GPU -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"
#include "FakeCalls.h"

#include <algorithm>
#include <cstring>

using namespace fakecuda;

namespace {

// NCCL's own numbers.
constexpr int invalidArgument = 4, invalidUsage = 5, remoteError = 6,
              inProgress = 7;
/// How long NCCL's threads take to launch what they were called for.
constexpr std::chrono::microseconds launchTime(20);

struct UniqueId {
  char bytes[128];
};
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

/// What a thread has called for since its ncclGroupStart.
struct OpenGroup {
  int depth = 0;
  int failed = 0;
  std::vector<std::shared_ptr<FakeGroup>> launches;
  std::vector<FakeCommunicator *> joining;
};
thread_local OpenGroup open;

bool isAlive(Engine &engine, FakeCommunicator *communicator) {
  return engine.communicators.count(communicator) != 0;
}

/// Whether NCCL is still busy with the last call, and how that ended.
int stateOf(const FakeCommunicator &communicator) {
  const FakeClique &clique = *communicator.clique;
  if (clique.error)
    return clique.error;
  bool waits = clique.members.size() < clique.ranks ||
               (communicator.finalized && clique.finalized < clique.ranks) ||
               Clock::now() < communicator.busyUntil;
  return waits ? inProgress : success;
}

/// Of a transfer that begins: with the other end's, if that is there.
void meet(Engine &engine, FakeCommunicator &communicator,
          const std::shared_ptr<FakeTransfer> &transfer) {
  FakeClique &clique = *communicator.clique;
  std::pair<int, int> way(communicator.rank, transfer->peer);
  if (!transfer->sends)
    std::swap(way.first, way.second);
  auto &others = (transfer->sends ? clique.receives : clique.sends)[way];
  if (others.empty()) {
    (transfer->sends ? clique.sends : clique.receives)[way].push_back(transfer);
    return;
  }
  std::shared_ptr<FakeTransfer> other = others.front();
  others.pop_front();
  const FakeTransfer &from = transfer->sends ? *transfer : *other;
  const FakeTransfer &to = transfer->sends ? *other : *transfer;
  if (from.bytes != to.bytes)
    engine.checker.blame("NCCL sends " + std::to_string(from.bytes) +
                         " bytes, and " + std::to_string(to.bytes) +
                         " are received");
  std::memcpy(to.buffer, from.buffer, std::min(from.bytes, to.bytes));
  transfer->done = other->done = true;
}

/// A group's work: whether it has ended.
bool attempt(Engine &engine, FakeGroup &group, uint64_t number, bool breaks) {
  FakeCommunicator &communicator = *group.communicator;
  if (communicator.aborted)
    return true;
  if (!group.begun) {
    // One after the other.
    if (communicator.ended + 1 < number)
      return false;
    group.begun = true;
    if (breaks)
      communicator.clique->error = remoteError;
    for (const auto &transfer : group.transfers)
      if (!breaks)
        meet(engine, communicator, transfer);
  }
  if (!std::all_of(group.transfers.begin(), group.transfers.end(),
                   [](const auto &transfer) { return transfer->done; }))
    return false;
  communicator.ended = number;
  return true;
}

void launch(Engine &engine, const std::shared_ptr<FakeGroup> &group) {
  FakeCommunicator &communicator = *group->communicator;
  FakeStream &stream = *group->stream;
  beginStep(engine, stream);
  std::string line = std::to_string(communicator.rank) + ":";
  for (const auto &transfer : group->transfers) {
    engine.checker.use(
        stream.timeline, reinterpret_cast<uintptr_t>(transfer->buffer),
        transfer->bytes, !transfer->sends,
        transfer->sends ? "a send of NCCL" : "a receive of NCCL");
    line += std::string(transfer->sends ? " > " : " < ") +
            std::to_string(transfer->peer) + " " +
            std::to_string(transfer->bytes);
  }
  engine.ncclLog += line + "\n";
  uint64_t number = ++communicator.launched;
  bool breaks = ++engine.ncclGroups == engine.options.ncclBreakGroup;
  communicator.busyUntil = Clock::now() + launchTime;
  Work work;
  work.attempt = [=, &engine] {
    return attempt(engine, *group, number, breaks);
  };
  engine.enqueue(stream, std::move(work));
}

/// Ends what the communicator has under way, and the communicator.
void remove(Engine &engine, FakeCommunicator *communicator) {
  communicator->aborted = true;
  for (auto *all :
       {&communicator->clique->sends, &communicator->clique->receives})
    for (auto &[way, queue] : *all)
      if ((all == &communicator->clique->sends ? way.first : way.second) ==
          communicator->rank)
        queue.clear();
  engine.communicators.erase(communicator);
  // Work on streams may still look at it.
  engine.retiredCommunicators.emplace_back(communicator);
}

/// What calls on a communicator have in common.
int check(Engine &engine, FakeCommunicator *communicator, const char *name) {
  if (!isAlive(engine, communicator))
    return misuse(engine, std::string(name) + " of a dead communicator",
                  invalidArgument);
  if (communicator->context != Engine::current)
    return misuse(engine, std::string(name) + " in another GPU's context",
                  invalidUsage);
  return success;
}

int transfer(const char *name, bool sends, void *buffer, size_t count, int type,
             int peer, FakeCommunicator *communicator, FakeStream *stream) {
  return call(name, true, [&](Engine &engine) {
    if (int code = check(engine, communicator, name))
      return code;
    if (open.depth == 0)
      return misuse(engine, std::string(name) + " outside a group",
                    invalidUsage);
    if (int state = stateOf(*communicator))
      return state == inProgress
                 ? misuse(engine,
                          std::string(name) + " before the last call has ended",
                          invalidUsage)
                 : state;
    if (type != 0 || count == 0 || peer == communicator->rank || peer < 0 ||
        size_t(peer) >= communicator->clique->ranks || communicator->finalized)
      return misuse(engine, std::string(name) + " of no sense",
                    invalidArgument);
    if (!isAlive(engine, stream) || stream->context != communicator->context)
      return misuse(engine,
                    std::string(name) + " on a dead or another GPU's stream",
                    invalidArgument);
    if (engine.deviceOf(reinterpret_cast<uintptr_t>(buffer)) !=
        communicator->context->device)
      return misuse(engine,
                    std::string(name) + " of memory that is not the GPU's",
                    invalidArgument);
    auto group = std::find_if(
        open.launches.begin(), open.launches.end(),
        [&](const auto &each) { return each->communicator == communicator; });
    if (group == open.launches.end())
      group =
          open.launches.insert(group, std::make_shared<FakeGroup>(FakeGroup{
                                          communicator, stream, {}, false}));
    if ((*group)->stream != stream)
      return misuse(engine, "a group of NCCL on two streams", invalidUsage);
    (*group)->transfers.push_back(std::make_shared<FakeTransfer>(
        FakeTransfer{sends, buffer, count, peer}));
    return success;
  });
}

} // namespace

void fakecuda::dropCommunicators(Engine &engine) {
  for (FakeCommunicator *communicator : engine.communicators)
    engine.retiredCommunicators.emplace_back(communicator);
  engine.communicators.clear();
  engine.retiredCommunicators.clear();
  engine.cliques.clear();
  engine.ncclLog.clear();
  engine.ncclGroups = 0;
}

extern "C" {

const char *fakeNcclLog() {
  static std::string text;
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  text = engine.ncclLog;
  return text.c_str();
}

const char *ncclGetErrorString(int error) {
  return error == remoteError       ? "remote process exited or there was a "
                                      "network error"
         : error == invalidUsage    ? "invalid usage"
         : error == invalidArgument ? "invalid argument"
         : error == 2               ? "unhandled system error"
                                    : "an error of the fake NCCL";
}
const char *ncclGetLastError(FakeCommunicator *) { return ""; }

int ncclGetUniqueId(UniqueId *id) {
  return call("ncclGetUniqueId", false, [&](Engine &engine) {
    static uint64_t last = 0;
    *id = UniqueId{};
    ++last;
    std::memcpy(id->bytes, &last, sizeof(last));
    engine.cliques[last] = std::make_shared<FakeClique>();
    return success;
  });
}

int ncclCommInitRankConfig(FakeCommunicator **communicator, int ranks,
                           UniqueId id, int rank, Config *config) {
  return call("ncclCommInitRankConfig", true, [&](Engine &engine) {
    uint64_t number = 0;
    std::memcpy(&number, id.bytes, sizeof(number));
    auto clique = engine.cliques.find(number);
    if (clique == engine.cliques.end())
      return misuse(engine, "an id that NCCL did not give", invalidArgument);
    if (config->magic != 0xcafebeef || config->version < 21400 ||
        config->size < sizeof(Config))
      return misuse(engine, "a configuration that NCCL does not know",
                    invalidArgument);
    if (config->blocking != 0)
      return misuse(engine, "a communicator that blocks", invalidUsage);
    FakeClique &members = *clique->second;
    bool knows = members.members.empty() || members.ranks == size_t(ranks);
    if (!knows || rank < 0 || rank >= ranks || members.members.count(rank))
      return misuse(engine, "ranks that do not go together", invalidArgument);
    members.ranks = size_t(ranks);
    // NCCL finds that when all have come.
    for (auto &[other, member] : members.members)
      if (member->context == Engine::current)
        members.error = invalidUsage;
    auto *made = new FakeCommunicator{clique->second, rank, Engine::current};
    members.members[rank] = made;
    engine.communicators.insert(made);
    *communicator = made;
    return inProgress;
  });
}

int ncclCommGetAsyncError(FakeCommunicator *communicator, int *error) {
  return call("ncclCommGetAsyncError", false, [&](Engine &engine) {
    // How often one asks depends on the machine.
    --engine.calls;
    if (!isAlive(engine, communicator))
      return misuse(engine, "ncclCommGetAsyncError of a dead communicator",
                    invalidArgument);
    *error = stateOf(*communicator);
    return success;
  });
}

int ncclGroupStart() {
  return call("ncclGroupStart", false, [&](Engine &) {
    ++open.depth;
    return success;
  });
}

int ncclGroupEnd() {
  std::vector<std::shared_ptr<FakeGroup>> launches;
  {
    Engine &engine = Engine::get();
    std::lock_guard<std::mutex> guard(engine.mutex);
    if (open.depth == 0)
      return misuse(engine, "a group of NCCL is ended that was not begun",
                    invalidUsage);
    if (--open.depth == 0)
      launches.swap(open.launches);
  }
  return call("ncclGroupEnd", false, [&](Engine &engine) {
    for (const auto &group : launches)
      launch(engine, group);
    return launches.empty() ? success : inProgress;
  });
}

int ncclSend(const void *buffer, size_t count, int type, int peer,
             FakeCommunicator *communicator, FakeStream *stream) {
  return transfer("ncclSend", true, const_cast<void *>(buffer), count, type,
                  peer, communicator, stream);
}
int ncclRecv(void *buffer, size_t count, int type, int peer,
             FakeCommunicator *communicator, FakeStream *stream) {
  return transfer("ncclRecv", false, buffer, count, type, peer, communicator,
                  stream);
}

int ncclCommFinalize(FakeCommunicator *communicator) {
  return call("ncclCommFinalize", true, [&](Engine &engine) {
    if (int code = check(engine, communicator, "ncclCommFinalize"))
      return code;
    if (communicator->finalized)
      return misuse(engine, "a communicator is finalized twice", invalidUsage);
    communicator->finalized = true;
    ++communicator->clique->finalized;
    return inProgress;
  });
}
int ncclCommDestroy(FakeCommunicator *communicator) {
  return call("ncclCommDestroy", true, [&](Engine &engine) {
    if (int code = check(engine, communicator, "ncclCommDestroy"))
      return code;
    if (communicator->ended < communicator->launched ||
        stateOf(*communicator) != success || !communicator->finalized)
      engine.checker.blame("a communicator is destroyed that has work");
    remove(engine, communicator);
    return success;
  });
}
int ncclCommAbort(FakeCommunicator *communicator) {
  return call("ncclCommAbort", true, [&](Engine &engine) {
    if (int code = check(engine, communicator, "ncclCommAbort"))
      return code;
    remove(engine, communicator);
    return success;
  });
}
}
