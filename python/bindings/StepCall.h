//===- StepCall.h - A call of a compiled step, in one call ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PYTHON_STEPCALL_H
#define BAECHI_PYTHON_STEPCALL_H

#include <nanobind/nanobind.h>

namespace baechi::python {

/// The class `StepCall`, for python/baechi/jax/quick.py.
void defineStepCall(nanobind::module_ &m);

} // namespace baechi::python

#endif // BAECHI_PYTHON_STEPCALL_H
