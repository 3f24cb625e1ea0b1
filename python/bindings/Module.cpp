//===- Module.cpp - The extension module ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"
#include "PendingCall.h"
#include "StepCall.h"

using namespace baechi::python;

NB_MODULE(_placement, m) {
  // A registry of another library, as JAX's of pytrees, keeps a program's
  // classes, and with their module its steps, until the interpreter has ended.
  nb::set_leak_warnings(false);
  m.doc() = "Placing graphs on machines; the public interface is `baechi`.";
  auto error =
      nb::exception<PlacementError>(m, "PlacementError", PyExc_ValueError);
  error.attr("__module__") = "baechi";
  error.attr("__doc__") =
      "An input that is not well formed, or a graph that no placement fits; "
      "the text is what the tools print.";
  defineProblem(m);
  defineResult(m);
  definePlace(m);
  defineEvaluator(m);
  definePendingCall(m);
  defineStepCall(m);
}
