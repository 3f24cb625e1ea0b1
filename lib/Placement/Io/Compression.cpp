//===- Compression.cpp - Compressed files by their names ---------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Io/Compression.h"
#include "Baechi/Placement/Io/Files.h"

#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace baechi::placement;
using namespace baechi::placement::io;

namespace {

/// What a compressed file may hold: a thousandth of it is enough to write that.
constexpr size_t maxInflated = size_t(1) << 30;
constexpr uint64_t decoderMemory = uint64_t(256) << 20;
constexpr std::string_view xzMagic("\xFD"
                                   "7zXZ\0",
                                   6);
/// What may lie between and behind xz's streams.
constexpr std::string_view xzPadding("\0\0\0\0", 4);
constexpr std::string_view gzipMagic = "\x1F\x8B";
/// zlib's: the largest window, with gzip's header and sum.
constexpr int gzipWindow = 15 + 16;

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

/// What is behind the end of a file's data.
std::string describeRest(std::string_view bytes, std::string_view rest,
                         std::string_view format) {
  return fmt::format("what follows its end is no {} data: keep what is before "
                     "with 'head -c {}', or copy it again",
                     format, bytes.size() - rest.size());
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

std::string inflateXz(std::string_view bytes, std::string &text) {
  // A short text would only be told to end too early.
  if (!bytes.starts_with(xzMagic))
    return "it is not an xz file";
  std::optional<uint64_t> announced = announcedBytes(bytes);
  if (announced && *announced > maxInflated)
    return fmt::format("it inflates to {} bytes, and {} are the most; unpack "
                       "it with 'xz -d'",
                       *announced, maxInflated);
  // Files that were joined are one text. Without a whole end, the decoder tells
  // what is wrong before that.
  std::string_view left = bytes;
  while (left.starts_with(xzMagic)) {
    Stream stream;
    lzma_ret code = lzma_stream_decoder(&stream.lzma, decoderMemory, 0);
    std::string error = code == LZMA_OK ? pump(stream, left, text,
                                               announced.value_or(maxInflated))
                                        : describe(code);
    if (!error.empty())
      return error;
    left.remove_prefix(stream.lzma.total_in);
    while (left.starts_with(xzPadding))
      left.remove_prefix(xzPadding.size());
  }
  return left.empty() ? "" : describeRest(bytes, left, "xz");
}

/// Bytes as zlib takes them: it reads them alone.
Bytef *bytesOf(std::string_view text) {
  return reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
}

std::string inflateGzip(std::string_view bytes, std::string &text) {
  if (!bytes.starts_with(gzipMagic))
    return "it is not a gzip file";
  z_stream stream = {};
  if (inflateInit2(&stream, gzipWindow) != Z_OK)
    return "it needs too much memory";
  std::vector<char> buffer(size_t(1) << 16);
  std::string error;
  int code = Z_OK;
  // zlib counts in 32 bits.
  std::string_view left = bytes;
  while (error.empty() && (code == Z_OK || code == Z_BUF_ERROR)) {
    if (stream.avail_in == 0) {
      std::string_view next = left.substr(0, size_t(1) << 30);
      left.remove_prefix(next.size());
      stream.next_in = bytesOf(next);
      stream.avail_in = static_cast<uInt>(next.size());
    }
    stream.next_out = reinterpret_cast<Bytef *>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = ::inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
    if (text.size() > maxInflated)
      error = fmt::format("it inflates to more than {} bytes, the most; unpack "
                          "it with 'gzip -d'",
                          maxInflated);
    else if (code == Z_BUF_ERROR && left.empty() && stream.avail_in == 0)
      error = "it ends too early; copy it again";
    // Files that were joined are one text.
    else if (size_t rest = stream.avail_in + left.size();
             code == Z_STREAM_END && rest > 0) {
      if (std::string_view next = bytes.substr(bytes.size() - rest);
          !next.starts_with(gzipMagic))
        error = describeRest(bytes, next, "gzip");
      code = inflateReset(&stream);
    } else if (code != Z_OK && code != Z_BUF_ERROR && code != Z_STREAM_END)
      error = "its data is damaged";
  }
  inflateEnd(&stream);
  return error;
}

std::string deflateGzip(std::string_view text, std::string &bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzipWindow,
                   /*memLevel=*/8, Z_DEFAULT_STRATEGY) != Z_OK)
    return "it needs too much memory";
  std::vector<char> buffer(size_t(1) << 16);
  int code = Z_OK;
  do {
    if (stream.avail_in == 0) {
      std::string_view next = text.substr(0, size_t(1) << 30);
      text.remove_prefix(next.size());
      stream.next_in = bytesOf(next);
      stream.avail_in = static_cast<uInt>(next.size());
    }
    stream.next_out = reinterpret_cast<Bytef *>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = ::deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    bytes.append(buffer.data(), buffer.size() - stream.avail_out);
  } while (code == Z_OK);
  deflateEnd(&stream);
  return code == Z_STREAM_END ? "" : "zlib cannot compress it";
}

std::string deflateXz(std::string_view text, std::string &bytes) {
  Stream stream;
  lzma_ret code = lzma_easy_encoder(&stream.lzma, 6, LZMA_CHECK_CRC64);
  // No text grows by as much.
  return code == LZMA_OK ? pump(stream, text, bytes, 2 * text.size() + 1024)
                         : describe(code);
}

} // namespace

Compression baechi::placement::io::compressionOf(std::string_view path) {
  return path.ends_with(".xz")   ? Compression::Xz
         : path.ends_with(".gz") ? Compression::Gzip
                                 : Compression::None;
}

bool baechi::placement::isCompressed(std::string_view path) {
  return compressionOf(path) != Compression::None;
}

std::string baechi::placement::io::decompress(Compression form,
                                              std::string_view bytes,
                                              std::string &text) {
  return form == Compression::Xz ? inflateXz(bytes, text)
                                 : inflateGzip(bytes, text);
}

std::string baechi::placement::io::compress(Compression form,
                                            std::string_view text,
                                            std::string &bytes) {
  return form == Compression::Xz ? deflateXz(text, bytes)
                                 : deflateGzip(text, bytes);
}
