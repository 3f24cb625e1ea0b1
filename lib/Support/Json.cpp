//===- Json.cpp - Reading JSON with good errors -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Support/Json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

using namespace baechi::support::json;

namespace {

std::string nameOf(Kind kind) {
  switch (kind) {
  case Kind::Null:
    return "null";
  case Kind::Boolean:
    return "boolean";
  case Kind::Integer:
  case Kind::Large:
  case Kind::Float:
    return "number";
  case Kind::String:
    return "string";
  case Kind::Array:
    return "array";
  case Kind::Object:
    return "object";
  }
  return "";
}

std::string quoted(std::string_view text, std::string_view before) {
  return std::string(before).append("'").append(text).append("'");
}

/// Fills a document from the parser's events (nlohmann's SAX interface).
class Builder {
public:
  Builder(std::string_view format, const std::vector<Elements> &elements)
      : format(format), elements(elements) {}

  bool null() { return scalar({}); }
  bool boolean(bool b) { return scalar({.kind = Kind::Boolean, .number = b}); }
  bool number_integer(int64_t n) {
    return scalar({.kind = Kind::Integer, .number = n});
  }
  bool number_unsigned(uint64_t n) {
    if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return scalar({.kind = Kind::Large, .token = keep(std::to_string(n))});
    return number_integer(static_cast<int64_t>(n));
  }
  bool number_float(double, const std::string &token) {
    return scalar({.kind = Kind::Float, .token = keep(token)});
  }
  bool string(const std::string &token) {
    return scalar({.kind = Kind::String, .token = keep(token)});
  }
  bool binary(const std::vector<uint8_t> &) { return false; }
  bool start_object(size_t) { return open(Kind::Object); }
  bool start_array(size_t) { return open(Kind::Array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(const std::string &key) {
    nextKey = keep(key);
    return true;
  }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::json::exception &exception) {
    error = exception.what();
    return false;
  }

  void checkFormat();

  Document document;
  std::string error;

private:
  static constexpr int32_t root = 0;

  Document::Piece keep(std::string_view piece) {
    auto begin = static_cast<uint32_t>(document.text.size());
    document.text += piece;
    if (document.text.size() > std::numeric_limits<uint32_t>::max())
      throw FormatError(
          "the strings are too long: keep less beside the arrays");
    return {begin, static_cast<uint32_t>(piece.size())};
  }
  int32_t append(Document::Value value);
  bool scalar(const Document::Value &value);
  bool open(Kind kind);
  bool close();
  void finish(int32_t value);

  std::string_view format;
  const std::vector<Elements> &elements;
  Document::Piece nextKey;
  int32_t current = -1;               ///< the innermost open array or object
  std::vector<int32_t> latest;        ///< per open one: its latest member
  const Elements *streamed = nullptr; ///< whose array is open
  int32_t streamedArray = -1;
};

int32_t Builder::append(Document::Value value) {
  auto id = static_cast<int32_t>(document.values.size());
  value.parent = current;
  value.key = nextKey;
  nextKey = {};
  if (current >= 0) {
    ++document.values[current].size;
    if (latest.back() >= 0)
      document.values[latest.back()].next = id;
    latest.back() = id;
  }
  document.values.push_back(value);
  return id;
}

bool Builder::scalar(const Document::Value &value) {
  finish(append(value));
  return true;
}

bool Builder::open(Kind kind) {
  int32_t parent = current;
  current = append({.kind = kind});
  latest.push_back(-1);
  if (parent != root || kind != Kind::Array ||
      document.values[root].kind != Kind::Object)
    return true;
  std::string_view key = document.view(document.values[current].key);
  auto found = std::find_if(elements.begin(), elements.end(),
                            [&](const Elements &e) { return e.key == key; });
  if (found == elements.end())
    return true;
  checkFormat();
  streamed = &*found;
  streamedArray = current;
  return true;
}

bool Builder::close() {
  int32_t closed = current;
  current = document.values[closed].parent;
  latest.pop_back();
  if (closed == streamedArray) {
    streamed = nullptr;
    streamedArray = -1;
  }
  finish(closed);
  return true;
}

/// Hands over an element of a streamed array, and forgets it.
void Builder::finish(int32_t value) {
  if (!streamed || current != streamedArray)
    return;
  const Document::Value &array = document.values[streamedArray];
  streamed->visit(static_cast<size_t>(array.size) - 1, {document, value});
  document.text.resize(array.key.begin + array.key.size);
  document.values.resize(static_cast<size_t>(streamedArray) + 1);
  latest.back() = -1;
}

/// What is known of the format so far.
void Builder::checkFormat() {
  Cursor at(document, root);
  if (auto actual = at.find("format"); actual && actual->string() != format)
    actual->fail("is '" + actual->string() + "', but this must be a " +
                 std::string(format) + " file");
  if (auto version = at.find("version"); version && version->integer() != 1)
    version->fail("is " + std::to_string(version->integer()) +
                  ", but only version 1 is known");
}

} // namespace

std::string Document::path(int32_t value) const {
  const Value &at = values[value];
  if (at.parent < 0)
    return "";
  std::string text = path(at.parent);
  if (values[at.parent].kind == Kind::Object) {
    text += text.empty() ? "" : ".";
    return text += view(at.key);
  }
  // Of a streamed array only the latest element is there.
  int32_t position = values[at.parent].size - 1;
  for (int32_t k = at.next; k >= 0; k = values[k].next)
    --position;
  text += "[" + std::to_string(position) + "]";
  if (at.kind == Kind::Object && at.size > 0)
    for (int32_t k = value + 1; k >= 0; k = values[k].next)
      if (values[k].kind == Kind::String && view(values[k].key) == "name")
        text += quoted(view(values[k].token), " ");
  return text;
}

void Cursor::fail(const std::string &what) const {
  std::string path = document->path(at);
  throw FormatError(path.empty() ? what : path + ": " + what);
}

void Cursor::expect(Kind kind) const {
  if (value().kind == kind)
    return;
  std::string article =
      kind == Kind::Array || kind == Kind::Object ? "an " : "a ";
  fail("must be " + article + nameOf(kind) + ", not " + nameOf(value().kind));
}

std::optional<Cursor> Cursor::find(std::string_view key) const {
  expect(Kind::Object);
  for (int32_t k = firstChild(); k >= 0; k = document->values[k].next)
    if (Cursor member(*document, k);
        member.key() == key && member.value().kind != Kind::Null)
      return member;
  return std::nullopt;
}

Cursor Cursor::operator[](std::string_view key) const {
  if (auto member = find(key))
    return *member;
  fail(quoted(key, "the member ") + " is missing: add it");
}

/// \p found, if not null, gets the member of each key.
void Cursor::match(std::span<const std::string_view> keys,
                   std::optional<Cursor> *found) const {
  uint64_t seen = 0;
  size_t at = 0; // Members mostly come in the order of the keys.
  forEachMember([&](std::string_view key, const Cursor &member) {
    size_t tried = 0;
    for (; tried < keys.size() && keys[at] != key; ++tried)
      at = at + 1 == keys.size() ? 0 : at + 1;
    if (tried == keys.size()) {
      std::string all;
      for (std::string_view k : keys)
        all += (all.empty() ? "" : ", ") + std::string(k);
      fail(quoted(key, "unknown member ") + ": the members are " + all);
    }
    uint64_t bit = uint64_t(1) << at;
    if (seen & bit)
      fail(quoted(key, "two members are called ") + ": keep one");
    seen |= bit;
    if (found && member.value().kind != Kind::Null)
      found[at] = member;
  });
}

int64_t Cursor::integer() const {
  bool isNumber = value().kind == Kind::Large || value().kind == Kind::Float;
  std::string token(isNumber ? document->view(value().token) : "");
  // The parser takes integers beyond 64 bits for fractions.
  if (isNumber && token.find_first_of(".eE") == token.npos)
    fail(token + " does not fit 64 bits: check its unit");
  if (value().kind != Kind::Integer)
    fail("must be an integer, not " +
         (isNumber ? token : nameOf(value().kind)));
  return value().number;
}

int32_t Cursor::index() const {
  int64_t number = integer();
  if (number < std::numeric_limits<int32_t>::min() ||
      number > std::numeric_limits<int32_t>::max())
    fail(std::to_string(number) + " does not fit 32 bits");
  return static_cast<int32_t>(number);
}

int64_t Cursor::natural() const {
  int64_t number = integer();
  if (number < 0)
    fail("must not be negative, but is " + std::to_string(number));
  return number;
}

int32_t Cursor::naturalIndex() const {
  natural();
  return index();
}

bool Cursor::boolean() const {
  if (value().kind != Kind::Boolean)
    fail("must be true or false, not " + nameOf(value().kind));
  return value().number != 0;
}

std::string Cursor::string() const {
  expect(Kind::String);
  return std::string(document->view(value().token));
}

std::string
baechi::support::json::parse(std::string_view text, const std::string &name,
                             std::string_view format,
                             const std::vector<Elements> &elements,
                             const std::function<void(Cursor)> &read) try {
  // The parser takes it for the end, whatever follows.
  if (size_t at = text.find('\0'); at != text.npos)
    return name + ": not valid JSON: byte " + std::to_string(at) +
           " is zero, which no text has";
  Builder builder(format, elements);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return name + ": not valid JSON: " + builder.error;
  Cursor root(builder.document, 0);
  root["format"].string();
  root["version"].integer();
  builder.checkFormat();
  for (const Elements &array : elements)
    if (auto at = root.find(array.key))
      at->expect(Kind::Array);
  read(root);
  return "";
} catch (const FormatError &e) {
  return name + ": " + e.what();
} catch (const std::exception &e) {
  return name + ": cannot be read: " + e.what();
}

void baechi::support::json::appendQuoted(std::string &text,
                                         std::string_view string) {
  bool plain = std::all_of(string.begin(), string.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  if (!plain) {
    text += nlohmann::json(string).dump();
    return;
  }
  text += '"';
  text += string;
  text += '"';
}
