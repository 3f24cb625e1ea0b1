//===- Json.cpp - Reading JSON with good errors -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Io/Json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

using namespace baechi::placement::json;

void Cursor::fail(const std::string &what) const {
  throw FormatError(path.empty() ? what : path + ": " + what);
}

std::optional<Cursor> Cursor::find(std::string_view key) const {
  if (!value.is_object())
    fail(fmt::format("must be an object, not {}", value.type_name()));
  auto it = value.find(key);
  if (it == value.end() || it->is_null())
    return std::nullopt;
  return Cursor(*it, path.empty() ? std::string(key)
                                  : fmt::format("{}.{}", path, key));
}

Cursor Cursor::operator[](std::string_view key) const {
  if (auto member = find(key))
    return *member;
  fail(fmt::format("the member '{}' is missing: add it", key));
}

void Cursor::forEach(const std::function<void(size_t, Cursor)> &visit) const {
  if (!value.is_array())
    fail(fmt::format("must be an array, not {}", value.type_name()));
  for (size_t i = 0; i < value.size(); ++i)
    visit(i, Cursor(value[i], fmt::format("{}[{}]", path, i)));
}

void Cursor::forEachMember(
    const std::function<void(const std::string &, Cursor)> &visit) const {
  if (!value.is_object())
    fail(fmt::format("must be an object, not {}", value.type_name()));
  for (const auto &[key, member] : value.items())
    visit(key, Cursor(member, fmt::format("{}.{}", path, key)));
}

void Cursor::onlyKeys(std::initializer_list<std::string_view> keys) const {
  if (!value.is_object())
    fail(fmt::format("must be an object, not {}", value.type_name()));
  for (const auto &[key, member] : value.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      fail(fmt::format("unknown member '{}': the members are {}", key,
                       fmt::join(keys, ", ")));
}

int64_t Cursor::integer() const {
  if (!value.is_number_integer())
    fail(fmt::format("must be an integer, not {}", value.is_number_float()
                                                       ? value.dump()
                                                       : value.type_name()));
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    fail(fmt::format("{} does not fit 64 bits: check its unit", value.dump()));
  return value.get<int64_t>();
}

int32_t Cursor::index() const {
  int64_t number = integer();
  if (number < std::numeric_limits<int32_t>::min() ||
      number > std::numeric_limits<int32_t>::max())
    fail(fmt::format("{} does not fit 32 bits", number));
  return static_cast<int32_t>(number);
}

bool Cursor::boolean() const {
  if (!value.is_boolean())
    fail(fmt::format("must be true or false, not {}", value.type_name()));
  return value.get<bool>();
}

std::string Cursor::string() const {
  if (!value.is_string())
    fail(fmt::format("must be a string, not {}", value.type_name()));
  return value.get<std::string>();
}

std::string
baechi::placement::json::parse(std::string_view text, const std::string &name,
                               std::string_view format,
                               const std::function<void(Cursor)> &read) try {
  nlohmann::json document = nlohmann::json::parse(text);
  Cursor root(document, "");
  std::string actual = root["format"].string();
  if (actual != format)
    root["format"].fail(
        fmt::format("is '{}', but this must be a {} file", actual, format));
  if (int64_t version = root["version"].integer(); version != 1)
    root["version"].fail(
        fmt::format("is {}, but only version 1 is known", version));
  read(root);
  return "";
} catch (const nlohmann::json::exception &e) {
  return fmt::format("{}: not valid JSON: {}", name, e.what());
} catch (const FormatError &e) {
  return fmt::format("{}: {}", name, e.what());
} catch (const std::exception &e) {
  return fmt::format("{}: cannot be read: {}", name, e.what());
}
