//===- NpzTest.cpp - Arrays in NumPy's files -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/Npz.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <zip.h>

using namespace baechi;
using testing::HasSubstr;

namespace {
std::string temporary(const std::string &name) {
  return testing::TempDir() + "baechi_npz_" + name;
}

std::string write(const std::string &name, const std::string &bytes) {
  std::string path = temporary(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// A .npy file of version 1 with this header and data.
std::string npy(std::string header, const std::string &data) {
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

std::string header(const std::string &type, const std::string &shape,
                   const std::string &fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran +
         ", 'shape': " + shape + ", }";
}

/// An archive whose entries are compressed, as numpy.savez_compressed writes.
std::string archive(const std::string &file, const std::string &entry,
                    const std::string &bytes, int compression) {
  std::string path = temporary(file);
  zip_t *zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  zip_source_t *source = zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
  zip_int64_t index = zip_file_add(zip, entry.c_str(), source, 0);
  zip_set_file_compression(zip, index, compression, 0);
  EXPECT_EQ(zip_close(zip), 0);
  return path;
}

std::string errorOf(const std::string &path) {
  std::map<std::string, Array> arrays;
  return readArrays(path, arrays);
}
} // namespace

TEST(Npz, RoundTripOfAllTypes) {
  std::map<std::string, Array> arrays;
  for (const char *type :
       {"f64", "f32", "f16", "i64", "i32", "i16", "i8", "i1"}) {
    Array array{type, {2, 3}, std::vector<char>(6 * elementBytes(type))};
    for (size_t i = 0; i < array.data.size(); ++i)
      array.data[i] = static_cast<char>(array.type == "i1" ? i % 2 : 7 * i + 1);
    arrays[std::string("params/") + type] = array;
  }
  arrays["scalar"] = {"f32", {}, {0, 0, 0, 64}};
  arrays["empty"] = {"i64", {4, 0, 2}, {}};
  std::string path = temporary("round_trip.npz");
  ASSERT_EQ(writeArrays(path, arrays), "");
  std::map<std::string, Array> back;
  ASSERT_EQ(readArrays(path, back), "");
  ASSERT_EQ(back.size(), arrays.size());
  for (const auto &[name, array] : arrays) {
    EXPECT_EQ(back[name].type, array.type) << name;
    EXPECT_EQ(back[name].shape, array.shape) << name;
    EXPECT_EQ(back[name].data, array.data) << name;
  }
}

TEST(Npz, TheSameArraysGiveTheSameFile) {
  std::map<std::string, Array> arrays{{"a", {"i8", {2}, {1, 2}}}};
  std::string bytes[2];
  for (int i = 0; i < 2; ++i) {
    std::string path = temporary("same" + std::to_string(i) + ".npz");
    ASSERT_EQ(writeArrays(path, arrays), "");
    std::ifstream file(path, std::ios::binary);
    bytes[i].assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(Npz, WhatNumPyLacksIsAnError) {
  EXPECT_THAT(writeArrays(temporary("i4.npz"), {{"a", {"i4", {}, {0}}}}),
              HasSubstr("array 'a': NumPy has no type i4"));
  EXPECT_THAT(writeArrays("no/such/folder/a.npz", {{"a", {"i8", {}, {0}}}}),
              HasSubstr("no/such/folder/a.npz: "));
  EXPECT_EQ(elementBytes("bf16"), 2);
  EXPECT_EQ(elementBytes("c64"), 0);
}

TEST(Npz, ReadsASingleArray) {
  std::map<std::string, Array> arrays;
  ASSERT_EQ(readArrays(write("one.npy", npy(header("<i2", "(2,)"),
                                            std::string("\1\0\2\0", 4))),
                       arrays),
            "");
  EXPECT_EQ(arrays["arg0"].type, "i16");
  EXPECT_EQ(arrays["arg0"].shape, std::vector<int64_t>{2});
}

TEST(Npz, ReadsWhatNumPyWrites) {
  // numpy.save of version 2, and of boolean and byte arrays.
  std::string bytes = npy(header("<f4", "(1, 1)"), std::string(4, '\0'));
  std::string two = bytes.substr(0, 6) + std::string("\2\0", 2) +
                    bytes.substr(8, 2) + std::string(2, '\0') +
                    bytes.substr(10);
  EXPECT_EQ(errorOf(write("version2.npy", two)), "");
  EXPECT_EQ(errorOf(write("bool.npy", npy(header("|b1", "()"), "\1"))), "");
  EXPECT_EQ(errorOf(write("byte.npy", npy(header("|i1", "(1,)"), "\1"))), "");
  // A column: its Fortran order is C order.
  EXPECT_EQ(
      errorOf(write("vector.npy", npy(header("|i1", "(3,)", "True"), "abc"))),
      "");
}

TEST(Npz, UnsignedIntegersKeepTheirBits) {
  for (auto [numpy, type, bytes] : {std::tuple{"|u1", "i8", 1},
                                    {"<u2", "i16", 2},
                                    {"<u4", "i32", 4},
                                    {"<u8", "i64", 8}}) {
    std::map<std::string, Array> arrays;
    std::string data(bytes, '\xff');
    ASSERT_EQ(
        readArrays(write("unsigned.npy", npy(header(numpy, "(1,)"), data)),
                   arrays),
        "");
    EXPECT_EQ(arrays["arg0"].type, type);
    EXPECT_EQ(arrays["arg0"].data, std::vector<char>(bytes, '\xff'));
  }
}

TEST(Npz, LongHeadersAreErrors) {
  auto said = [](const std::string &header) {
    std::string bytes("\x93NUMPY\x02\x00", 8);
    for (int i = 0; i < 4; ++i)
      bytes += static_cast<char>(header.size() >> (8 * i));
    return errorOf(write("long.npy", bytes + header));
  };
  EXPECT_THAT(said(header(std::string(2 << 20, 'f'), "(2,)")),
              HasSubstr("has an absurd header"));
  std::string ones;
  for (int i = 0; i < 1 << 20; ++i)
    ones += "1,";
  EXPECT_THAT(said(header("<f4", "(" + ones + ")")),
              HasSubstr("has an absurd header"));
}

TEST(Npz, ReadsCompressedEntries) {
  std::map<std::string, Array> arrays;
  ASSERT_EQ(
      readArrays(archive("compressed.npz", "params/w.npy",
                         npy(header("|i1", "(4000,)"), std::string(4000, 'x')),
                         ZIP_CM_DEFLATE),
                 arrays),
      "");
  EXPECT_EQ(arrays["params/w"].data, std::vector<char>(4000, 'x'));
}

TEST(Npz, MalformedArraysAreErrors) {
  auto said = [](const std::string &bytes) {
    return errorOf(write("malformed.npy", bytes));
  };
  std::string good = npy(header("<f4", "(2,)"), std::string(8, '\0'));
  EXPECT_EQ(said(good), "");
  EXPECT_THAT(said(good.substr(0, 7)), HasSubstr("is not in NumPy's .npy"));
  EXPECT_THAT(said(good.substr(0, 30)), HasSubstr("is truncated"));
  EXPECT_THAT(said(good.substr(0, good.size() - 1)),
              HasSubstr("is truncated: 8 bytes of data are announced, 7 are "
                        "there"));
  std::string version = good;
  version[6] = 9;
  EXPECT_THAT(said(version), HasSubstr("has an unknown .npy version"));
  EXPECT_THAT(said(npy("{}", "")), HasSubstr("has a malformed .npy header"));
  EXPECT_THAT(said(npy(header("<f4", "(-2,)"), "")),
              HasSubstr("has a malformed .npy header"));
  EXPECT_THAT(said(npy(header("<f4", "(2, 2)", "True"), std::string(16, 0))),
              HasSubstr("is in Fortran order; save it with "
                        "numpy.ascontiguousarray"));
  for (const char *type : {">f4", "<c8", "<u3", "|O", "<f3", "", "<"})
    EXPECT_THAT(said(npy(header(type, "(2,)"), std::string(8, '\0'))),
                HasSubstr("has element type '" + std::string(type) + "'"));
  for (const char *shape : {"(99999999999999999999,)", "(999999999999999,)",
                            "(1000000000, 1000000000, 1000000000)",
                            "(1000000000, 1000000000, 1000000000, 0)"})
    EXPECT_NE(said(npy(header("<f8", shape), "")), "") << shape;
  EXPECT_THAT(said(npy(header("<f8", "(99999999999999999999,)"), "")),
              HasSubstr("has an absurd shape"));
}

TEST(Npz, DamagedArchivesAreErrors) {
  EXPECT_THAT(errorOf("no/such/file.npz"), HasSubstr("no/such/file.npz: No"));
  EXPECT_THAT(errorOf(write("text.npz", "hello")),
              HasSubstr("not a .npz archive"));
  EXPECT_THAT(errorOf(write("empty.npz", "")), HasSubstr("not a .npz archive"));
  EXPECT_THAT(errorOf(archive("inner.npz", "w.npy", "hello", ZIP_CM_STORE)),
              HasSubstr("array 'w' is not in NumPy's .npy format"));
  // Cut anywhere, an archive is an error and nothing worse.
  std::string path = archive(
      "whole.npz", "w.npy", npy(header("|i1", "(300,)"), std::string(300, 'x')),
      ZIP_CM_DEFLATE);
  std::ifstream file(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  for (size_t length = 0; length < bytes.size(); length += 7)
    EXPECT_NE(errorOf(write("cut.npz", bytes.substr(0, length))), "") << length;
  // A flipped bit in the compressed data fails its checksum.
  std::string flipped = bytes;
  flipped[50] ^= 1;
  EXPECT_NE(errorOf(write("flipped.npz", flipped)), "");
}

TEST(Npz, CompressedArraysAreBounded) {
  std::string path = archive(
      "bomb.npz", "w.npy", npy(header("<f4", "(1,)"), "1234"), ZIP_CM_DEFLATE);
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  // The directory's record of the array, and the size that it announces.
  size_t size = bytes.find("PK\x01\x02") + 24;
  bytes.replace(size, 4, std::string("\1\0\0\x40", 4));
  EXPECT_THAT(
      errorOf(write("bomb.npz", bytes)),
      HasSubstr("array 'w' inflates to 1073741825 bytes, and 1073741824 "
                "are the most for all compressed arrays; save them "
                "with numpy.savez"));
  bytes.replace(size, 4, std::string("\1\0\0\0", 4));
  EXPECT_THAT(errorOf(write("lie.npz", bytes)),
              HasSubstr("array 'w' cannot be read: damaged archive"));
}

TEST(Npz, OnlyRegularFilesAreRead) {
  std::string path = temporary("pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(errorOf(path), HasSubstr("it is not a regular file"));
  EXPECT_THAT(errorOf("/dev/zero"), HasSubstr("it is not a regular file"));
}

TEST(Npz, ReadsAndWritesBfloat16) {
  for (const char *type : {"|V2", "<V2"}) {
    std::map<std::string, Array> arrays, again;
    ASSERT_EQ(readArrays(write("bf16.npy", npy(header(type, "(1,)"), "\x80?")),
                         arrays),
              "");
    EXPECT_EQ(arrays["arg0"].type, "bf16");
    std::string path = temporary("bf16.npz");
    ASSERT_EQ(writeArrays(path, arrays), "");
    ASSERT_EQ(readArrays(path, again), "");
    EXPECT_EQ(again["arg0"].type, "bf16");
    EXPECT_EQ(std::string(again["arg0"].data.begin(), again["arg0"].data.end()),
              "\x80?");
  }
}
