//===- Json.h - Reading JSON with good errors -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A cursor into a JSON document that knows its path, so that every error says
/// where it is. Errors are thrown as `FormatError` inside the readers and
/// leave them as strings.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_JSON_H
#define BAECHI_LIB_PLACEMENT_JSON_H

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace baechi::placement::json {

struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Cursor {
public:
  Cursor(const nlohmann::json &value, std::string path)
      : value(value), path(std::move(path)) {}

  /// The member \p key of an object; an error when it is missing.
  Cursor operator[](std::string_view key) const;
  /// The same; nullopt when it is missing or null.
  std::optional<Cursor> find(std::string_view key) const;
  /// Calls \p visit for every element of an array.
  void forEach(const std::function<void(size_t, Cursor)> &visit) const;
  /// Calls \p visit for every member of an object.
  void forEachMember(
      const std::function<void(const std::string &, Cursor)> &visit) const;
  /// Rejects a member that is not one of \p keys: a misspelt name must not be
  /// ignored.
  void onlyKeys(std::initializer_list<std::string_view> keys) const;

  bool isObject() const { return value.is_object(); }
  size_t size() const { return value.size(); }
  int64_t integer() const;
  /// An integer that fits 32 bits.
  int32_t index() const;
  bool boolean() const;
  std::string string() const;
  /// Adds a name to the path: `ops[3] 'matmul'`.
  Cursor named(const std::string &name) const {
    return {value, path + " '" + name + "'"};
  }

  [[noreturn]] void fail(const std::string &what) const;

private:
  const nlohmann::json &value;
  std::string path;
};

/// Parses \p text, a file of the given format ("baechi-graph") and version 1,
/// and hands its root to \p read. Returns what went wrong, empty if nothing.
std::string parse(std::string_view text, const std::string &name,
                  std::string_view format,
                  const std::function<void(Cursor)> &read);

} // namespace baechi::placement::json

#endif // BAECHI_LIB_PLACEMENT_JSON_H
