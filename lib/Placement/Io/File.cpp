//===- File.cpp - Text files, plain or compressed ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Io/Store.h"

#include <fmt/format.h>
#include <lzma.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <system_error>

using namespace baechi::placement;

namespace {

/// More than any graph needs; stops a file that was made to fill the memory.
constexpr size_t maxBytes = size_t(4) << 30;
/// What a compressed file may hold: a thousandth of it is enough to write that.
constexpr size_t maxInflated = size_t(1) << 30;
constexpr uint64_t decoderMemory = uint64_t(256) << 20;

using FilePtr = std::unique_ptr<std::FILE, int (*)(std::FILE *)>;

bool isCompressed(const std::string &path) { return path.ends_with(".xz"); }

/// An lzma stream that is released whatever happens.
struct Stream {
  lzma_stream lzma = LZMA_STREAM_INIT;
  ~Stream() { lzma_end(&lzma); }
};

std::string describe(lzma_ret code) {
  switch (code) {
  case LZMA_FORMAT_ERROR:
    return "it is not an xz file";
  case LZMA_DATA_ERROR:
    return "its data is damaged";
  case LZMA_BUF_ERROR:
    return "it ends too early; copy it again";
  case LZMA_MEM_ERROR:
  case LZMA_MEMLIMIT_ERROR:
    return "it needs too much memory";
  case LZMA_OPTIONS_ERROR:
    return "it uses options that this liblzma does not know";
  default:
    return fmt::format("liblzma reports error {}", static_cast<int>(code));
  }
}

/// Runs \p stream over \p input to its end and appends what comes out, of which
/// there must be no more than \p limit bytes.
std::string pump(Stream &stream, std::string_view input, std::string &output,
                 size_t limit) {
  stream.lzma.next_in = reinterpret_cast<const uint8_t *>(input.data());
  stream.lzma.avail_in = input.size();
  std::vector<uint8_t> buffer(size_t(1) << 16);
  lzma_ret code = LZMA_OK;
  while (code == LZMA_OK) {
    stream.lzma.next_out = buffer.data();
    stream.lzma.avail_out = buffer.size();
    code = lzma_code(&stream.lzma, LZMA_FINISH);
    output.append(reinterpret_cast<const char *>(buffer.data()),
                  buffer.size() - stream.lzma.avail_out);
    if (output.size() > limit)
      return "its data is damaged";
  }
  return code == LZMA_STREAM_END ? "" : describe(code);
}

/// The bytes that an xz file announces at its end; none where that is damaged.
std::optional<uint64_t> announcedBytes(std::string_view bytes) {
  Stream stream;
  lzma_index *index = nullptr;
  auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  lzma_ret code =
      lzma_file_info_decoder(&stream.lzma, &index, decoderMemory, bytes.size());
  stream.lzma.next_in = data;
  stream.lzma.avail_in = bytes.size();
  while (code == LZMA_OK || code == LZMA_SEEK_NEEDED) {
    code = lzma_code(&stream.lzma, LZMA_RUN);
    if (code != LZMA_SEEK_NEEDED)
      continue;
    stream.lzma.next_in = data + stream.lzma.seek_pos;
    stream.lzma.avail_in = bytes.size() - stream.lzma.seek_pos;
  }
  if (code != LZMA_STREAM_END)
    return std::nullopt;
  uint64_t size = lzma_index_uncompressed_size(index);
  lzma_index_end(index, nullptr);
  return size;
}

std::string inflate(std::string_view bytes, std::string &text) {
  std::optional<uint64_t> announced = announcedBytes(bytes);
  if (announced && *announced > maxInflated)
    return fmt::format("it inflates to {} bytes, and {} are the most; unpack "
                       "it with 'xz -d'",
                       *announced, maxInflated);
  Stream stream;
  lzma_ret code =
      lzma_stream_decoder(&stream.lzma, decoderMemory, LZMA_CONCATENATED);
  // Without a whole end, the decoder tells what is wrong before that.
  return code == LZMA_OK
             ? pump(stream, bytes, text, announced.value_or(maxInflated))
             : describe(code);
}

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
  if (!error.empty() || !isCompressed(path)) {
    text = std::move(bytes);
    return error;
  }
  return inflate(bytes, text);
}

std::string writeAny(const std::string &path, std::string_view text) {
  std::string compressed;
  if (isCompressed(path)) {
    Stream stream;
    lzma_ret code = lzma_easy_encoder(&stream.lzma, 6, LZMA_CHECK_CRC64);
    std::string error =
        code == LZMA_OK ? pump(stream, text, compressed, text.size() + maxBytes)
                        : describe(code);
    if (!error.empty())
      return error;
    text = compressed;
  }
  return writeWhole(path, text);
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
