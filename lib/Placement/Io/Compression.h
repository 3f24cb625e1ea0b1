//===- Compression.h - Compressed files by their names -----------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_IO_COMPRESSION_H
#define BAECHI_PLACEMENT_IO_COMPRESSION_H

#include <cstdint>
#include <string>
#include <string_view>

namespace baechi::placement::io {

enum class Compression : uint8_t { None, Xz, Gzip };

/// By the end of a file's name: ".xz", ".gz".
Compression compressionOf(std::string_view path);

/// Appends what \p bytes hold to \p text; an error, or an empty text. What
/// inflates to more than any file needs is one.
std::string decompress(Compression form, std::string_view bytes,
                       std::string &text);
std::string compress(Compression form, std::string_view text,
                     std::string &bytes);

} // namespace baechi::placement::io

#endif // BAECHI_PLACEMENT_IO_COMPRESSION_H
