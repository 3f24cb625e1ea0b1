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

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <regex>
#include <string_view>
#include <zip.h>

using namespace baechi;

namespace {
struct TypeName {
  const char *type;
  const char *numpy;
  int64_t bytes;
};
constexpr std::array<TypeName, 8> types = {{{"f64", "<f8", 8},
                                            {"f32", "<f4", 4},
                                            {"f16", "<f2", 2},
                                            {"i64", "<i8", 8},
                                            {"i32", "<i4", 4},
                                            {"i16", "<i2", 2},
                                            {"i8", "|i1", 1},
                                            {"i1", "|b1", 1}}};

constexpr std::string_view magic = "\x93NUMPY";

/// The text between a key of the header and what ends its value.
std::optional<std::string> headerField(const std::string &header,
                                       const std::string &pattern) {
  std::smatch match;
  if (!std::regex_search(header, match, std::regex(pattern)))
    return std::nullopt;
  return match[1].str();
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
  std::string header(bytes.substr(8 + lengthBytes, length));

  auto descr = headerField(header, "'descr'\\s*:\\s*'([^']*)'");
  auto fortran = headerField(header, "'fortran_order'\\s*:\\s*(True|False)");
  auto shape = headerField(header, "'shape'\\s*:\\s*\\(([0-9, L]*)\\)");
  if (!descr || !fortran || !shape)
    return "has a malformed .npy header";
  for (const TypeName &entry : types)
    if (*descr == entry.numpy || (entry.bytes == 1 && !descr->empty() &&
                                  descr->substr(1) == entry.numpy + 1))
      array.type = entry.type;
  if (array.type.empty())
    return "has element type '" + *descr +
           "'; known: little-endian f8 f4 f2 i8 i4 i2 i1 b1";
  int64_t count = 1;
  std::regex number("[0-9]+");
  for (std::sregex_iterator it(shape->begin(), shape->end(), number), end;
       it != end; ++it) {
    if (it->str().size() > 15)
      return "has an absurd shape";
    int64_t size = std::stoll(it->str());
    if (size && count > std::numeric_limits<int64_t>::max() / 16 / size)
      return "has an absurd shape";
    count *= size;
    array.shape.push_back(size);
  }
  if (*fortran == "True" && array.shape.size() > 1)
    return "is in Fortran order; save it with numpy.ascontiguousarray";
  int64_t need = count * elementBytes(array.type);
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
} // namespace

int64_t Array::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t baechi::elementBytes(const std::string &type) {
  if (type == "bf16")
    return 2;
  for (const TypeName &entry : types)
    if (type == entry.type)
      return entry.bytes;
  return 0;
}

std::string baechi::readArrays(const std::string &path,
                               std::map<std::string, Array> &arrays) {
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
    return path + ": not a .npz archive: " + errorText(code);
  for (zip_int64_t i = 0, n = zip_get_num_entries(archive.get(), 0); i < n;
       ++i) {
    zip_stat_t info;
    if (zip_stat_index(archive.get(), i, 0, &info) != 0)
      return path + ": damaged archive";
    std::string name = info.name;
    if (name.ends_with(".npy"))
      name.resize(name.size() - 4);
    // A compressed entry announces its size; read in pieces, so that a lie
    // costs no memory.
    std::string bytes;
    zip_file_t *entry = zip_fopen_index(archive.get(), i, 0);
    std::array<char, 1 << 16> piece;
    zip_int64_t got = 0;
    while (entry && (got = zip_fread(entry, piece.data(), piece.size())) > 0)
      bytes.append(piece.data(), got);
    if (entry)
      zip_fclose(entry);
    if (!entry || got < 0)
      return path + ": array '" + name + "' cannot be read: damaged archive";
    std::string error = parseNpy(bytes, arrays[name]);
    if (!error.empty())
      return path + ": array '" + name + "' " + error;
  }
  return "";
}

std::string baechi::writeArrays(const std::string &path,
                                const std::map<std::string, Array> &arrays) {
  // Sources are read when the archive is closed: they must live until then.
  std::map<std::string, std::string> contents;
  for (const auto &[name, array] : arrays) {
    std::string error = formatNpy(array, contents[name]);
    if (!error.empty())
      return path + ": array '" + name + "': " + error;
  }
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
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
  return "";
}
