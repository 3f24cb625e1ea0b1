//===- StoreFile.cpp - Saving a parameter store -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The file of a parameter store: a line that names the format, one of numbers
/// (workers, tables), one of the workers' clocks, one of which are finished (0
/// or 1), one a table (rows, width, step of adaptive revision or 0, name), then
/// the tables' rows as this machine's floats: values, and for adaptive revision
/// its three sums; then the CRC-32 of all before it, eight hexadecimal digits
/// and the end of a line.
///
//===----------------------------------------------------------------------===//

#include "store/Checksum.h"
#include "store/StoreState.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <limits>
#include <sstream>

using namespace baechi::store;

namespace {
constexpr std::string_view format = "baechi-store 3";
constexpr size_t checksumBytes = 9;

[[noreturn]] void refuse(const std::string &file, const std::string &why) {
  throw StoreError(file + ": " + why);
}

std::istringstream lineOf(std::ifstream &in, const std::string &file) {
  std::string line;
  if (!std::getline(in, line))
    refuse(file, "ends within its header: save the store again");
  return std::istringstream(line);
}

void requireFormat(const std::string &line, const std::string &file) {
  if (line == format)
    return;
  std::string known = "'" + std::string(format) + "'";
  if (line.starts_with("baechi-store "))
    refuse(file, "is of another version, '" + line + "', and " + known +
                     " is read: read its tables with the version that wrote "
                     "it, and make a new store of them");
  refuse(file, "is no saved store: its first line is not " + known);
}

std::string textOf(const Checksum &checksum) {
  std::array<char, checksumBytes + 1> text;
  std::snprintf(text.data(), text.size(), "%08" PRIx32 "\n", checksum.value());
  return text.data();
}

/// Before any number of a file is used; what is read next stays it.
void requireChecksum(std::ifstream &in, size_t size, const std::string &file) {
  std::streampos at = in.tellg();
  in.seekg(0);
  Checksum checksum;
  std::string bytes;
  for (size_t left = size - checksumBytes; left; left -= bytes.size()) {
    bytes.resize(std::min<size_t>(left, 1 << 16));
    in.read(bytes.data(), std::streamsize(bytes.size()));
    checksum.add(bytes);
  }
  bytes.resize(checksumBytes);
  in.read(bytes.data(), std::streamsize(bytes.size()));
  if (!in || bytes != textOf(checksum))
    refuse(file, "is damaged, its checksum is another: take a copy of it, or "
                 "save the store again");
  in.seekg(at);
}
} // namespace

std::vector<float> ParameterStore::State::wholeRow(size_t table, size_t row) {
  ServerStripe &stripe = *server[table][row % stripes];
  size_t at = row / stripes, width = shapes[table].width;
  const float *value = stripe.values.row(at);
  std::vector<float> whole(value, value + numbersOfRow(shapes[table]));
  if (revises(table))
    whole.insert(whole.end(), stripe.revised.begin() + int64_t(at * 2 * width),
                 stripe.revised.begin() + int64_t((at + 1) * 2 * width));
  return whole;
}

void ParameterStore::State::setWholeRow(size_t table, size_t row,
                                        const float *whole) {
  ServerStripe &stripe = *server[table][row % stripes];
  size_t at = row / stripes, numbers = numbersOfRow(shapes[table]);
  std::vector<float> value(widths[table], 0.0f);
  std::copy_n(whole, numbers, value.begin());
  stripe.values.set(at, value.data());
  if (revises(table))
    std::copy_n(whole + numbers, numbers,
                stripe.revised.begin() + int64_t(at * numbers));
}

void ParameterStore::save(const std::string &file) {
  drain();
  std::string made = file + ".new";
  {
    std::ofstream out(made, std::ios::binary);
    Checksum checksum;
    auto write = [&](std::string_view bytes) {
      checksum.add(bytes);
      out.write(bytes.data(), std::streamsize(bytes.size()));
    };
    std::ostringstream header;
    header << format << "\n"
           << state->workers.size() << " " << state->shapes.size() << "\n";
    for (const auto &worker : state->workers)
      header << worker->clock << " ";
    header << "\n";
    for (const auto &worker : state->workers)
      header << worker->finished << " ";
    header << "\n" << std::setprecision(17);
    for (const TableShape &table : state->shapes)
      header << table.rows << " " << table.width << " " << table.step << " "
             << table.name << "\n";
    write(header.str());
    for (size_t table = 0; table < state->shapes.size(); ++table) {
      for (size_t row = 0; row < state->shapes[table].rows; ++row) {
        std::vector<float> value = state->wholeRow(table, row);
        write({reinterpret_cast<const char *>(value.data()),
               value.size() * sizeof(float)});
      }
    }
    out << textOf(checksum);
    if (!out.flush())
      refuse(made, "cannot be written: look after the folder and its room");
  }
  if (std::rename(made.c_str(), file.c_str()) != 0)
    refuse(file, "cannot be written: look after the folder's rights");
}

std::unique_ptr<ParameterStore> ParameterStore::restore(const std::string &file,
                                                        StoreOptions options) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in)
    refuse(file, "cannot be read: save a store there first");
  auto size = int64_t(in.tellg());
  in.seekg(0);
  requireFormat(lineOf(in, file).str(), file);
  size_t workers = 0, tables = 0;
  lineOf(in, file) >> workers >> tables;
  std::vector<int64_t> clocks;
  std::istringstream line = lineOf(in, file);
  for (int64_t clock = 0; line >> clock;)
    clocks.push_back(clock);
  if (clocks.empty() || clocks.size() != workers)
    refuse(file, "has " + std::to_string(clocks.size()) + " clocks of " +
                     std::to_string(workers) + " workers: save it again");
  std::vector<int> finished;
  line = lineOf(in, file);
  for (int done = 0; line >> done;)
    finished.push_back(done);
  if (finished.size() != workers)
    refuse(file, "does not say of each worker whether it is finished: save it "
                 "again");
  std::vector<TableShape> shapes;
  double floats = 0;
  for (size_t i = 0; i < tables; ++i) {
    std::istringstream shape = lineOf(in, file);
    TableShape table;
    if (!(shape >> table.rows >> table.width >> table.step &&
          shape.get() == ' ' && std::getline(shape, table.name)))
      refuse(file, "table " + std::to_string(i) +
                       " has no rows, width, step and name: save the store "
                       "again");
    if (table.step != 0)
      table.rule = UpdateRule::AdaptiveRevision;
    floats +=
        double(table.rows) * double(table.width) * (table.step != 0 ? 4 : 1);
    shapes.push_back(table);
  }
  // Before memory is taken for what a damaged header says.
  if (double(size - in.tellg()) != floats * sizeof(float) + checksumBytes)
    refuse(file, "has not as many numbers as its tables: save the store again");
  requireChecksum(in, size_t(size), file);
  if (options.workers == 0)
    options.workers =
        int(std::min<size_t>(workers, size_t(std::numeric_limits<int>::max())));
  auto store = std::make_unique<ParameterStore>(shapes, options);
  for (size_t table = 0; table < tables; ++table) {
    std::vector<float> value = store->state->wholeRow(table, 0);
    for (size_t row = 0; row < shapes[table].rows; ++row) {
      in.read(reinterpret_cast<char *>(value.data()),
              std::streamsize(value.size() * sizeof(float)));
      store->state->setWholeRow(table, row, value.data());
    }
  }
  int64_t earliest = *std::ranges::min_element(clocks);
  for (size_t i = 0; i < store->state->workers.size(); ++i) {
    bool same = workers == store->state->workers.size();
    store->state->setClock(int(i), same ? clocks[i] : earliest,
                           same && finished[i] != 0);
  }
  return store;
}
