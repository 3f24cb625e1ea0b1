//===- Npz.cpp - Arrays in NumPy's files -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The .npy format: https://numpy.org/doc/stable/reference/generated/
// numpy.lib.format.html. A magic string, a version, the length of a header, the
// header (a Python dictionary literal), the data.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/Npz.h"
#include "Baechi/Placement/Io/Store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <zip.h>

using namespace baechi;

namespace {
struct TypeName {
  const char *type;
  const char *numpy;
  int64_t bytes;
};
constexpr std::array<TypeName, 9> types = {{{"f64", "<f8", 8},
                                            {"f32", "<f4", 4},
                                            {"f16", "<f2", 2},
                                            // NumPy has no name for it: bytes.
                                            {"bf16", "|V2", 2},
                                            {"i64", "<i8", 8},
                                            {"i32", "<i4", 4},
                                            {"i16", "<i2", 2},
                                            {"i8", "|i1", 1},
                                            {"i1", "|b1", 1}}};

constexpr std::string_view magic = "\x93NUMPY";

/// numpy.load refuses longer headers, too.
constexpr size_t longestHeader = 10000;

/// What the compressed arrays of an archive may hold: a thousandth of it is
/// enough to write that. Others take no more memory than the file.
constexpr uint64_t maxInflated = uint64_t(1) << 30;

/// What follows a key of the header and its colon; empty without the key.
std::string_view headerValue(std::string_view header, std::string_view key) {
  auto skip = [&](size_t n) {
    header.remove_prefix(std::min(header.size(), n));
    header.remove_prefix(
        std::min(header.size(), header.find_first_not_of(" \t\n")));
  };
  size_t at = header.find(key);
  if (at == header.npos)
    return {};
  skip(at + key.size());
  if (!header.starts_with(':'))
    return {};
  skip(1);
  return header;
}

/// The text between \p open, with which \p value starts, and \p close.
std::optional<std::string_view> enclosed(std::string_view value, char open,
                                         char close) {
  size_t end = value.find(close, 1);
  if (!value.starts_with(open) || end == value.npos)
    return std::nullopt;
  return value.substr(1, end - 1);
}

/// Reads the numbers of a shape, `2, 3,`; an error, empty on success.
std::string parseShape(std::string_view text, std::vector<int64_t> &shape) {
  int64_t count = 1;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    // Python 2 wrote its numbers as 2L.
    at = std::find_if_not(
        at, end, [](char c) { return c == ' ' || c == ',' || c == 'L'; });
    if (at == end)
      return "";
    int64_t size = 0;
    auto [next, error] = std::from_chars(at, end, size);
    if (error == std::errc::invalid_argument || size < 0)
      return "has a malformed .npy header";
    if (error != std::errc() ||
        (size && count > std::numeric_limits<int64_t>::max() / 16 / size))
      return "has an absurd shape";
    count *= size;
    shape.push_back(size);
    at = next;
  }
}

std::string parseNpy(std::string_view bytes, Array &array) {
  if (bytes.size() < 10 || bytes.substr(0, magic.size()) != magic)
    return "is not in NumPy's .npy format";
  uint8_t major = bytes[6];
  size_t lengthBytes = major == 1 ? 2 : 4, length = 0;
  if (major < 1 || major > 3 || bytes.size() < 8 + lengthBytes)
    return "has an unknown .npy version";
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= size_t(uint8_t(bytes[8 + i])) << (8 * i);
  size_t start = 8 + lengthBytes + length;
  if (start > bytes.size())
    return "is truncated";
  if (length > longestHeader)
    return "has an absurd header";
  std::string_view header = bytes.substr(8 + lengthBytes, length);

  auto descr = enclosed(headerValue(header, "'descr'"), '\'', '\'');
  auto shape = enclosed(headerValue(header, "'shape'"), '(', ')');
  std::string_view order = headerValue(header, "'fortran_order'");
  bool fortran = order.starts_with("True");
  if (!descr || !shape || (!fortran && !order.starts_with("False")))
    return "has a malformed .npy header";
  // MLIR's integers have no sign: unsigned ones are the same bits.
  std::string type(*descr);
  if (type.size() == 3 && type[1] == 'u')
    type[1] = 'i';
  // What ml_dtypes' bfloat16 is saved as, by its version.
  if (type == "<V2")
    type = "|V2";
  for (const TypeName &entry : types)
    if (type == entry.numpy || (entry.bytes == 1 && !type.empty() &&
                                type.substr(1) == entry.numpy + 1))
      array.type = entry.type;
  if (array.type.empty())
    return "has element type '" + std::string(*descr) +
           "'; known: little-endian f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 b1, and "
           "V2 "
           "(bfloat16)";
  std::string error = parseShape(*shape, array.shape);
  if (!error.empty())
    return error;
  if (fortran && array.shape.size() > 1)
    return "is in Fortran order; save it with numpy.ascontiguousarray";
  int64_t need = array.elements() * elementBytes(array.type);
  if (static_cast<int64_t>(bytes.size() - start) < need)
    return "is truncated: " + std::to_string(need) +
           " bytes of data are announced, " +
           std::to_string(bytes.size() - start) + " are there";
  array.data.assign(bytes.begin() + start, bytes.begin() + start + need);
  return "";
}

std::string formatNpy(const Array &array, std::string &bytes) {
  const char *descr = nullptr;
  for (const TypeName &entry : types)
    if (array.type == entry.type)
      descr = entry.numpy;
  if (!descr)
    return "NumPy has no type " + array.type;
  std::string header = std::string("{'descr': '") + descr +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t size : array.shape)
    header += std::to_string(size) + ",";
  header += "), }";
  size_t prefix = magic.size() + 4;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  bytes = std::string(magic);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(array.data.data(), array.data.size());
  return "";
}

struct CloseArchive {
  void operator()(zip_t *archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

std::string errorText(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

/// Whether a file's first bytes are those of xz or gzip.
bool isCompressed(const std::string &start) {
  return start.starts_with("\xFD\x37zXZ") || start.starts_with("\x1F\x8B");
}
} // namespace

int64_t Array::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t baechi::elementBytes(const std::string &type) {
  for (const TypeName &entry : types)
    if (type == entry.type)
      return entry.bytes;
  return 0;
}

std::string baechi::readArrays(const std::string &path,
                               std::map<std::string, Array> &arrays) {
  // Others end never, or not before somebody writes to them.
  std::error_code absent;
  if (auto state = std::filesystem::status(path, absent);
      std::filesystem::exists(state) &&
      !std::filesystem::is_regular_file(state))
    return path + ": it is not a regular file; name an .npz file";
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return path + ": " + std::strerror(errno);
  std::string start(magic.size(), '\0');
  file.read(start.data(), start.size());
  if (start == magic) {
    file.seekg(0);
    std::string bytes((std::istreambuf_iterator<char>(file)),
                      std::istreambuf_iterator<char>());
    std::string error = parseNpy(bytes, arrays["arg0"]);
    return error.empty() ? "" : path + " " + error;
  }
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive)
    return path + ": not a .npz archive: " + errorText(code) +
           (isCompressed(start) ? "; decompress it first" : "");
  auto of = [&](const std::string &name) {
    return path + ": array '" + name + "'";
  };
  uint64_t inflated = 0;
  for (zip_int64_t i = 0, n = zip_get_num_entries(archive.get(), 0); i < n;
       ++i) {
    zip_stat_t info;
    if (zip_stat_index(archive.get(), i, 0, &info) != 0)
      return path + ": damaged archive";
    std::string name = info.name;
    if (name.ends_with(".npy"))
      name.resize(name.size() - 4);
    if (info.comp_method != ZIP_CM_STORE)
      inflated += std::min(info.size, maxInflated + 1);
    if (inflated > maxInflated)
      return of(name) + " inflates to " + std::to_string(info.size) +
             " bytes, and " + std::to_string(maxInflated) +
             " are the most for all compressed arrays; save them with "
             "numpy.savez";
    // Read in pieces, and no further than announced: a lie costs no memory.
    std::string bytes;
    zip_file_t *entry = zip_fopen_index(archive.get(), i, 0);
    std::array<char, 1 << 16> piece;
    zip_int64_t got = 0;
    while (entry && (got = zip_fread(entry, piece.data(), piece.size())) > 0)
      if (bytes.append(piece.data(), got).size() > info.size)
        break;
    if (entry)
      zip_fclose(entry);
    if (!entry || got < 0 || bytes.size() > info.size)
      return of(name) + " cannot be read: damaged archive";
    std::string error = parseNpy(bytes, arrays[name]);
    if (!error.empty())
      return of(name) + " " + error;
  }
  return "";
}

std::string baechi::writeArrays(const std::string &path,
                                const std::map<std::string, Array> &arrays) {
  auto of = [&](const std::string &name) {
    return path + ": array '" + name + "'";
  };
  // Sources are read when the archive is closed: they must live until then.
  std::map<std::string, std::string> contents;
  for (const auto &[name, array] : arrays) {
    std::string error = formatNpy(array, contents[name]);
    if (!error.empty())
      return of(name) + ": " + error;
  }
  int code = 0;
  placement::StagedFile file(path);
  zip_t *archive =
      zip_open(file.temporary().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!archive)
    return path + ": " + errorText(code);
  for (const auto &[name, bytes] : contents) {
    zip_source_t *source =
        zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    zip_int64_t index = source ? zip_file_add(archive, (name + ".npy").c_str(),
                                              source, ZIP_FL_OVERWRITE)
                               : -1;
    if (index < 0) {
      std::string error = path + ": " + zip_strerror(archive);
      if (source)
        zip_source_free(source);
      zip_discard(archive);
      return error;
    }
    zip_set_file_compression(archive, index, ZIP_CM_STORE, 0);
    // The same arrays give the same file.
    zip_file_set_mtime(archive, index, 0, 0);
  }
  if (zip_close(archive) != 0) {
    std::string error = path + ": " + zip_strerror(archive);
    zip_discard(archive);
    return error;
  }
  std::string error = file.place();
  return error.empty() ? "" : path + ": " + error;
}
