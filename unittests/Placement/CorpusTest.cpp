//===- CorpusTest.cpp - What the fuzzer begins with -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every input of fuzz/corpus/placement and its error; none: it is placed.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Session/Place.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

using namespace baechi::placement;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

const std::map<std::string, std::string> errors = {
    {"absurd-number", "ops[0] 'a'.time_ns: must be an integer, not 1e+300"},
    {"contradicting-pins", "group 'g' has operator 0 'a' pinned to 'x' and "
                           "operator 1 'b' pinned to 'y'"},
    {"control-cycle", "the graph has a cycle: operator 0 'a' -> operator 1 "
                      "'b' -> operator 0 'a'; remove one of these edges"},
    {"cycle", "the graph has a cycle: operator 0 'a' -> operator 1 'b' -> "
              "operator 0 'a'; remove one of these edges"},
    {"duplicate-devices", "two devices are called 'x': give each its own name"},
    {"duplicate-ids", "ops[1] 'a'.id: is 0, but must be its position 1"},
    {"duplicate-names", ""},
    {"empty-graph", ""},
    {"empty-machine", "the machine has no device: list at least one"},
    {"fork", ""},
    {"fraction", "ops[0] 'a'.time_ns: must be an integer, not 0.5"},
    {"negative-bytes", "output 0 of operator 0 'a' has a negative size"},
    {"negative-time", "operator 0 'a' has a time of -1 ns"},
    {"no-kind", "operator 0 'a' has no time for any device of the machine"},
    {"no-links", ""},
    {"no-memory", "no placement can fit the memories: operator 0 'a' needs 64 "
                  "bytes at once"},
    {"overflowing-bytes", "the sizes of the graph add up to more than"},
    {"overflowing-times", "the times of operators and transfers add up to more "
                          "than"},
    {"overflowing-transfers", "the times of operators and transfers add up to "
                              "more than"},
    {"plain", ""},
    {"self-edge", "edge 0 leads from operator 0 'a' to itself: remove it"},
    {"too-large", "no placement can fit the memories: operator 0 'a' has 1000 "
                  "resident bytes, the largest device it may use has 512"},
    {"unknown-member", "ops[0] 'a': unknown member 'colour'"},
    {"unknown-operator", "edge 0 leads from operator 0 to operator 9, but "
                         "operators are numbered 0 to 1"},
    {"unknown-output", "edge 0 uses output 7 of operator 0 'a', which has 1"},
    {"unknown-pin", "operator 0 'a' is pinned to 'z', which the machine does "
                    "not have: its devices are x, y"},
    {"wrong-version", "version: is 2, but only version 1 is known"},
    {"zero-bandwidth", "the link from 'x' to 'y' moves 0 bytes per us"},
};

std::string errorOf(const std::string &text) {
  size_t line = text.find("\n---\n");
  Problem problem;
  std::string error = parseGraph(text.substr(0, line), "graph", problem.graph);
  if (error.empty())
    error = parseMachine(text.substr(line + 5), "machine", problem.machine);
  if (!error.empty())
    return error;
  PlaceResult result = place(problem, {});
  if (result.placement) {
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  }
  return result.error;
}

TEST(Corpus, EveryInputHasItsErrorOrAPlacement) {
  size_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator(
           BAECHI_SOURCE_DIR "/fuzz/corpus/placement")) {
    std::string name = entry.path().stem().string(), text;
    SCOPED_TRACE(name);
    ASSERT_EQ(readTextFile(entry.path().string(), text), "");
    ASSERT_TRUE(errors.contains(name)) << "say here what its error is";
    const std::string &expected = errors.at(name);
    if (expected.empty()) {
      EXPECT_EQ(errorOf(text), "");
    } else {
      EXPECT_THAT(errorOf(text), HasSubstr(expected));
    }
    ++count;
  }
  EXPECT_EQ(count, errors.size());
}

} // namespace
