//===- Environment.h - What programs are started with -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_IO_ENVIRONMENT_H
#define BAECHI_PLACEMENT_IO_ENVIRONMENT_H

#include <string_view>
#include <vector>

namespace baechi::placement {

/// The process's environment, "NAME=value" each, as long as nobody changes it.
///
/// A library that looks for symbols in its own scope first (RTLD_DEEPBIND, as
/// Python loads the compiler) finds the C library's `environ` there. That of a
/// program which is not position-independent, as Debian's Python, is another
/// one, which counts: the C library's stays empty, and so would the
/// environment of whatever is started.
std::vector<std::string_view> environment();

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_IO_ENVIRONMENT_H
