//===- ManifestFuzzer.cpp - Program manifests of every kind -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Program.h"
#include <cstdlib>

using namespace baechi::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Expected<Program> program = Program::parse(text);
  if (!program ? program.error().message().empty()
               : static_cast<bool>(program->check()))
    std::abort();
  return 0;
}
