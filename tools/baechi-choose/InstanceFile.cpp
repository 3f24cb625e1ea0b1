//===- InstanceFile.cpp - Reads what baechi-choose is given -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InstanceFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

using namespace baechi::placement;

namespace {

/// More than any instance needs; stops a file made to fill the memory.
constexpr size_t maxBytes = size_t(2) << 30;

std::string inflate(const std::string &path, std::string &text) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code))
    return code ? code.message() : "it is not a file; name one";
  // Reads what is not compressed as it is.
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"),
                                                  gzclose);
  if (!file)
    return std::strerror(errno);
  std::vector<char> buffer(size_t(1) << 20);
  int count = 0;
  while ((count = gzread(file.get(), buffer.data(),
                         static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > maxBytes)
      return fmt::format("it holds more than {} bytes", maxBytes);
  }
  int state = Z_OK;
  const char *message = gzerror(file.get(), &state);
  return state == Z_OK || state == Z_STREAM_END
             ? ""
             : fmt::format("its data is damaged: {}", message);
}

} // namespace

std::string readBytes(const std::string &path, std::string &text) {
  std::string error = inflate(path, text);
  return error.empty() ? "" : fmt::format("{}: {}", path, error);
}

std::string readInstance(const std::string &path, ChoiceProgram &program) {
  std::string text;
  if (std::string error = readBytes(path, text); !error.empty())
    return error;
  return parseChoiceProgram(text, path, program);
}

std::string readChoice(const std::string &path, Choice &choice) {
  std::string text;
  if (std::string error = readBytes(path, text); !error.empty())
    return error;
  nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array())
    return fmt::format("{}: it must be a list of integers", path);
  choice.clear();
  for (const nlohmann::json &value : list) {
    if (!value.is_number_integer() || value < 0 || value > 1'000'000)
      return fmt::format("{}: entry {} must be the number of a strategy, not "
                         "{}",
                         path, choice.size(), value.dump());
    choice.push_back(value.get<int32_t>());
  }
  return "";
}

std::string formatChoice(const Choice &choice) {
  return fmt::format("[{}]\n", fmt::join(choice, ", "));
}
