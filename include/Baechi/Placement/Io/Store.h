//===- Store.h - Files that appear whole and grow together ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How the tools write files, and what makes a file a store: one that several
/// processes read and add to, and that nobody else may change. Errors are
/// texts, empty on success, without the file's name.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_IO_STORE_H
#define BAECHI_PLACEMENT_IO_STORE_H

#include <string>
#include <string_view>

namespace baechi::placement {

/// A file that is made under another name in the same folder and then renamed,
/// so that its place holds the old file or the whole new one, whenever it is
/// read and whoever is killed. A link is followed: its target is replaced.
class StagedFile {
public:
  explicit StagedFile(const std::string &path);
  /// Removes the temporary file unless it has been put into its place.
  ~StagedFile();
  StagedFile(const StagedFile &) = delete;
  StagedFile &operator=(const StagedFile &) = delete;

  /// Where to make the file. No other stage has this name.
  const std::string &temporary() const { return name; }
  /// Makes the file of these bytes, readable as the process's mask allows.
  std::string write(std::string_view bytes);
  /// Puts the file into its place, with the permissions of the file that it
  /// replaces, if there is one, and never writable by everybody.
  std::string place();

private:
  std::string target, name;
  bool staged = true;
};

/// Writes a file as a StagedFile; a device or a pipe is written directly.
std::string writeWhole(const std::string &path, std::string_view bytes);

/// Why others than this user and the administrator could have changed the file,
/// or could put another in its place, and the mend; empty when they could not.
/// What is no regular file, a pipe say, is not judged.
std::string whyUntrusted(const std::string &path);

/// Files that hold code, which runs as this user: nobody else may have made or
/// changed them, not for the administrator either.
///
/// Why others could put code into the folder, and the mend; empty when they
/// could not.
std::string whyUnsafeForCode(const std::string &folder);

/// What a file of code holds, or why it is not to be run.
struct CodeFile {
  std::string bytes, error;
  bool isMissing = false;
};
/// Reads a file of code and marks it as used now. Only a regular file of this
/// user's own that nobody else may write, of at most \p mostBytes; anything
/// else, a link or a pipe say, is an error and is neither followed nor waited
/// for.
CodeFile readCode(const std::string &path, size_t mostBytes);
/// Makes the file anew, for this user alone, in the place of whatever is there:
/// a link or a pipe is replaced, not written to.
std::string writeCode(const std::string &path, std::string_view bytes);

/// Keeps other processes, and other locks of this one, from a store as long as
/// it lives: `PATH.lock`, which stays behind.
class StoreLock {
public:
  explicit StoreLock(const std::string &path, double seconds = 10);
  ~StoreLock();
  StoreLock(const StoreLock &) = delete;
  StoreLock &operator=(const StoreLock &) = delete;

  /// Why there is no lock, for example because another process has held it for
  /// all of the time given.
  const std::string &error() const { return reason; }

private:
  int file = -1;
  std::string reason;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_IO_STORE_H
