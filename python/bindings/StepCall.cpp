//===- StepCall.cpp - A call of a compiled step, in one call ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a small step spends most of its call on: looking at the arguments.
/// Those that are just what the step was compiled for are read where they lie,
/// by the buffer protocol, which waits for them, holds them and refuses those
/// that are deleted, on other devices or not in C's order. Everything else is
/// for Python's longer way (python/baechi/jax/quick.py).
///
//===----------------------------------------------------------------------===//

#include "StepCall.h"

#include "PendingCall.h"
#include "StepQueue.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using namespace baechi::python;

namespace {

/// What a Python number becomes, where one is taken.
enum class Number : uint8_t { None, F32, F64, I32, I64, Bool };

struct Argument {
  nb::object shape; ///< a tuple
  nb::object dtype;
  std::optional<bool> weak; ///< without: it does not matter
  Py_ssize_t bytes;
  Number number;
  /// The type that an array had last time: mostly it is the same object.
  nb::object seen;
};

class StepCall {
public:
  using Given = std::tuple<nb::object, nb::object, std::optional<bool>,
                           Py_ssize_t, std::string>;

  /// \p wallNs is a function of a step library, \p step what it opened, \p
  /// queue that step's. \p given: shape, dtype, weak type, bytes and number of
  /// each argument. \p donated: those whose places results take. \p
  /// pendingArray: the class of results that a queue's calls will write.
  StepCall(uintptr_t wallNs, uintptr_t step, std::shared_ptr<StepQueue> queue,
           const std::vector<Given> &given, std::vector<Py_ssize_t> resultBytes,
           std::vector<size_t> donated, nb::object jaxArray,
           nb::object numpyArray, nb::object pendingArray)
      : wallNs(reinterpret_cast<WallNs>(wallNs)),
        step(reinterpret_cast<void *>(step)), queue(std::move(queue)),
        resultBytes(std::move(resultBytes)), donated(std::move(donated)),
        jaxArray(std::move(jaxArray)), numpyArray(std::move(numpyArray)),
        pendingArray(std::move(pendingArray)), aval(nb::str("aval")),
        shapeName(nb::str("shape")), dtypeName(nb::str("dtype")),
        weakName(nb::str("weak_type")), ownerName(nb::str("_owner")),
        valueName(nb::str("_value")), bufferName(nb::str("_buffer")),
        pendingName(nb::str("_pending")) {
    for (const auto &[shape, dtype, weak, bytes, number] : given)
      arguments.push_back(
          {shape, dtype, weak, bytes, numberOf(number), nb::none()});
  }

  /// One step. \p holders: for each argument None, or a weak reference to the
  /// array that lies in its place; the step takes all of these. \p outputs: for
  /// each result None, or an array to write it to.
  ///
  /// None where an argument is not just what the step was compiled for: nothing
  /// has been done then. Else the step's nanoseconds, -1 if it failed. Nothing
  /// may be in the queue.
  nb::object run(nb::list leaves, nb::list holders, nb::list outputs) {
    Views views(arguments.size() + resultBytes.size());
    QueuedCall places;
    if (!prepare(leaves, holders, outputs, places, views, nullptr))
      return nb::none();
    int failed;
    int64_t ns;
    {
      nb::gil_scoped_release release;
      failed = queue->runNow(places);
      ns = wallNs(step);
    }
    if (places.isLeftBehind)
      views.abandon();
    return nb::int_(failed ? int64_t(-1) : ns);
  }

  /// The same, but only gives the step to the queue, which may have to have
  /// room first. \p previous: the call that has made what lies in the places.
  std::optional<PendingCall> dispatch(nb::list leaves, nb::list holders,
                                      nb::list outputs,
                                      const PendingCall *previous) {
    waitFor([&](auto limit) { return queue->waitForRoom(limit); });
    Views views(arguments.size() + resultBytes.size());
    auto places = std::make_shared<QueuedCall>();
    Source source{previous};
    if (!prepare(leaves, holders, outputs, *places, views, &source))
      return std::nullopt;
    queue->give(places);
    return PendingCall(queue, std::move(places), std::move(views));
  }

private:
  using WallNs = int64_t (*)(const void *);

  /// What a call that is not run at once may take values of.
  struct Source {
    const PendingCall *previous;
  };

  /// False where the call is not for this program, or takes what a call was to
  /// give that has failed; then nothing has changed. \p source: null for a call
  /// that is run before anybody else does anything.
  bool prepare(nb::list leaves, nb::list holders, nb::list outputs,
               QueuedCall &places, Views &views, const Source *source) {
    size_t count = arguments.size();
    if (leaves.size() != count || holders.size() != count ||
        outputs.size() != resultBytes.size())
      return false;
    places.arguments.assign(count, nullptr);
    places.lent.assign(count, 0);
    places.results.assign(resultBytes.size(), nullptr);
    places.numbers.resize(count);
    std::vector<bool> isHeld(count);
    for (size_t i = 0; i < count; ++i) {
      nb::handle leaf = leaves[i], holder = holders[i];
      if (!holder.is_none()) {
        nb::object held = holder();
        isHeld[i] = held.is(leaf);
        if (isHeld[i] &&
            (!source || !source->previous || takes(*source->previous, places)))
          continue; // it lies there already
        if (!held.is_none())
          return false; // somebody has it, so it must be copied out
      }
      places.arguments[i] = find(arguments[i], leaf, places, views, i, source);
      if (!places.arguments[i])
        return false;
    }
    if (isGivenTwice(leaves, isHeld))
      return false;
    for (size_t k = 0; k < resultBytes.size(); ++k) {
      nb::handle output = outputs[k];
      if (output.is_none())
        continue;
      Py_buffer *view = views.take(
          output.ptr(), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, resultBytes[k]);
      if (!view)
        return false;
      places.results[k] = view->buf;
    }
    // From here on the places are the step's, even if a signal ends the call.
    for (size_t i = 0; i < count; ++i) {
      holders[i] = nb::none();
      if (isHeld[i])
        for (const nb::object &name : {ownerName, valueName})
          nb::setattr(leaves[i], name, nb::none());
    }
    return true;
  }

  /// Whether an array that is donated is another argument, too. One that lies
  /// in its place already is found as the other argument.
  bool isGivenTwice(nb::list leaves, const std::vector<bool> &isHeld) const {
    auto isArray = [&](size_t i) {
      auto *type = reinterpret_cast<PyObject *>(Py_TYPE(leaves[i].ptr()));
      return type == jaxArray.ptr() || type == pendingArray.ptr();
    };
    auto moves = [&](size_t i) { return !isHeld[i] && isArray(i); };
    if (std::none_of(donated.begin(), donated.end(), moves))
      return false;
    std::unordered_map<PyObject *, size_t> count;
    for (nb::handle leaf : leaves)
      ++count[leaf.ptr()];
    return std::any_of(donated.begin(), donated.end(), [&](size_t i) {
      return moves(i) && count[leaves[i].ptr()] > 1;
    });
  }

  /// Has the call wait for an earlier one; false if that has failed.
  bool takes(const PendingCall &earlier, QueuedCall &places) const {
    if (earlier.hasFailed())
      return false;
    if (!earlier.hasEnded() &&
        (places.after.empty() || places.after.back() != earlier.queued()))
      places.after.push_back(earlier.queued());
    return true;
  }

  static Number numberOf(const std::string &name) {
    return name == "f32"   ? Number::F32
           : name == "f64" ? Number::F64
           : name == "i32" ? Number::I32
           : name == "i64" ? Number::I64
           : name == "i1"  ? Number::Bool
                           : Number::None;
  }

  /// Where an argument's value lies; null where that is not known.
  const void *find(Argument &argument, nb::handle leaf, QueuedCall &places,
                   Views &views, size_t index, const Source *source) {
    PyObject *type = reinterpret_cast<PyObject *>(Py_TYPE(leaf.ptr()));
    nb::object looked;
    if (type == pendingArray.ptr()) {
      nb::object buffer = nb::getattr(leaf, bufferName);
      nb::object pending = nb::getattr(leaf, pendingName);
      const PendingCall *maker = nullptr;
      if (source && !buffer.is_none() && nb::try_cast(pending, maker) &&
          maker && maker->isOf(*queue)) {
        // Its memory will have the value when this call's turn comes.
        if (!isSeen(argument, leaf) || !takes(*maker, places))
          return nullptr;
        if (!maker->hasEnded())
          places.reads.push_back(maker->queued());
        places.lent[index] = 1;
        return bytesOf(
            views.take(buffer.ptr(), PyBUF_C_CONTIGUOUS, argument.bytes));
      }
      looked = look(leaf);
      if (!looked)
        return nullptr;
      leaf = looked;
      type = reinterpret_cast<PyObject *>(Py_TYPE(leaf.ptr()));
    }
    bool isJax = type == jaxArray.ptr();
    bool matches = isJax                      ? isSeen(argument, leaf)
                   : type == numpyArray.ptr() ? isSame(argument, leaf, false)
                                              : false;
    if (matches) {
      Py_buffer *view =
          views.take(leaf.ptr(), PyBUF_C_CONTIGUOUS, argument.bytes);
      // Arrays of JAX have no buffers of types that Python does not know. Those
      // of a GPU have none either, and stay there on the longer way.
      if (!view && isJax && isOnHost(leaf))
        if (nb::object array = asNumpy(leaf))
          view = views.take(array.ptr(), PyBUF_C_CONTIGUOUS, argument.bytes);
      // Arrays of JAX do not change, and their views keep them. One of NumPy
      // may be changed by another thread.
      places.lent[index] = isJax;
      if (!view || isJax || !source)
        return bytesOf(view);
      // The caller may change its array as soon as it has it back.
      size_t bytes = view->len;
      auto &copy = places.copies.emplace_back(new std::byte[bytes + 1]);
      std::memcpy(copy.get(), view->buf, bytes);
      return copy.get();
    }
    int64_t &number = places.numbers[index];
    return asNumber(argument.number, leaf.ptr(), number) ? &number : nullptr;
  }

  static const void *bytesOf(const Py_buffer *view) {
    static const char empty = 0;
    return !view ? nullptr : view->len == 0 ? &empty : view->buf;
  }

  /// The array of JAX that a result of another step is; null where that failed,
  /// which the longer way tells.
  static nb::object look(nb::handle leaf) {
    PyObject *array = PyObject_CallMethod(leaf.ptr(), "__jax_array__", nullptr);
    if (!array && PyErr_ExceptionMatches(PyExc_Exception))
      PyErr_Clear();
    else if (!array)
      throw nb::python_error(); // Ctrl-C
    return nb::steal(array);
  }

  /// Whether an array of JAX has the argument's type.
  bool isSeen(Argument &argument, nb::handle leaf) {
    nb::object type = nb::getattr(leaf, aval);
    if (type.is(argument.seen))
      return true;
    if (!isSame(argument, type, nb::cast<bool>(nb::getattr(type, weakName))))
      return false;
    argument.seen = type;
    return true;
  }

  bool isSame(const Argument &argument, nb::handle typed, bool weak) const {
    return argument.weak.value_or(weak) == weak &&
           nb::getattr(typed, dtypeName).is(argument.dtype) &&
           nb::getattr(typed, shapeName).equal(argument.shape);
  }

  /// Whether an array's memory is the host's, as DLPack tells it.
  static bool isOnHost(nb::handle leaf) {
    PyObject *place =
        PyObject_CallMethod(leaf.ptr(), "__dlpack_device__", nullptr);
    if (!place)
      PyErr_Clear();
    int64_t kind = 0, number = 0;
    nb::object found = nb::steal(place);
    bool known = found && PyArg_ParseTuple(found.ptr(), "LL", &kind, &number);
    if (found && !known)
      PyErr_Clear();
    return known && kind == 1;
  }

  /// Null where it cannot be: it is deleted, say.
  static nb::object asNumpy(nb::handle leaf) {
    PyObject *array = PyObject_CallMethod(leaf.ptr(), "__array__", nullptr);
    if (!array)
      PyErr_Clear();
    return nb::steal(array);
  }

  /// A number of Python as JAX takes it; false where it does not fit.
  static bool asNumber(Number number, PyObject *value, int64_t &place) {
    auto put = [&](auto converted) {
      std::memcpy(&place, &converted, sizeof(converted));
      return true;
    };
    if (number == Number::F32 && PyFloat_CheckExact(value))
      return put(static_cast<float>(PyFloat_AS_DOUBLE(value)));
    if (number == Number::F64 && PyFloat_CheckExact(value))
      return put(PyFloat_AS_DOUBLE(value));
    if (number == Number::Bool && PyBool_Check(value))
      return put(static_cast<uint8_t>(value == Py_True));
    if ((number != Number::I32 && number != Number::I64) ||
        !PyLong_CheckExact(value))
      return false;
    int overflow = 0;
    long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0)
      return false;
    if (number == Number::I64)
      return put(static_cast<int64_t>(whole));
    return whole >= INT32_MIN && whole <= INT32_MAX &&
           put(static_cast<int32_t>(whole));
  }

  const WallNs wallNs;
  void *const step;
  const std::shared_ptr<StepQueue> queue;
  std::vector<Argument> arguments;
  const std::vector<Py_ssize_t> resultBytes;
  const std::vector<size_t> donated;
  const nb::object jaxArray, numpyArray, pendingArray, aval, shapeName,
      dtypeName, weakName, ownerName, valueName, bufferName, pendingName;
};

} // namespace

void baechi::python::defineStepCall(nb::module_ &m) {
  nb::class_<StepCall>(m, "StepCall")
      .def(nb::init<uintptr_t, uintptr_t, std::shared_ptr<StepQueue>,
                    const std::vector<StepCall::Given> &,
                    std::vector<Py_ssize_t>, std::vector<size_t>, nb::object,
                    nb::object, nb::object>(),
           "wall_ns"_a, "step"_a, "queue"_a, "arguments"_a, "result_bytes"_a,
           "donated"_a, "jax_array"_a, "numpy_array"_a, "pending_array"_a)
      .def("run", &StepCall::run, "leaves"_a, "holders"_a, "outputs"_a)
      .def("dispatch", &StepCall::dispatch, "leaves"_a, "holders"_a,
           "outputs"_a, "previous"_a.none());
}
