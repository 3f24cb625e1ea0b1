//===- PendingCall.cpp - A call of a step that may still run ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PendingCall.h"

#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace baechi::python;

void baechi::python::waitFor(
    const std::function<bool(StepQueue::Milliseconds)> &reached) {
  // The first wait is short: most steps are, and a signal may be there already.
  for (int64_t limit = 5;; limit = 50) {
    bool done;
    {
      nb::gil_scoped_release release;
      done = reached(StepQueue::Milliseconds(limit));
    }
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
    if (done)
      return;
  }
}

/// The buffer of the array that \p self becomes.
static int getBuffer(PyObject *self, Py_buffer *view, int flags) {
  PyObject *array = PyObject_CallMethod(self, "__jax_array__", nullptr);
  if (!array)
    return -1;
  int failed = PyObject_GetBuffer(array, view, flags); // which holds the array
  Py_DECREF(array);
  return failed;
}

/// A base of Python's classes: they cannot define the buffer protocol before
/// Python 3.12.
static nb::object makeAwaitedBuffer() {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void *>(getBuffer)}, {0, nullptr}};
  static PyType_Spec spec = {"baechi._placement.AwaitedBuffer", 0, 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return nb::steal(PyType_FromSpec(&spec));
}

void baechi::python::definePendingCall(nb::module_ &m) {
  m.attr("AwaitedBuffer") = makeAwaitedBuffer();
  nb::class_<StepQueue>(m, "StepQueue")
      .def("settle",
           [](StepQueue &self) {
             waitFor([&](auto limit) { return self.waitForAll(limit); });
           })
      .def("end",
           [](StepQueue &self) {
             nb::gil_scoped_release release;
             while (!self.waitForAll(StepQueue::Milliseconds(1000)))
               ;
           })
      .def("hold", &StepQueue::hold, nb::call_guard<nb::gil_scoped_release>())
      .def("release", &StepQueue::release);
  m.def(
      "step_queue",
      [](uintptr_t call, uintptr_t wallNs, uintptr_t error, uintptr_t step,
         uintptr_t lending, uintptr_t usable, uintptr_t overlap,
         uintptr_t overlapLending, size_t devices) {
        return StepQueue::create(
            {reinterpret_cast<decltype(OpenedStep::call)>(call),
             reinterpret_cast<decltype(OpenedStep::wallNs)>(wallNs),
             reinterpret_cast<decltype(OpenedStep::error)>(error),
             reinterpret_cast<void *>(step),
             reinterpret_cast<decltype(OpenedStep::lending)>(lending),
             reinterpret_cast<decltype(OpenedStep::usable)>(usable),
             reinterpret_cast<decltype(OpenedStep::overlap)>(overlap),
             reinterpret_cast<decltype(OpenedStep::overlapLending)>(
                 overlapLending),
             devices});
      },
      "call"_a, "wall_ns"_a, "error"_a, "step"_a, "lending"_a = 0,
      "usable"_a = 0, "overlap"_a = 0, "overlap_lending"_a = 0, "devices"_a = 1,
      "lending, usable, overlap_lending: 0 where arguments are copied. "
      "overlap: 0 where calls run one by one.");
  nb::class_<PendingCall>(m, "PendingCall")
      .def("wait", &PendingCall::wait)
      .def_prop_ro("has_ended", &PendingCall::hasEnded)
      .def_prop_ro("has_failed", &PendingCall::hasFailed)
      .def_prop_ro("was_run", &PendingCall::wasRun)
      .def_prop_ro("wall_ns", &PendingCall::wallNs)
      .def_prop_ro("error", [](const PendingCall &self) {
        // The runtime's text, which may not be UTF-8.
        std::string text = self.error();
        return nb::steal(
            PyUnicode_DecodeUTF8(text.data(), text.size(), "replace"));
      });
}
