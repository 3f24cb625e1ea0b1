//===- Main.h - The main function of tools with CLI11 -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_MAIN_H
#define BAECHI_TOOLS_MAIN_H

#include <CLI/CLI.hpp>
#include <exception>
#include <fmt/core.h>

namespace baechi {

/// Parses the arguments that \p app defines and calls \p run; what either
/// throws is given to \p fail.
template <typename Run, typename Fail>
int runTool(CLI::App &app, int argc, char **argv, Run &&run, Fail &&fail) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    return app.exit(e);
  } catch (const CLI::ParseError &e) {
    return fail(fmt::format("{} (see --help)", e.what()));
  }
  try {
    return run();
  } catch (const std::exception &e) {
    return fail(e.what());
  }
}

} // namespace baechi

#endif // BAECHI_TOOLS_MAIN_H
