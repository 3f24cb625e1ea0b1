//===- StaleRanks.cpp - Replicas with a late state on ranks ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Execution/Ranks.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/Inputs.h"
#include "Baechi/Driver/Stale/StaleRun.h"
#include "Baechi/Replicas/RemoteState.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <limits>
#include <thread>

using namespace baechi;

/// How long what is said may take beside what the store itself waits for, and a
/// rank may say nothing once others have failed.
static constexpr double silentSeconds = 10;

/// Of each replica, which rank has it: the ends of lines.
static std::vector<int32_t> ownersOf(const runtime::Ranks &ranks,
                                     int replicas) {
  std::vector<int32_t> owners;
  for (int i = 0; i < replicas; ++i)
    owners.push_back(ranks.ownerOf(size_t(i), size_t(replicas)));
  return owners;
}

/// "replica 0 is on rank 0, replicas 1 to 2 on rank 1".
static std::string describe(llvm::ArrayRef<int32_t> owners) {
  std::string text;
  for (size_t first = 0, next; first < owners.size(); first = next) {
    next = first + 1;
    while (next < owners.size() && owners[next] == owners[first])
      ++next;
    bool one = next == first + 1;
    text += first ? ", " : "";
    text += (one ? "replica " : "replicas ") + std::to_string(first);
    text += one ? "" : " to " + std::to_string(next - 1);
    text += first ? " on " : one ? " is on " : " are on ";
    text += runtime::Ranks::name(owners[first]);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

llvm::Error StaleRun::sendStart(FirstValues &values) {
  if (asked.replicas < ranks->size())
    return llvm::createStringError(
        llvm::Twine(ranks->size()) + " processes were started for " +
        llvm::Twine(asked.replicas) +
        " replicas: start no more processes than --replicas=N has");
  if (compilation.checksPositions())
    return llvm::createStringError(
        "positions that data tell are checked where the step was compiled, and "
        "replicas of other processes compute elsewhere: start one process, "
        "whose threads have all replicas");
  std::vector<int32_t> owners = ownersOf(*ranks, asked.replicas);
  found.ranks = describe(owners);
  if (llvm::Error error =
          sendProgram(*ranks, compilation.program().manifestText(),
                      compilation.compiler().jit().objects()))
    return error;
  std::vector<std::string> first(size_t(ranks->size()));
  for (auto [replica, owner] : llvm::enumerate(owners))
    for (size_t i = 0; owner != 0 && i < program().arguments.size(); ++i) {
      llvm::Expected<Array> value = values.of(int64_t(replica), i);
      if (!value)
        return value.takeError();
      first[size_t(owner)].append(value->data.data(), value->data.size());
    }
  for (int32_t rank = 1; rank < ranks->size(); ++rank)
    if (llvm::Error error = toLlvm(ranks->send(rank, first[size_t(rank)])))
      return error;
  if (llvm::Error error = toLlvm(ranks->agree(runtime::Error(), "")))
    return error;
  lines = std::make_unique<runtime::RankLines>(*ranks, std::move(owners));
  return llvm::Error::success();
}

/// A rank that has ended is told at once; one that says nothing holds the
/// others up as the bound says, until one of them fails.
llvm::Expected<std::string> StaleRun::hear(int replica) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> since;
  for (;;) {
    bool late = false;
    auto said = lines->hear(size_t(replica), 0.2, late);
    if (said)
      return *said;
    if (!late)
      return toLlvm(said.error());
    if (!failed)
      continue;
    if (!since)
      since = Clock::now();
    std::chrono::duration<double> silent = Clock::now() - *since;
    if (silent.count() < silentSeconds)
      continue;
    ranks->setLost(rankOf(replica));
    return llvm::createStringError("replica " + llvm::Twine(replica) +
                                   " is lost: its rank has said nothing for " +
                                   llvm::Twine(int(silentSeconds)) +
                                   " s after others failed");
  }
}

llvm::Error StaleRun::serve(int replica) {
  for (bool asksMore = true; asksMore;) {
    llvm::Expected<std::string> asks = hear(replica);
    if (!asks) {
      std::string why = llvm::toString(asks.takeError());
      store->lose(replica, why);
      return llvm::createStringError(why);
    }
    lines->say(size_t(replica), store->answer(replica, *asks, asksMore));
  }
  // Its end, or why it has come to none.
  llvm::Expected<std::string> end = hear(replica);
  if (!end)
    return end.takeError();
  if (end->empty() || end->front() != 's')
    return llvm::createStringError(llvm::StringRef(*end).drop_front());
  if (!ends[size_t(replica)].read(llvm::StringRef(*end).drop_front(), program(),
                                  stale, asked, options.steps))
    return llvm::createStringError("replica " + llvm::Twine(replica) +
                                   " has ended with other arrays than those of "
                                   "rank 0");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Other ranks
//===----------------------------------------------------------------------===//

namespace {

/// What another rank computes.
class StaleFollower {
public:
  StaleFollower(runtime::Ranks &ranks, const StaleOptions &asked, int64_t steps,
                double watchdogSeconds)
      : ranks(ranks), asked(asked), steps(steps),
        watchdogSeconds(watchdogSeconds),
        owners(ownersOf(ranks, asked.replicas)) {}

  llvm::Error start(llvm::ArrayRef<std::string> parts, llvm::StringRef values,
                    int killed);
  /// False: rank 0 knows why.
  llvm::Expected<bool> run();

private:
  llvm::Error work(StaleReplica &replica, runtime::RankLines &lines);

  runtime::Ranks &ranks;
  const StaleOptions &asked;
  const int64_t steps;
  const double watchdogSeconds;
  const std::vector<int32_t> owners;
  std::unique_ptr<HostJit> jit;
  StaleProgram stale;
  std::vector<std::unique_ptr<StaleReplica>> replicas;
};

llvm::Error StaleFollower::start(llvm::ArrayRef<std::string> parts,
                                 llvm::StringRef values, int killed) {
  llvm::Expected<std::unique_ptr<HostJit>> linked = linkProgram(parts);
  if (!linked)
    return linked.takeError();
  jit = std::move(*linked);
  for (auto [replica, owner] : llvm::enumerate(owners)) {
    if (owner != ranks.rank())
      continue;
    auto created = Execution::create(*jit, parts.front(), watchdogSeconds,
                                     killerOf(killed, &ranks));
    if (!created)
      return created.takeError();
    replicas.push_back(
        std::make_unique<StaleReplica>(int(replica), std::move(*created)));
    Execution &own = replicas.back()->program();
    for (auto [i, argument] : llvm::enumerate(own.program().arguments)) {
      Array value;
      value.data.assign(values.begin(),
                        values.begin() +
                            std::min<size_t>(values.size(), argument.bytes));
      values = values.drop_front(value.data.size());
      if (llvm::Error error = own.setArgument(i, value))
        return error;
    }
  }
  llvm::Expected<StaleProgram> shared =
      StaleProgram::of(replicas.front()->program().program(), asked);
  if (!shared)
    return shared.takeError();
  stale = std::move(*shared);
  return llvm::Error::success();
}

llvm::Error StaleFollower::work(StaleReplica &replica,
                                runtime::RankLines &lines) {
  auto line = size_t(replica.replica());
  store::StoreOptions options = storeOptionsOf(asked, watchdogSeconds);
  bool gone = false;
  std::string why;
  auto ask = [&](const std::string &question,
                 std::string &error) -> std::string {
    if (gone) {
      error = why;
      return "";
    }
    lines.say(line, question);
    bool late = false;
    auto said = lines.hear(line, options.patience + silentSeconds, late);
    if (said)
      return *said;
    gone = true;
    error = late ? "rank 0 has not answered for " +
                       std::to_string(int(options.patience + silentSeconds)) +
                       " s"
                 : said.error().message();
    why = error;
    return "";
  };
  auto state = replicas::RemoteState::create(stale.arrays, options,
                                             replica.replica(), ask, why);
  llvm::Error error = state ? replica.work(stale, *state, steps,
                                           [](const Execution &) {
                                             return llvm::Error::success();
                                           })
                            : llvm::createStringError(why);
  if (gone)
    return error;
  if (!error) {
    llvm::Expected<StaleEnd> end = replica.end(stale, asked.results);
    if (end) {
      lines.say(line, "s" + end->text());
      return llvm::Error::success();
    }
    error = end.takeError();
  }
  lines.say(line, "e" + llvm::toString(std::move(error)));
  return diagnosed();
}

llvm::Expected<bool> StaleFollower::run() {
  runtime::RankLines lines(ranks, owners);
  std::vector<std::string> errors(replicas.size());
  std::atomic<bool> told{false};
  std::vector<std::thread> threads;
  for (auto [i, replica] : llvm::enumerate(replicas))
    threads.emplace_back([&, i = i, &replica = *replica] {
      llvm::handleAllErrors(
          work(replica, lines), [&](const DiagnosedError &) { told = true; },
          [&](const llvm::ErrorInfoBase &error) {
            errors[i] = error.message();
          });
    });
  for (std::thread &thread : threads)
    thread.join();
  auto first =
      llvm::find_if(errors, [](auto &error) { return !error.empty(); });
  if (first != errors.end()) {
    ranks.setLost(0);
    return llvm::createStringError(runtime::Ranks::name(ranks.rank()) + ": " +
                                   *first);
  }
  lines.close();
  return !told;
}

} // namespace

llvm::Error baechi::serveStaleRank(const std::shared_ptr<runtime::Ranks> &ranks,
                                   const StaleOptions &asked, int64_t steps,
                                   double watchdogSeconds, int killed) {
  llvm::Expected<std::vector<std::string>> parts = receiveProgram(*ranks);
  if (!parts)
    return parts.takeError();
  if (parts->empty())
    return llvm::Error::success();
  runtime::Expected<std::string> values = ranks->receive(0);
  if (!values)
    return toLlvm(values.error());
  StaleFollower follower(*ranks, asked, steps, watchdogSeconds);
  runtime::Error wrong;
  if (llvm::Error error = follower.start(*parts, *values, killed))
    wrong = runtime::Error(llvm::toString(std::move(error)));
  bool right = true;
  // What is wrong anywhere, rank 0 says.
  if (ranks->agree(wrong, "")) {
    right = false;
  } else {
    llvm::Expected<bool> ran = follower.run();
    if (!ran)
      return ran.takeError();
    right = *ran;
  }
  llvm::Expected<std::vector<std::string>> no = receiveProgram(*ranks);
  if (!no)
    return no.takeError();
  return right ? llvm::Error::success() : diagnosed();
}
