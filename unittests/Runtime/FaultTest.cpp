//===- FaultTest.cpp - Every call of the runtime fails once ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A session lives once for each call that it makes, and that call fails, or
/// stops its thread: n = 1, 2, 3 ... of each kind until the n-th does not come.
/// Each time there is one error, soon, that says where; what was started is
/// given back; and what comes next gives the right results.
///
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <malloc.h>
#include <map>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int32_t devices = 3;
constexpr int64_t slot = 64;
/// Mapped by itself, so that it can be counted (see Resources).
constexpr int64_t arenaBytes = int64_t(1) << 20;

/// Each device doubles its argument, sends that to the next and adds what it
/// receives; then it lends the double and adds what it borrows.
Program makeRing() {
  Program program = makeProgram(devices, arenaBytes);
  for (int32_t device = 0; device < devices; ++device) {
    addQueue(program, device, (device + 1) % devices, {1, 1});
    program.queues.back().messages[1].lent = true;
    addArgument(program, device, 0, 1);
    addResult(program, device, 3 * slot, 1);
  }
  return program;
}

int32_t runRing(Context context, char *arena, int32_t device) {
  int32_t in = (device + devices - 1) % devices;
  char *own = arena + slot, *received = arena + 2 * slot;
  if (baechi_recv(context, in, 0, received))
    return 1;
  baechi_operator_begin(context, 0);
  *own = char(2 * arena[0]);
  baechi_operator_end(context, 0);
  const void *lent = nullptr;
  if (baechi_send(context, device, 0, own) ||
      baechi_await_recv(context, in, 0) ||
      baechi_send(context, device, 1, own) ||
      baechi_borrow(context, in, 1, &lent))
    return 1;
  baechi_operator_begin(context, 1);
  arena[3 * slot] = char(*own + *received + *static_cast<const char *>(lent));
  baechi_operator_end(context, 1);
  if (baechi_give_back(context, in, 1) || baechi_await_send(context, device, 0))
    return 1;
  return baechi_await_send(context, device, 1);
}

/// The errors of a session's life, which goes on as far as it can.
struct Life {
  /// \p stopped: whether the thread that is to stop has. What is late before
  /// then is so because the machine is busy: it does not count and is done
  /// again.
  explicit Life(
      SessionOptions options,
      std::function<bool()> stopped = [] { return true; })
      : options(std::move(options)), stopped(std::move(stopped)) {
    for (int32_t device = 0; device < devices; ++device)
      bodies[device] = [device](Context context, char *arena) {
        return runRing(context, arena, device);
      };
    if (create() || create() || create())
      for (int i = 0; i < 2; ++i)
        live();
  }

  bool create() {
    auto created = Session::create(makeRing(), resolveBody, options);
    if (!created) {
      note(created.error());
      return false;
    }
    session = std::move(*created);
    return true;
  }

  /// Sets arguments, steps and reads the results; a call that failed is made
  /// again, and an unusable session replaced.
  void live() {
    bool right = true;
    for (char device = 0; device < devices; ++device) {
      char value = char(device + 1);
      again([&] { return session->setArgument(device, &value, 1); });
    }
    if (Error error = session->step()) {
      note(error);
      if (!session->usable() && !create() && !create())
        return;
      live();
      return;
    }
    for (char device = 0; device < devices; ++device) {
      char value = 0, kept = 0;
      char before = char((device + devices - 1) % devices);
      again([&] { return session->getResult(device, &value, 1); });
      again([&] { return session->getArgument(device, &kept, 1); });
      right &= value == 2 * (device + 1) + 4 * (before + 1);
      right &= kept == device + 1;
    }
    rightSteps += right;
  }

  void note(const Error &error) {
    if (!stopped())
      return;
    errors.push_back(error.message());
    // Nothing stops twice: a busy machine must not be taken for it.
    options.watchdogSeconds = SessionOptions().watchdogSeconds;
  }

  template <typename Action> void again(Action action) {
    Error error = action();
    if (!error)
      return;
    errors.push_back(error.message());
    ASSERT_SUCCESS(action());
  }

  SessionOptions options;
  const std::function<bool()> stopped;
  std::unique_ptr<Session> session;
  std::vector<std::string> errors;
  int rightSteps = 0;
};

/// What a session holds of the process: threads, and memory that was mapped
/// for one allocation. Not counted under sanitizers, which find leaks anyway.
struct Resources {
  Resources() {
    using Entries = std::filesystem::directory_iterator;
    threads = std::distance(Entries("/proc/self/task"), Entries());
    mappings = mallinfo2().hblks;
  }
  friend bool operator==(const Resources &, const Resources &) = default;
  friend void PrintTo(const Resources &resources, std::ostream *os) {
    *os << resources.threads << " threads, " << resources.mappings
        << " mappings";
  }

  /// The system's list of threads is a moment behind their joins.
  static Resources settled(int64_t threads) {
    for (int i = 0; i < 500 && Resources().threads != threads; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return Resources();
  }

  int64_t threads;
  size_t mappings;
};

class FaultTest : public testing::Test {
protected:
  void SetUp() override {
    mallopt(M_MMAP_THRESHOLD, arenaBytes / 2);
    Life whole{{}}; // Once-only allocations of the libraries.
    // Threads that other tests left behind end on their own.
    for (int i = 0; i < 10; ++i) {
      int64_t threads = Resources().threads;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (Resources().threads < threads)
        i = 0;
    }
  }
};

/// What an error must say of the call that failed.
const std::map<Call, const char *> texts = {
    {Call::Create, "^the session cannot be created: std::bad_alloc$"},
    {Call::StartThread,
     "^cannot start a thread for device host[012]: injected fault: "},
    {Call::Pin, "^device host[012]: injected fault: cannot stay on a "},
    {Call::StartDevice, "^device host[012]: injected fault: cannot allocate "},
    {Call::WriteArena, "^argument [012] 'argument' cannot be copied, device "
                       "host[012]: injected fault$"},
    {Call::ReadArena, "^(argument|result) [012] '(argument|result)' cannot be "
                      "copied, device host[012]: injected fault$"},
    {Call::BeginOperator,
     "^device host[012], in operator [01] '[ab]': injected "
     "fault: cannot begin the operator$"},
    {Call::EndOperator, "^device host[012], in operator [01] '[ab]': injected "
                        "fault: the operator failed$"},
    {Call::Send, "^device host[012], after operator 0 'a': injected fault: "
                 "cannot send: message (0 'm0'|1 'm1') of queue [012] "},
    {Call::Receive, "^device host[012], before its first operator: injected "
                    "fault: cannot receive: message 0 'm0' of queue [012] "},
    {Call::AwaitSend, "^device host[012], after operator 1 'b': injected "
                      "fault: cannot await: message (0 'm0'|1 'm1') of queue "
                      "[012] "},
    {Call::Borrow, "^device host[012], after operator 0 'a': injected fault: "
                   "cannot borrow: message 1 'm1' of queue [012] "},
    {Call::GiveBack, "^device host[012], after operator 1 'b': injected fault: "
                     "cannot give back: message 1 'm1' of queue [012] "},
    {Call::AwaitReceive, "^device host[012], after operator 0 'a': injected "
                         "fault: cannot await: message 0 'm0' of queue [012] "},
    {Call::EndStep, "^device host[012], after operator 1 'b': injected fault: "
                    "its step function failed$"},
};

/// Makes the n-th call of a kind fail. Counted by kind: over all of them, the
/// threads' turns would decide which kinds come to fail.
struct NthOfKindFails final : FaultInjector {
  NthOfKindFails(Call which, int64_t n) : which(which), left(n) {}
  bool fails(Call call) override {
    return call == which && left.fetch_sub(1) == 1;
  }
  bool happened() const { return left <= 0; }
  const Call which;
  std::atomic<int64_t> left;
};

TEST_F(FaultTest, EveryCallFails) {
  for (auto [call, text] : texts) {
    bool happened = true;
    for (int64_t n = 1; happened; ++n) {
      SCOPED_TRACE(testing::Message() << "call " << int(call) << ", " << n);
      Resources before;
      auto faults = std::make_shared<NthOfKindFails>(call, n);
      SessionOptions options;
      options.faults = faults;
      {
        Clock::time_point begin = Clock::now();
        Life life(options);
        EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
        // Whatever failed, everything comes out right afterwards.
        EXPECT_EQ(2, life.rightSteps);
        happened = faults->happened();
        ASSERT_EQ(happened ? 1u : 0u, life.errors.size())
            << testing::PrintToString(life.errors);
        if (happened) {
          EXPECT_THAT(life.errors[0], ContainsRegex(text));
          EXPECT_EQ(before.threads + devices,
                    Resources::settled(before.threads + devices).threads);
        } else {
          EXPECT_LT(1, n) << "no such call came";
        }
      }
      ASSERT_EQ(before, Resources::settled(before.threads));
    }
  }
}

/// The first call of a kind does not come back before it is let go.
struct CallStops final : FaultInjector {
  explicit CallStops(Call which) : which(which) {}
  bool fails(Call call) override {
    if (call != which || stopped)
      return false;
    since = Clock::now();
    if (!stopped.exchange(true))
      letGo.wait(false);
    return false;
  }
  void release() {
    letGo = true;
    letGo.notify_all();
  }
  const Call which;
  std::atomic<Clock::time_point> since{};
  std::atomic<bool> stopped{false}, letGo{false};
};

TEST_F(FaultTest, EveryCallStopsItsThread) {
  // Those that devices make; the others are the caller's own.
  for (Call call :
       {Call::Pin, Call::StartDevice, Call::BeginOperator, Call::EndOperator,
        Call::Send, Call::Receive, Call::AwaitSend, Call::AwaitReceive,
        Call::Borrow, Call::GiveBack, Call::EndStep}) {
    SCOPED_TRACE(int(call));
    Resources before;
    auto faults = std::make_shared<CallStops>(call);
    SessionOptions options;
    options.watchdogSeconds = 0.5;
    options.abortGraceSeconds = 0.05;
    options.faults = faults;
    {
      Life life(options, [&] { return faults->stopped.load(); });
      EXPECT_LT(Clock::now() - faults->since.load(), std::chrono::seconds(60));
      EXPECT_EQ(2, life.rightSteps);
      ASSERT_EQ(1u, life.errors.size()) << testing::PrintToString(life.errors);
      EXPECT_THAT(life.errors[0],
                  AllOf(HasSubstr("the watchdog's time"),
                        ContainsRegex("left behind: host[012]")));
    }
    // Neither the thread nor what it may touch is gone before it comes back.
    EXPECT_EQ(before.threads + 1,
              Resources::settled(before.threads + 1).threads);
    faults->release();
    ASSERT_EQ(before, Resources::settled(before.threads));
  }
}

} // namespace
