//===- Pattern.cpp - Patterns of operators' names ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Io/Pattern.h"

#include <fmt/format.h>

#include <array>

using namespace baechi::placement;
using namespace baechi::placement::io;

namespace {

/// Nesting is parsed by recursion, so that the length bounds the stack.
constexpr size_t maxLength = 1000;

/// What would let a short pattern take any amount of memory or time: counted
/// repetitions are written out when they are compiled, and a match with
/// back-references is found by trial.
std::string unsupported(const std::string &text) {
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '{' && (k == 0 || text[k - 1] != '['))
      return "counted repetitions '{...}' are not supported: write them out, "
             "or [{] for the character";
    if (text[k] != '\\')
      continue;
    ++k;
    if (k < text.size() && text[k] >= '1' && text[k] <= '9')
      return "back-references such as '\\1' are not supported: write a pattern "
             "for every case";
  }
  return "";
}

} // namespace

Pattern::Pattern(const std::string &text) : compiled{} {
  if (text.empty())
    message = "the pattern is empty: write .* for every name";
  else if (text.size() > maxLength)
    message = fmt::format("the pattern has {} characters, {} at most: write "
                          "several lines",
                          text.size(), maxLength);
  else if (text.find('\0') != std::string::npos)
    message = "the pattern has a NUL character: remove it";
  else
    message = unsupported(text);
  if (!message.empty())
    return;
  int code = regcomp(&compiled, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (code == 0)
    return;
  std::array<char, 256> reason{};
  regerror(code, &compiled, reason.data(), reason.size());
  message = fmt::format("'{}' is not a regular expression: {}; put a backslash "
                        "before a special character that stands for itself",
                        text, reason.data());
}

Pattern::~Pattern() {
  if (message.empty())
    regfree(&compiled);
}

bool Pattern::occursIn(const std::string &name) const {
  return message.empty() &&
         regexec(&compiled, name.c_str(), 0, nullptr, 0) == 0;
}
