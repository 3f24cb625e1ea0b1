//===- Environment.cpp - What programs are started with ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Environment.h"

#include <dlfcn.h>
#include <unistd.h>

std::vector<std::string_view> baechi::placement::environment() {
  // In the order of the program, whose own comes first. It has the C library's
  // name for it; RTLD_DEFAULT means the scope of the library that asks.
  static void *program = ::dlopen(nullptr, RTLD_LAZY);
  auto *found =
      program ? static_cast<char ***>(::dlsym(program, "__environ")) : nullptr;
  std::vector<std::string_view> all;
  for (char **each = found ? *found : environ; each && *each; ++each)
    all.emplace_back(*each);
  return all;
}
