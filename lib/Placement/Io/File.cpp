//===- File.cpp - Text files, plain or compressed ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Io/Store.h"
#include "Io/Compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <vector>

using namespace baechi::placement;
using namespace baechi::placement::io;

namespace {

/// More than any graph needs; stops a file that was made to fill the memory.
constexpr size_t maxBytes = size_t(4) << 30;

using FilePtr = std::unique_ptr<std::FILE, int (*)(std::FILE *)>;

/// Opens a file, or a pipe that somebody writes to, without waiting.
std::string openInput(const std::string &path, FilePtr &file) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    return std::strerror(errno);
  file.reset(::fdopen(descriptor, "rb"));
  struct stat state;
  if (!file || ::fstat(descriptor, &state) != 0)
    return std::strerror(errno);
  if (S_ISDIR(state.st_mode))
    return "it is a directory; name a file";
  if (S_ISREG(state.st_mode))
    return static_cast<uint64_t>(state.st_size) > maxBytes
               ? fmt::format("it is larger than {} bytes", maxBytes)
               : "";
  if (!S_ISFIFO(state.st_mode))
    return "it is a device; name a file";
  // Where nobody writes, the end is there at once; else the first byte waits.
  errno = 0;
  int first = std::fgetc(file.get());
  if (first == EOF && errno != EAGAIN)
    return "it is a pipe that nobody writes to; name a file";
  std::clearerr(file.get());
  if (first != EOF)
    std::ungetc(first, file.get());
  ::fcntl(descriptor, F_SETFL, O_RDONLY);
  return "";
}

std::string readBytes(const std::string &path, std::string &bytes) {
  FilePtr file(nullptr, std::fclose);
  std::string error = openInput(path, file);
  if (!error.empty())
    return error;
  // One allocation where the size is known: a pipe has none.
  std::error_code unknown;
  if (auto size = std::filesystem::file_size(path, unknown); !unknown)
    bytes.reserve(std::min<size_t>(size, maxBytes));
  std::vector<char> buffer(size_t(1) << 16);
  while (size_t count =
             std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    bytes.append(buffer.data(), count);
    if (bytes.size() > maxBytes)
      return fmt::format("it is larger than {} bytes", maxBytes);
  }
  return std::ferror(file.get()) ? std::strerror(errno) : "";
}

std::string readAny(const std::string &path, std::string &text) {
  std::string bytes;
  std::string error = readBytes(path, bytes);
  Compression form = compressionOf(path);
  if (!error.empty() || form == Compression::None) {
    text = std::move(bytes);
    return error;
  }
  return decompress(form, bytes, text);
}

std::string writeAny(const std::string &path, std::string_view text) {
  Compression form = compressionOf(path);
  if (form == Compression::None)
    return writeWhole(path, text);
  std::string compressed;
  std::string error = compress(form, text, compressed);
  return error.empty() ? writeWhole(path, compressed) : error;
}

} // namespace

std::string baechi::placement::readTextFile(const std::string &path,
                                            std::string &text) try {
  text.clear();
  std::string error = readAny(path, text);
  return error.empty() ? "" : fmt::format("{}: cannot read: {}", path, error);
} catch (const std::exception &e) {
  return fmt::format("{}: cannot read: {}", path, e.what());
}

std::string baechi::placement::writeTextFile(const std::string &path,
                                             std::string_view text) try {
  std::string error = writeAny(path, text);
  return error.empty() ? "" : fmt::format("{}: cannot write: {}", path, error);
} catch (const std::exception &e) {
  return fmt::format("{}: cannot write: {}", path, e.what());
}
