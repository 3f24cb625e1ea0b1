//===- Store.cpp - Files that appear whole and grow together ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

using namespace baechi::placement;

namespace {

constexpr mode_t permissions = 0777;
constexpr int mostLinks = 40;

/// The file that a link leads to, whether it is there or not.
std::string resolve(const std::string &path) {
  std::filesystem::path place = path;
  std::error_code failed;
  for (int i = 0; i < mostLinks; ++i) {
    std::filesystem::path next = std::filesystem::read_symlink(place, failed);
    if (failed)
      break;
    place = place.parent_path() / next;
  }
  return place.string();
}

std::string folderOf(const std::string &path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Writes all of \p bytes and closes the file. A full disk may show only at the
/// end.
std::string writeAndClose(int file, std::string_view bytes) {
  int failed = file < 0 ? errno : 0;
  while (!failed && !bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count >= 0)
      bytes.remove_prefix(size_t(count));
    else if (errno != EINTR)
      failed = errno;
  }
  if (file >= 0 && ::close(file) != 0 && !failed)
    failed = errno;
  return failed ? std::strerror(failed) : "";
}

/// Neither this user's nor the administrator's. The administrator meets files
/// of others everywhere, in containers above all.
bool isForeign(uid_t owner) {
  return owner != ::geteuid() && owner != 0 && ::geteuid() != 0;
}

/// A name beside \p target that no other file has.
std::string temporaryFor(const std::string &target) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}.{}.{}.new", target, ::getpid(), count++);
}

/// Why a file or folder of that state could hold others' code.
std::string whyOthersCode(const struct stat &state) {
  if (state.st_uid != ::geteuid())
    return "it belongs to another user; use one of your own";
  if (state.st_mode & (S_IWGRP | S_IWOTH))
    return fmt::format("others may write it (mode {:o}); take that away (chmod "
                       "go-w) if you trust what it holds",
                       unsigned(state.st_mode & permissions));
  return "";
}

std::string readAll(int file, std::string &bytes, size_t count) {
  bytes.resize(count);
  size_t done = 0;
  while (done < count) {
    ssize_t got = ::read(file, bytes.data() + done, count - done);
    if (got == 0)
      return "it became shorter while it was read";
    if (got > 0)
      done += size_t(got);
    else if (errno != EINTR)
      return std::strerror(errno);
  }
  return "";
}

} // namespace

StagedFile::StagedFile(const std::string &path)
    : target(resolve(path)), name(temporaryFor(target)) {}

StagedFile::~StagedFile() {
  if (staged)
    ::unlink(name.c_str());
}

std::string StagedFile::write(std::string_view bytes) {
  return writeAndClose(
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644),
      bytes);
}

std::string StagedFile::place() {
  struct stat made, replaced;
  if (::stat(name.c_str(), &made) != 0)
    return std::strerror(errno);
  mode_t mode = made.st_mode;
  if (::stat(target.c_str(), &replaced) == 0) {
    if (!S_ISREG(replaced.st_mode))
      return "it is not a regular file";
    // A file that this user may not write is not replaced, either.
    if (::access(target.c_str(), W_OK) != 0)
      return std::strerror(errno);
    mode = replaced.st_mode;
  }
  if (::chmod(name.c_str(), mode & permissions & ~mode_t(S_IWOTH)) != 0 ||
      std::rename(name.c_str(), target.c_str()) != 0)
    return std::strerror(errno);
  staged = false;
  return "";
}

std::string baechi::placement::writeWhole(const std::string &path,
                                          std::string_view bytes) {
  struct stat there;
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return writeAndClose(::open(path.c_str(), O_WRONLY | O_CLOEXEC), bytes);
  StagedFile file(path);
  std::string error = file.write(bytes);
  return error.empty() ? file.place() : error;
}

std::string baechi::placement::whyUntrusted(const std::string &path) {
  std::string target = resolve(path), folder = folderOf(target);
  struct stat file, around;
  if (::stat(target.c_str(), &file) == 0) {
    if (!S_ISREG(file.st_mode))
      return "";
    if (file.st_mode & S_IWOTH)
      return "everybody may write it; take that away (chmod o-w) if you trust "
             "what it holds";
    if (isForeign(file.st_uid))
      return "it belongs to another user; copy it if you trust what it holds";
  }
  if (::stat(folder.c_str(), &around) != 0)
    return "";
  // In a sticky folder, as /tmp is, only owners replace their files.
  if ((around.st_mode & S_IWOTH) && !(around.st_mode & S_ISVTX))
    return "everybody may write its folder; take that away (chmod o-w) or use "
           "another folder";
  if (isForeign(around.st_uid))
    return "its folder belongs to another user; use another folder";
  return "";
}

std::string baechi::placement::whyUnsafeForCode(const std::string &folder) {
  struct stat state;
  if (::stat(folder.c_str(), &state) != 0)
    return std::strerror(errno);
  return whyOthersCode(state);
}

CodeFile baechi::placement::readCode(const std::string &path,
                                     size_t mostBytes) {
  CodeFile result;
  struct stat state;
  // Looked at before it is opened: to open a device can be to use it.
  if (::lstat(path.c_str(), &state) != 0) {
    result.isMissing = errno == ENOENT;
    result.error = std::strerror(errno);
    return result;
  }
  int file = -1;
  if (S_ISREG(state.st_mode)) {
    file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || ::fstat(file, &state) != 0)
      result.error = std::strerror(errno);
  }
  if (result.error.empty()) {
    if (!S_ISREG(state.st_mode))
      result.error = "it is no regular file";
    else if (size_t(state.st_size) > mostBytes)
      result.error = fmt::format("it has {} bytes, more than the {} of a store",
                                 state.st_size, mostBytes);
    else
      result.error = whyOthersCode(state);
  }
  if (result.error.empty())
    result.error = readAll(file, result.bytes, size_t(state.st_size));
  if (result.error.empty()) {
    struct timespec times[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
    (void)::futimens(file, times); // a store that is only read stays so
  }
  if (file >= 0)
    ::close(file);
  return result;
}

std::string baechi::placement::writeCode(const std::string &path,
                                         std::string_view bytes) {
  std::string temporary = temporaryFor(path);
  std::string error = writeAndClose(
      ::open(temporary.c_str(),
             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600),
      bytes);
  if (error.empty() && std::rename(temporary.c_str(), path.c_str()) != 0)
    error = std::strerror(errno);
  if (!error.empty())
    ::unlink(temporary.c_str());
  return error;
}

StoreLock::StoreLock(const std::string &path, double seconds) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(seconds));
  file = ::open((resolve(path) + ".lock").c_str(),
                O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    reason = fmt::format("cannot lock it: {}", std::strerror(errno));
    return;
  }
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      reason = fmt::format("cannot lock it: {}", std::strerror(errno));
    else if (Clock::now() >= end)
      reason = fmt::format("another process has held its lock for {:g} seconds",
                           seconds);
    if (!reason.empty())
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

StoreLock::~StoreLock() {
  if (file >= 0)
    ::close(file);
}
