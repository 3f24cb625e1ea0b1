//===- StepLibrary.cpp - A session behind C functions -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/StepLibrary.h"
#include "Baechi/Runtime/Session.h"

#include <algorithm>
#include <cstring>
#include <exception>

using namespace baechi::runtime;

struct baechi_step {
  std::unique_ptr<Session> session;
  std::string error;
  std::string separate; ///< why calls do not overlap

  /// Nothing may be thrown into C.
  template <typename Call> int guarded(Call call) {
    try {
      Error failed = call();
      error = failed ? failed.message() : "";
    } catch (const std::exception &e) {
      error = e.what();
    }
    return error.empty() ? 0 : 1;
  }
};

/// Runs `call` on an open step with data to read or to write.
template <typename Call>
static int access(baechi_step *step, const void *data, size_t bytes,
                  Call call) {
  if (!step)
    return 1;
  return step->guarded([&]() -> Error {
    if (!data && bytes > 0)
      return Error("a null pointer cannot stand for " + std::to_string(bytes) +
                   " bytes of data");
    return call();
  });
}

static void copyText(const std::string &text, char *to, size_t size) {
  if (!to || size == 0)
    return;
  size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

baechi_step *baechi_step_open(const char *manifest,
                              const baechi_symbol *symbols, size_t symbol_count,
                              const baechi_step_options *options, char *error,
                              size_t error_size) {
  auto step = std::make_unique<baechi_step>();
  int failed = step->guarded([&]() -> Error {
    SessionOptions chosen;
    // Nobody sees one here, and without it steps of GPUs are replayed.
    chosen.timeline = false;
    if (options) {
      if (!(options->watchdog_seconds >= 0))
        return Error("watchdog_seconds is negative or no number; 0 is for a "
                     "step without a watchdog");
      chosen.watchdogSeconds = options->watchdog_seconds;
      chosen.pinThreads = options->pin_threads != 0;
    }
    Expected<Program> program = Program::parse(manifest);
    if (!program)
      return program.takeError();
    auto resolve = [&](const std::string &name) -> void * {
      for (size_t i = 0; i < symbol_count; ++i)
        if (name == symbols[i].name)
          return reinterpret_cast<void *>(symbols[i].address);
      return nullptr;
    };
    Expected<std::unique_ptr<Session>> session =
        Session::create(std::move(*program), resolve, std::move(chosen));
    if (!session)
      return session.takeError();
    step->session = std::move(*session);
    return Error();
  });
  if (failed) {
    copyText(step->error, error, error_size);
    return nullptr;
  }
  return step.release();
}

void baechi_step_close(baechi_step *step) { delete step; }

int baechi_step_set_argument(baechi_step *step, size_t index, const void *data,
                             size_t bytes) {
  return access(step, data, bytes,
                [&] { return step->session->setArgument(index, data, bytes); });
}

int baechi_step_get_argument(baechi_step *step, size_t index, void *data,
                             size_t bytes) {
  return access(step, data, bytes,
                [&] { return step->session->getArgument(index, data, bytes); });
}

int baechi_step_set_host_calls(baechi_step *step, baechi_host_function function,
                               void *user) {
  return access(step, nullptr, 0, [&] {
    step->session->setHostCalls({function, user});
    return Error();
  });
}

int baechi_step_run(baechi_step *step) {
  return access(step, nullptr, 0, [&] { return step->session->step(); });
}

int baechi_step_get_result(baechi_step *step, size_t index, void *data,
                           size_t bytes) {
  return access(step, data, bytes,
                [&] { return step->session->getResult(index, data, bytes); });
}

int baechi_step_call(baechi_step *step, const void *const *arguments,
                     void *const *results) {
  return access(step, nullptr, 0,
                [&] { return step->session->call(arguments, results); });
}

int baechi_step_begin(baechi_step *step, const void *const *arguments,
                      void *const *results, void **end) {
  return access(step, nullptr, 0,
                [&] { return step->session->begin(arguments, results, end); });
}

int baechi_step_call_lending(baechi_step *step, const void *const *arguments,
                             const unsigned char *lent, void *const *results) {
  return access(step, nullptr, 0,
                [&] { return step->session->call(arguments, results, lent); });
}

int baechi_step_usable(const baechi_step *step) {
  return step && step->session->usable();
}

namespace {
/// Calls as a program in C gives them.
class GivenCalls final : public CallSource {
public:
  using Lent = const unsigned char *(*)(void *user, int64_t call);

  GivenCalls(const baechi_step_calls &calls, Lent lent)
      : calls(calls), lent(lent) {}

  Next next(int64_t call, Places &places) override {
    int answer =
        calls.next(calls.user, call, &places.arguments, &places.results);
    places.lent = answer > 0 && lent ? lent(calls.user, call) : nullptr;
    return answer > 0 ? Next::Call : answer < 0 ? Next::Later : Next::End;
  }
  void ended(int64_t call) override { calls.ended(calls.user, call); }

private:
  const baechi_step_calls calls;
  const Lent lent;
};
} // namespace

int baechi_step_overlap(baechi_step *step, int64_t first,
                        const baechi_step_calls *calls, int64_t *failed) {
  return baechi_step_overlap_lending(step, first, calls, nullptr, failed);
}

int baechi_step_overlap_lending(
    baechi_step *step, int64_t first, const baechi_step_calls *calls,
    const unsigned char *(*lent)(void *user, int64_t call), int64_t *failed) {
  return access(step, nullptr, 0, [&] {
    GivenCalls given(*calls, lent);
    return step->session->overlapCalls(first, given, failed);
  });
}

const char *baechi_step_why_separate(baechi_step *step) {
  if (!step)
    return "the step is not open";
  step->separate = step->session->whySeparate();
  return step->separate.empty() ? nullptr : step->separate.c_str();
}

int64_t baechi_step_wall_ns(const baechi_step *step) {
  return step ? step->session->timeline().wallNs : -1;
}

int baechi_step_record_times(baechi_step *step, int wanted) {
  return access(step, nullptr, 0, [&] {
    step->session->recordTimes(wanted != 0);
    return Error();
  });
}

int baechi_step_operator_ns(baechi_step *step, size_t device, int64_t *ns,
                            size_t count) {
  return access(step, ns, count * sizeof(*ns), [&]() -> Error {
    const Timeline &timeline = step->session->timeline();
    if (device >= timeline.devices.size())
      return Error("there is no device " + std::to_string(device) +
                   "; the program has " +
                   std::to_string(timeline.devices.size()));
    const DeviceRecord &record = timeline.devices[device];
    if (count != record.operators.size())
      return Error("there is room for " + std::to_string(count) +
                   " times, and device " + std::to_string(device) + " has " +
                   std::to_string(record.operators.size()) + " operators");
    for (const Interval &interval : record.operators)
      *ns++ = interval.durationNs();
    return Error();
  });
}

const char *baechi_step_error(const baechi_step *step) {
  return step ? step->error.c_str() : "the step is not open";
}
