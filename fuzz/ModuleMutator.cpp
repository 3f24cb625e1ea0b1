//===- ModuleMutator.cpp - Modules that still parse, mostly -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libFuzzer's hooks for mutation: lines are dropped, doubled, moved and taken
// from another module; a token is replaced by one of its kind, from the module,
// the other module or a list of those that matter here.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <random>

using llvm::SmallVector;
using llvm::StringRef;

namespace {
using Random = std::minstd_rand;

/// Replacements, a list each kind of token.
constexpr StringRef numbers[] = {"0",
                                 "1",
                                 "2",
                                 "3",
                                 "7",
                                 "64",
                                 "-1",
                                 "1000",
                                 "65536",
                                 "4611686018427387904",
                                 "9223372036854775807",
                                 "-9223372036854775808",
                                 "9223372036854775808"};
constexpr StringRef types[] = {"tensor<4xf32>",
                               "tensor<0xf32>",
                               "tensor<f32>",
                               "tensor<?xf32>",
                               "tensor<*xf32>",
                               "tensor<4611686018427387904xf32>",
                               "tensor<3037000500x3037000500xi1>",
                               "tensor<4xcomplex<f32>>",
                               "tensor<4xindex>",
                               "tensor<2x!other.type>",
                               "vector<4xf32>",
                               "memref<4xf32>",
                               "f32",
                               "i1",
                               "index",
                               "none",
                               "!llvm.ptr",
                               "!other.type",
                               "tuple<tensor<4xf32>, i32>",
                               "!baechi.token",
                               "complex<f64>",
                               "!baechi.future<tensor<4xf32>>",
                               "tensor<4xf32, #other.layout>"};
constexpr StringRef attributes[] = {
    "baechi.device = \"host0\"",
    "baechi.device = \"nowhere\"",
    "baechi.device = 3 : i64",
    "baechi.pin = \"host1\"",
    "baechi.group = \"g\"",
    "baechi.name = \"x\"",
    "baechi.start = 0 : i64",
    "baechi.start = 9223372036854775807 : i64",
    "baechi.cost = #baechi.cost<time_ns = {host = 5}, scratch = 0>",
    "baechi.cost = #baechi.cost<time_ns = {}, scratch = 0>",
    "baechi.cost = #baechi.cost<time_ns = {host = 9223372036854775807}, "
    "scratch = 9223372036854775807>",
    "baechi.sends = [#baechi.transfer<result = 0, from = \"host0\", "
    "to = \"host1\", start = 0, end = 5>]",
    "baechi.updated_by = 0 : i64",
    "baechi.offset = array<i64: 0>",
    "baechi.argument = 0 : i64",
    "baechi.result = 0 : i64",
    "baechi.kernel",
    "baechi.kernel_scratch = 64 : i64",
    "baechi.implementation = \"generated\"",
    "baechi.may_alias = array<i64: 0>",
    "baechi.init = {kind = \"constant\", value = 1 : i64}",
    "baechi.arena = #baechi.arena<bytes = 64, resident = 0, live = 0, limit = "
    "64>"};
constexpr StringRef operations[] = {
    "%n0 = \"other.make\"() : () -> tensor<4xf32>",
    "\"other.effect\"() : () -> ()",
    "%n1 = \"other.graph\"() ({\n}) : () -> tensor<4xf32>",
    "%n2 = arith.constant dense<1.0> : tensor<4xf32>",
    "%n3 = baechi.recv from \"host0\" queue 0 seq 0 : "
    "!baechi.future<tensor<4xf32>>",
    "%n4 = \"other.token\"() : () -> !baechi.token",
    "%n5 = tensor.empty() : tensor<4xf32>",
    "func.func private @other(tensor<4xf32>) -> tensor<4xf32>",
    "llvm.func @native(i32) -> i32",
    "module @host0 attributes {baechi.device = \"host0\"} {\n}"};

struct Token {
  size_t begin, end;
  enum Kind { Other, Number, Value, Symbol, Type, Text, Name } kind;
};

bool inWord(char c) {
  return llvm::isAlnum(c) || StringRef("_.$-").contains(c);
}

/// The tokens that are worth replacing.
SmallVector<Token> tokensOf(StringRef text) {
  SmallVector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    Token::Kind kind = Token::Other;
    char c = text[at];
    if (c == '"') {
      end = std::min(text.find('"', at + 1), text.size() - 1) + 1;
      kind = Token::Text;
    } else if (c == '%' || c == '@' || c == '!') {
      for (++end; end < text.size() && (inWord(text[end]) || text[end] == ':');)
        ++end;
      kind = c == '%' ? Token::Value : c == '@' ? Token::Symbol : Token::Type;
    } else if (llvm::isDigit(c)) {
      while (end < text.size() && llvm::isDigit(text[end]))
        ++end;
      kind = Token::Number;
    } else if (llvm::isAlpha(c)) {
      while (end < text.size() && inWord(text[end]))
        ++end;
      kind = Token::Name;
    }
    StringRef word = text.slice(at, end);
    if ((kind == Token::Name || kind == Token::Type) &&
        text.substr(end).starts_with("<") &&
        (word == "tensor" || word == "vector" || word == "memref" ||
         word.starts_with("!"))) {
      int depth = 0;
      do {
        depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
        ++end;
      } while (end < text.size() && depth > 0 && text[end] != '\n');
      kind = Token::Type;
    }
    if (kind == Token::Name &&
        (word == "f32" || word == "f64" || word == "i32" || word == "i64" ||
         word == "index"))
      kind = Token::Type;
    end = std::max(end, at + 1);
    if (kind != Token::Other)
      tokens.push_back({at, end, kind});
    at = end;
  }
  return tokens;
}

class Mutator {
public:
  Mutator(unsigned seed, StringRef other) : random(seed), other(other) {}

  std::string run(StringRef text) {
    std::string result = text.str();
    for (size_t i = 0, n = 1 + below(3); i < n; ++i)
      result = below(3) ? changeToken(result) : changeLines(result);
    return result;
  }

private:
  size_t below(size_t n) { return random() % std::max<size_t>(n, 1); }

  template <typename List> auto pick(const List &list) {
    return list[below(std::size(list))];
  }

  std::string changeToken(StringRef text) {
    SmallVector<Token> tokens = tokensOf(text);
    if (tokens.empty())
      return text.str();
    Token token = pick(tokens);
    if (below(6) == 0)
      return addAttribute(text);
    std::string with;
    if (token.kind == Token::Number && below(2))
      with = pick(numbers).str();
    else if (token.kind == Token::Type && below(2))
      with = pick(types).str();
    if (with.empty()) {
      StringRef from = below(2) && !other.empty() ? other : text;
      SmallVector<StringRef> same;
      for (Token candidate : tokensOf(from))
        if (candidate.kind == token.kind)
          same.push_back(from.slice(candidate.begin, candidate.end));
      if (same.empty())
        return text.str();
      with = pick(same).str();
    }
    // All uses of a type or a name, as a person would change them, or one.
    StringRef old = text.slice(token.begin, token.end);
    std::string result = text.take_front(token.begin).str() + with;
    StringRef rest = text.drop_front(token.end);
    if (below(2) == 0 &&
        (token.kind == Token::Type || token.kind == Token::Symbol ||
         token.kind == Token::Text))
      while (true) {
        auto [before, after] = rest.split(old);
        result += before;
        if (before.size() == rest.size())
          return result;
        result += with;
        rest = after;
      }
    return result + rest.str();
  }

  /// Into one of the dictionaries that are there, or a new one of an operation.
  std::string addAttribute(StringRef text) {
    SmallVector<size_t> places;
    for (size_t at = 0; at + 1 < text.size(); ++at)
      if (text[at] == '{' && (llvm::isAlpha(text[at + 1])))
        places.push_back(at + 1);
    if (!places.empty() && below(2)) {
      size_t at = pick(places);
      return (text.take_front(at) + pick(attributes) + ", " + text.substr(at))
          .str();
    }
    places.clear();
    for (size_t at = text.find(" : "); at != StringRef::npos;
         at = text.find(" : ", at + 1))
      places.push_back(at);
    for (size_t at = text.find("xf32>"); at != StringRef::npos;
         at = text.find("xf32>", at + 1))
      places.push_back(at + 5);
    if (places.empty())
      return text.str();
    size_t at = pick(places);
    return (text.take_front(at) + " {" + pick(attributes) + "}" +
            text.substr(at))
        .str();
  }

  std::string changeLines(StringRef text) {
    SmallVector<StringRef> lines, others;
    text.split(lines, '\n');
    other.split(others, '\n');
    size_t at = below(lines.size()), to = below(lines.size());
    StringRef line = lines[at];
    switch (below(others.empty() ? 4 : 5)) {
    case 0:
      lines.erase(lines.begin() + at);
      break;
    case 1:
      lines.insert(lines.begin() + to, line);
      break;
    case 2:
      std::swap(lines[at], lines[to]);
      break;
    case 3:
      lines.insert(lines.begin() + to, pick(operations));
      break;
    default: {
      size_t from = below(others.size()), n = 1 + below(8);
      lines.insert(lines.begin() + to, others.begin() + from,
                   others.begin() + std::min(from + n, others.size()));
    }
    }
    return llvm::join(lines, "\n");
  }

  Random random;
  StringRef other;
};

size_t store(const std::string &text, uint8_t *out, size_t maxSize) {
  size_t size = std::min(text.size(), maxSize);
  std::memcpy(out, text.data(), size);
  return size;
}
} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  return store(Mutator(seed, "").run(text), data, maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size,
                                            const uint8_t *otherData,
                                            size_t otherSize, uint8_t *out,
                                            size_t maxSize, unsigned seed) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  StringRef other(reinterpret_cast<const char *>(otherData), otherSize);
  return store(Mutator(seed, other).run(text), out, maxSize);
}
