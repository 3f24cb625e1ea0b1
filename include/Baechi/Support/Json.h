//===- Json.h - Reading JSON with good errors -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A cursor into a JSON document that knows its path, so that every error names
/// the place. Errors travel as FormatError inside the readers; `parse` turns
/// all of them into a message.
///
/// Files of a million operators are long arrays of small objects: elements of
/// such arrays are handed over one by one as they are read, and not kept.
///
/// Below both the placement library and the runtime, each of which holds it.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_SUPPORT_JSON_H
#define BAECHI_SUPPORT_JSON_H

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::support::json {

struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Kind : uint8_t {
  Null,
  Boolean,
  Integer,
  Large, ///< an integer beyond 64 bits with a sign
  Float,
  String,
  Array,
  Object,
};

/// Values in the order of the text: flat, each before its members.
struct Document {
  /// A piece of `text`.
  struct Piece {
    uint32_t begin = 0, size = 0;
  };
  struct Value {
    Kind kind = Kind::Null;
    int32_t parent = -1;
    int32_t next = -1; ///< the parent's next member or element
    int32_t size = 0;  ///< members or elements
    int64_t number = 0;
    Piece key = {};   ///< of an object's member
    Piece token = {}; ///< a string; a number that is no 64-bit integer
  };
  std::vector<Value> values;
  std::string text;

  std::string_view view(Piece piece) const {
    return std::string_view(text).substr(piece.begin, piece.size);
  }
  /// "ops[3] 'matmul'.time_ns": where a value is; objects in arrays show their
  /// names.
  std::string path(int32_t value) const;
};

class Cursor {
public:
  Cursor(const Document &document, int32_t at) : document(&document), at(at) {}

  /// The member \p key of an object; an error when it is missing.
  Cursor operator[](std::string_view key) const;
  /// The same; nullopt when it is missing or null.
  std::optional<Cursor> find(std::string_view key) const;
  /// Calls \p visit for every element of an array.
  template <typename Visit> void forEach(Visit visit) const {
    expect(Kind::Array);
    forEachChild(visit);
  }
  /// Calls \p visit for every member of an object, with its key.
  template <typename Visit> void forEachMember(Visit visit) const {
    expect(Kind::Object);
    forEachChild([&](Cursor member) { visit(member.key(), member); });
  }
  /// Rejects a member that is not one of \p keys, or comes twice: a misspelt
  /// name must not be ignored.
  void onlyKeys(std::initializer_list<std::string_view> keys) const {
    match({keys.begin(), keys.size()}, nullptr);
  }
  /// The same, with what `find` says of each of \p keys: faster where there
  /// are many.
  template <size_t N>
  std::array<std::optional<Cursor>, N>
  members(const std::string_view (&keys)[N]) const {
    std::array<std::optional<Cursor>, N> found;
    match(keys, found.data());
    return found;
  }
  void expect(Kind kind) const;

  /// What \p read makes of every element of an array.
  template <typename Read>
  auto list(Read read) const -> std::vector<decltype(read(*this))> {
    std::vector<decltype(read(*this))> items;
    items.reserve(size());
    forEach([&](const Cursor &element) { items.push_back(read(element)); });
    return items;
  }

  bool isObject() const { return value().kind == Kind::Object; }
  size_t size() const { return static_cast<size_t>(value().size); }
  int64_t integer() const;
  /// An integer that fits 32 bits.
  int32_t index() const;
  /// An integer that is not negative.
  int64_t natural() const;
  int32_t naturalIndex() const;
  bool boolean() const;
  std::string string() const;

  [[noreturn]] void fail(const std::string &what) const;

private:
  void match(std::span<const std::string_view> keys,
             std::optional<Cursor> *found) const;
  const Document::Value &value() const { return document->values[at]; }
  std::string_view key() const { return document->view(value().key); }
  /// -1 if there is none.
  int32_t firstChild() const {
    // Of an array whose elements were not kept none is left.
    bool kept = static_cast<size_t>(at) + 1 < document->values.size() &&
                document->values[at + 1].parent == at;
    return kept ? at + 1 : -1;
  }
  template <typename Visit> void forEachChild(Visit visit) const {
    for (int32_t k = firstChild(); k >= 0; k = document->values[k].next)
      visit(Cursor(*document, k));
  }

  const Document *document;
  int32_t at;
};

/// An array of the root whose elements `visit` gets, with their positions,
/// while the text is being read; `read` finds it empty.
struct Elements {
  std::string_view key;
  std::function<void(size_t, Cursor)> visit;
};

/// Parses \p text, a file of the given format ("baechi-graph") and version 1,
/// and hands its root to \p read. Returns what went wrong, empty if nothing.
std::string parse(std::string_view text, const std::string &name,
                  std::string_view format,
                  const std::vector<Elements> &elements,
                  const std::function<void(Cursor)> &read);

/// Appends a string as JSON. Throws what is not UTF-8.
void appendQuoted(std::string &text, std::string_view string);

} // namespace baechi::support::json

#endif // BAECHI_SUPPORT_JSON_H
