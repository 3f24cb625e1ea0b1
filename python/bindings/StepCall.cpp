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

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

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

/// The views of a call, given back at its end.
class Views {
public:
  explicit Views(size_t most) { views.reserve(most); }
  ~Views() {
    for (Py_buffer &view : views)
      PyBuffer_Release(&view);
  }
  Views(const Views &) = delete;
  Views &operator=(const Views &) = delete;

  /// Null where \p object gives none of so many bytes in C's order.
  Py_buffer *take(PyObject *object, int flags, Py_ssize_t bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, flags) != 0) {
      PyErr_Clear(); // the longer way says what is wrong, if anything is
      return nullptr;
    }
    views.push_back(view);
    return view.len == bytes ? &views.back() : nullptr;
  }

private:
  std::vector<Py_buffer> views;
};

class StepCall {
public:
  using Given = std::tuple<nb::object, nb::object, std::optional<bool>,
                           Py_ssize_t, std::string>;

  /// \p call and \p wallNs are functions of a step library, \p step what it
  /// opened. \p arguments: shape, dtype, weak type, bytes and number of each.
  StepCall(uintptr_t call, uintptr_t wallNs, uintptr_t step,
           const std::vector<Given> &given, std::vector<Py_ssize_t> resultBytes,
           nb::object jaxArray, nb::object numpyArray)
      : call(reinterpret_cast<Call>(call)),
        wallNs(reinterpret_cast<WallNs>(wallNs)),
        step(reinterpret_cast<void *>(step)),
        resultBytes(std::move(resultBytes)), jaxArray(std::move(jaxArray)),
        numpyArray(std::move(numpyArray)), aval(nb::str("aval")),
        shapeName(nb::str("shape")), dtypeName(nb::str("dtype")),
        weakName(nb::str("weak_type")), ownerName(nb::str("_owner")),
        valueName(nb::str("_value")) {
    for (const auto &[shape, dtype, weak, bytes, number] : given)
      arguments.push_back(
          {shape, dtype, weak, bytes, numberOf(number), nb::none()});
  }

  /// One step. \p holders: for each argument None, or a weak reference to the
  /// array that lies in its place; the step takes all of these. \p outputs: for
  /// each result None, or an array to write it to.
  ///
  /// None where an argument is not just what the step was compiled for: nothing
  /// has been done then. Else the step's nanoseconds, -1 if it failed.
  nb::object operator()(nb::list leaves, nb::list holders, nb::list outputs) {
    size_t count = arguments.size();
    if (leaves.size() != count || holders.size() != count ||
        outputs.size() != resultBytes.size())
      return nb::none();
    std::vector<const void *> from(count, nullptr);
    std::vector<void *> to(resultBytes.size(), nullptr);
    std::vector<int64_t> numbers(count);
    std::vector<bool> isHeld(count);
    Views views(count + to.size());
    for (size_t i = 0; i < count; ++i) {
      nb::handle leaf = leaves[i], holder = holders[i];
      if (!holder.is_none()) {
        nb::object held = holder();
        isHeld[i] = held.is(leaf);
        if (isHeld[i])
          continue; // it lies there already
        if (!held.is_none())
          return nb::none(); // somebody has it, so it must be copied out
      }
      if (!(from[i] = find(arguments[i], leaf, views, numbers[i])))
        return nb::none();
    }
    for (size_t k = 0; k < to.size(); ++k) {
      nb::handle output = outputs[k];
      if (output.is_none())
        continue;
      Py_buffer *view = views.take(
          output.ptr(), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, resultBytes[k]);
      if (!view)
        return nb::none();
      to[k] = view->buf;
    }
    // From here on the places are the step's, even if a signal ends the call.
    for (size_t i = 0; i < count; ++i) {
      holders[i] = nb::none();
      if (isHeld[i])
        for (const nb::object &name : {ownerName, valueName})
          nb::setattr(leaves[i], name, nb::none());
    }
    int failed;
    int64_t ns;
    {
      nb::gil_scoped_release release;
      failed = call(step, from.data(), to.data());
      ns = wallNs(step);
    }
    return nb::int_(failed ? int64_t(-1) : ns);
  }

private:
  using Call = int (*)(void *, const void *const *, void *const *);
  using WallNs = int64_t (*)(const void *);

  static Number numberOf(const std::string &name) {
    return name == "f32"   ? Number::F32
           : name == "f64" ? Number::F64
           : name == "i32" ? Number::I32
           : name == "i64" ? Number::I64
           : name == "i1"  ? Number::Bool
                           : Number::None;
  }

  /// Where an argument's value lies; null where that is not known.
  const void *find(Argument &argument, nb::handle leaf, Views &views,
                   int64_t &number) {
    PyObject *type = reinterpret_cast<PyObject *>(Py_TYPE(leaf.ptr()));
    bool matches = type == jaxArray.ptr()     ? isSeen(argument, leaf)
                   : type == numpyArray.ptr() ? isSame(argument, leaf, false)
                                              : false;
    if (matches) {
      static const char empty = 0;
      Py_buffer *view =
          views.take(leaf.ptr(), PyBUF_C_CONTIGUOUS, argument.bytes);
      // Arrays of JAX have no buffers of types that Python does not know.
      if (!view && type == jaxArray.ptr())
        if (nb::object array = asNumpy(leaf))
          view = views.take(array.ptr(), PyBUF_C_CONTIGUOUS, argument.bytes);
      return !view ? nullptr : argument.bytes == 0 ? &empty : view->buf;
    }
    return asNumber(argument.number, leaf.ptr(), number) ? &number : nullptr;
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

  const Call call;
  const WallNs wallNs;
  void *const step;
  std::vector<Argument> arguments;
  const std::vector<Py_ssize_t> resultBytes;
  const nb::object jaxArray, numpyArray, aval, shapeName, dtypeName, weakName,
      ownerName, valueName;
};

} // namespace

void baechi::python::defineStepCall(nb::module_ &m) {
  nb::class_<StepCall>(m, "StepCall")
      .def(nb::init<uintptr_t, uintptr_t, uintptr_t,
                    const std::vector<StepCall::Given> &,
                    std::vector<Py_ssize_t>, nb::object, nb::object>(),
           "call"_a, "wall_ns"_a, "step"_a, "arguments"_a, "result_bytes"_a,
           "jax_array"_a, "numpy_array"_a)
      .def("__call__", &StepCall::operator(), "leaves"_a, "holders"_a,
           "outputs"_a);
}
