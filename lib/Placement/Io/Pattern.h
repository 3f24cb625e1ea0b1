//===- Pattern.h - Patterns of operators' names -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_PATTERN_H
#define BAECHI_LIB_PLACEMENT_PATTERN_H

#include <regex.h>

#include <string>

namespace baechi::placement::io {

/// A POSIX extended regular expression that is looked for anywhere in a name.
/// Those are matched without recursion, so that no name can exhaust the stack.
class Pattern {
public:
  explicit Pattern(const std::string &text);
  ~Pattern();
  Pattern(const Pattern &) = delete;
  Pattern &operator=(const Pattern &) = delete;

  /// What is wrong with the text and how to mend it; empty: nothing.
  const std::string &error() const { return message; }
  /// False when there is an error.
  bool occursIn(const std::string &name) const;

private:
  regex_t compiled;
  std::string message;
};

} // namespace baechi::placement::io

#endif // BAECHI_LIB_PLACEMENT_PATTERN_H
