//===- Error.h - Errors as values -------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The runtime reports failures as values: no exception leaves its interface.
/// Both types read like LLVM's, without LLVM.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_ERROR_H
#define BAECHI_RUNTIME_ERROR_H

#include <string>
#include <utility>
#include <variant>

namespace baechi::runtime {

/// Success, or a failure with a message for a person. True when it failed:
///
///   if (Error error = session.step())
///     return error;
class [[nodiscard]] Error {
public:
  /// Success. Does not allocate.
  Error() = default;
  explicit Error(std::string message)
      : failed(true), text(std::move(message)) {}

  explicit operator bool() const { return failed; }
  const std::string &message() const { return text; }

private:
  bool failed = false;
  std::string text;
};

/// A value or the error that kept it from being made. True when it holds the
/// value.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : storage(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() { return *std::get_if<0>(&storage); }
  const T &operator*() const { return *std::get_if<0>(&storage); }
  T *operator->() { return std::get_if<0>(&storage); }
  const T *operator->() const { return std::get_if<0>(&storage); }

  /// The failure; only when there is no value.
  const Error &error() const { return *std::get_if<1>(&storage); }
  Error takeError() { return std::move(*std::get_if<1>(&storage)); }

private:
  std::variant<T, Error> storage;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_ERROR_H
