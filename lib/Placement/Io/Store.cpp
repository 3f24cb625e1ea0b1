//===- Store.cpp - Files that appear whole and grow together ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Store.h"

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

} // namespace

StagedFile::StagedFile(const std::string &path) : target(resolve(path)) {
  static std::atomic<unsigned> count{0};
  name = fmt::format("{}.{}.{}.new", target, ::getpid(), count++);
}

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
