//===- Bindings.h - The placement library in Python -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The extension module `_placement`: thin. Files, dictionaries and everything
/// for people is Python's (python/baechi/graphs/placing.py); here are the
/// calls, with the interpreter's lock released, and arrays.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PYTHON_BINDINGS_H
#define BAECHI_PYTHON_BINDINGS_H

#include "Baechi/Placement/Session/Place.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <stdexcept>

namespace baechi::python {

namespace nb = nanobind;
using namespace nb::literals;

/// An error of the library, in its own words: `baechi.PlacementError`.
struct PlacementError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Raises \p error unless it is empty.
inline void raiseUnlessEmpty(const std::string &error) {
  if (!error.empty())
    throw PlacementError(error);
}

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// A new numpy array of \p values in this shape.
template <typename T>
nb::ndarray<nb::numpy, T> toArray(std::vector<T> values,
                                  std::initializer_list<size_t> shape) {
  auto *kept = new std::vector<T>(std::move(values));
  nb::capsule owner(
      kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
  return nb::ndarray<nb::numpy, T>(kept->data(), shape, owner);
}
template <typename T> nb::ndarray<nb::numpy, T> toArray(std::vector<T> values) {
  size_t size = values.size();
  return toArray(std::move(values), {size});
}

/// Asks Python now and then for signals, from a call that has released the
/// lock: Ctrl-C ends it. Does nothing on threads other than Python's main one.
class Interrupt {
public:
  bool operator()() {
    auto now = std::chrono::steady_clock::now();
    if (raised || now - asked < std::chrono::milliseconds(50))
      return raised;
    asked = now;
    nb::gil_scoped_acquire lock;
    raised = PyErr_CheckSignals() != 0;
    return raised;
  }
  /// With the lock: raises what a signal's handler has raised.
  void raise() const {
    if (raised)
      throw nb::python_error();
  }

private:
  std::chrono::steady_clock::time_point asked =
      std::chrono::steady_clock::now();
  bool raised = false;
};

/// A graph and a machine that may be shared by results and evaluators.
struct SharedProblem {
  std::shared_ptr<const placement::Problem> problem;
  std::string graphName, machineName; ///< for people
};

/// A placement, and what `place` or `judge` says of it.
struct Result {
  SharedProblem of;
  placement::PlaceOptions options;
  placement::PlaceResult result;
};

/// What `__getstate__` gives, and the result that `__setstate__` makes of it.
nb::tuple stateOf(const SharedProblem &problem);
nb::tuple stateOf(const Result &result);
Result resultOf(const nb::tuple &state);

void defineProblem(nb::module_ &m);
void definePlace(nb::module_ &m);
void defineResult(nb::module_ &m);
void defineEvaluator(nb::module_ &m);

} // namespace baechi::python

#endif // BAECHI_PYTHON_BINDINGS_H
