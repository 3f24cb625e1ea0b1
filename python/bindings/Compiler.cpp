//===- Compiler.cpp - The compiler in Python's process ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The extension module `_compiler`, by C's interface alone: MLIR is built
/// without exceptions and run-time types, nanobind needs them.
///
/// A compilation runs on a thread of its own. Its caller's thread waits,
/// without the interpreter's lock, tells Python of phases and asks it for
/// signals: what a signal's handler raises ends the call within a second,
/// however long the compiler needs to come to an end. It is then left to
/// itself, which is why it shares what it works on, and calls nothing of
/// Python.
///
//===----------------------------------------------------------------------===//

#include "Baechi-c/Compiler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace nb = nanobind;
using namespace nb::literals;

namespace {
/// How often Python is asked for signals, and how long a compilation that was
/// stopped is waited for.
constexpr std::chrono::milliseconds kEvery(20), kPatience(500);

struct Phase {
  std::string what;
  size_t done, total;
};

/// severity, place, message.
using Message = std::tuple<std::string, std::string, std::string>;

/// What the compiler does to a model, or a part of it, shared by the thread
/// that waits and the one that works.
struct Job {
  std::string model, name;
  /// Is given this job and a listener.
  std::function<BaechiCompileEnd(Job &, const BaechiCompileListener &)> work;
  std::atomic<bool> stopped{false};

  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  std::deque<Phase> phases;
  std::vector<Message> messages;
  std::string text;   ///< the messages as a tool writes them
  std::string result; ///< of a transformation
  bool ended = false;
  BaechiCompileEnd end = BaechiFailed;
};

/// One compilation at a time: what is measured beside another is wrong.
std::timed_mutex oneAtATime;

/// Compilations that nobody waits for; the process must not end under them.
std::mutex abandonedMutex;
std::vector<std::shared_ptr<Job>> abandoned;

const char *nameOf(BaechiSeverity severity) {
  switch (severity) {
  case BaechiNote:
    return "note";
  case BaechiRemark:
    return "remark";
  case BaechiWarning:
    return "warning";
  case BaechiError:
    return "error";
  }
  return "error";
}

BaechiCompileListener listenerOf(Job &job) {
  BaechiCompileListener listener = {};
  listener.user = &job;
  listener.phase = [](void *user, const char *what, size_t done, size_t total) {
    auto &job = *static_cast<Job *>(user);
    std::lock_guard lock(job.mutex);
    job.phases.push_back({what, done, total});
    job.changed.notify_one();
  };
  listener.said = [](void *user, BaechiSeverity severity, const char *place,
                     const char *message) {
    auto &job = *static_cast<Job *>(user);
    std::lock_guard lock(job.mutex);
    job.messages.emplace_back(nameOf(severity), place, message);
  };
  listener.wrote = [](void *user, const char *text) {
    auto &job = *static_cast<Job *>(user);
    std::lock_guard lock(job.mutex);
    job.text += text;
  };
  listener.stopped = [](void *user) {
    return static_cast<Job *>(user)->stopped.load();
  };
  return listener;
}

BaechiCompileEnd emit(const Job &job, const std::vector<std::string> &options,
                      const std::string &file,
                      const BaechiCompileListener &listener) {
  std::vector<const char *> words;
  for (const std::string &option : options)
    words.push_back(option.c_str());
  return baechiCompileStep(job.model.data(), job.model.size(), job.name.c_str(),
                           words.data(), words.size(), file.c_str(), &listener);
}

void work(Job &job) {
  std::unique_lock turn(oneAtATime, std::defer_lock);
  while (!turn.try_lock_for(kEvery) && !job.stopped)
    ;
  BaechiCompileEnd end = BaechiStopped;
  if (!job.stopped)
    end = job.work(job, listenerOf(job));
  std::lock_guard lock(job.mutex);
  job.end = end;
  job.ended = true;
  job.changed.notify_all();
}

/// Stops a compilation, and leaves it to itself where it needs long.
void stop(const std::shared_ptr<Job> &job) {
  job->stopped = true;
  nb::gil_scoped_release unlocked;
  std::unique_lock lock(job->mutex);
  if (job->changed.wait_for(lock, kPatience, [&] { return job->ended; }))
    return;
  lock.unlock();
  std::lock_guard all(abandonedMutex);
  abandoned.push_back(job);
}

/// Tells of phases until the compilation ends.
void wait(const std::shared_ptr<Job> &job, const nb::object &progress) {
  while (true) {
    std::deque<Phase> phases;
    bool ended;
    {
      nb::gil_scoped_release unlocked;
      std::unique_lock lock(job->mutex);
      job->changed.wait_for(lock, kEvery,
                            [&] { return job->ended || !job->phases.empty(); });
      phases.swap(job->phases);
      ended = job->ended;
    }
    if (!progress.is_none())
      for (const Phase &phase : phases)
        progress(phase.what, phase.done, phase.total);
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
    if (ended)
      return;
  }
}

/// Runs a job on a thread of its own, until it ends or a signal's handler
/// raises.
void run(const std::shared_ptr<Job> &job, const nb::object &progress) {
  try {
    std::thread([job] { work(*job); }).detach();
  } catch (const std::system_error &error) {
    throw std::runtime_error(
        std::string("a thread that compiles cannot be started (") +
        error.code().message() +
        "): let this user have more threads (ulimit -u, the control group's "
        "pids.max)");
  }
  try {
    wait(job, progress);
  } catch (...) {
    stop(job);
    throw;
  }
}

std::tuple<bool, std::vector<Message>, std::string>
compile(const nb::bytes &model, std::string name, std::string file,
        std::vector<std::string> options, const nb::object &progress) {
  auto job = std::make_shared<Job>();
  job->model.assign(model.c_str(), model.size());
  job->name = std::move(name);
  job->work = [options = std::move(options), file = std::move(file)](
                  Job &job, const BaechiCompileListener &listener) {
    return emit(job, options, file, listener);
  };
  run(job, progress);
  std::lock_guard lock(job->mutex);
  return {job->end == BaechiCompiled, std::move(job->messages),
          std::move(job->text)};
}

std::tuple<bool, std::vector<Message>, std::string, std::string>
transform(const nb::bytes &model, std::string name, std::string pipeline,
          std::string form) {
  auto job = std::make_shared<Job>();
  job->model.assign(model.c_str(), model.size());
  job->name = std::move(name);
  job->work = [pipeline = std::move(pipeline), form = std::move(form)](
                  Job &job, const BaechiCompileListener &listener) {
    auto gave = [](void *user, const char *text, size_t size) {
      static_cast<Job *>(user)->result.assign(text, size);
    };
    return baechiTransform(job.model.data(), job.model.size(), job.name.c_str(),
                           pipeline.c_str(), form.c_str(), gave, &job,
                           &listener);
  };
  run(job, nb::none());
  std::lock_guard lock(job->mutex);
  return {job->end == BaechiCompiled, std::move(job->messages),
          std::move(job->text), std::move(job->result)};
}

nb::object takeKept(const std::string &folder, const nb::bytes &key) {
  std::optional<std::string> found;
  auto gave = [](void *user, const char *bytes, size_t size) {
    static_cast<std::optional<std::string> *>(user)->emplace(bytes, size);
  };
  {
    nb::gil_scoped_release unlocked;
    baechiTakeKept(folder.c_str(), key.c_str(), key.size(), gave, &found,
                   nullptr);
  }
  return found ? nb::object(nb::bytes(found->data(), found->size()))
               : nb::none();
}

void keep(const std::string &folder, const nb::bytes &key,
          const nb::bytes &bytes) {
  nb::gil_scoped_release unlocked; // the caller holds the bytes
  baechiKeep(folder.c_str(), key.c_str(), key.size(), bytes.c_str(),
             bytes.size(), nullptr);
}

/// For the end of the process.
void waitForAbandoned() {
  nb::gil_scoped_release unlocked;
  std::lock_guard all(abandonedMutex);
  for (const std::shared_ptr<Job> &job : abandoned) {
    std::unique_lock lock(job->mutex);
    job->changed.wait(lock, [&] { return job->ended; });
  }
  abandoned.clear();
}
} // namespace

NB_MODULE(_compiler, m) {
  m.doc() =
      "The compiler within this process; the public interface is `baechi`.";
  m.def("compile", &compile, "model"_a, "name"_a, "file"_a, "options"_a,
        "progress"_a.none(),
        "Writes the step library of a model by options, each as NAME=VALUE. "
        "Gives "
        "whether it was compiled, the messages, and the same as baechi-run "
        "writes "
        "them.");
  m.def("transform", &transform, "model"_a, "name"_a, "pipeline"_a, "form"_a,
        "Runs passes over a module and gives it in a form. Gives whether that "
        "was done, the messages, the same as baechi-opt writes them, and the "
        "text.");
  m.def("take_kept", &takeKept, "folder"_a, "key"_a,
        "The bytes that this compiler has kept in a store by a key, or None.");
  m.def("keep", &keep, "folder"_a, "key"_a, "bytes"_a,
        "Keeps bytes in a store.");
  m.def("wait_for_abandoned", &waitForAbandoned,
        "Waits for compilations that a signal has ended for their callers.");
}
