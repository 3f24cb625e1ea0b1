//===- Helpers.h - Models and machines of the tests -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_DRIVER_HELPERS_H
#define BAECHI_UNITTESTS_DRIVER_HELPERS_H

#include "Baechi/Costs/Profile.h"
#include "Baechi/Driver/Steps/StepRun.h"
#include "gtest/gtest.h"

namespace baechi::test {

/// Keeps what the driver says.
struct Recorder final : Listener {
  void begin(llvm::StringRef what) override { phases.push_back(what.str()); }
  void end(llvm::StringRef what) override {
    EXPECT_EQ(phases.back(), what) << "phases overlap";
  }
  void progress(llvm::StringRef, size_t done, size_t total) override {
    EXPECT_LE(done, total);
  }
  void tell(const llvm::Twine &line) override { told += line.str() + "\n"; }
  void note(const llvm::Twine &line) override { notes += line.str() + "\n"; }
  void warn(const llvm::Twine &line) override { warnings += line.str() + "\n"; }
  llvm::raw_ostream &diagnostics() override { return stream; }

  std::vector<std::string> phases;
  std::string told, notes, warnings, errors;
  llvm::raw_string_ostream stream{errors};
};

inline std::string fixture(const std::string &name) {
  return std::string(BAECHI_SOURCE_DIR) + "/test/fixtures/" + name;
}

inline std::string messageOf(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "";
}

/// Takes what other work on this machine has disturbed for measured well: it
/// would be measured again.
inline void settleProfile(const std::string &path) {
  llvm::Expected<Profile> profile = readProfile(path);
  ASSERT_TRUE(bool(profile));
  for (ProfileRow &row : profile->rows)
    row.disturbed = row.stepDisturbed = false;
  ASSERT_EQ(messageOf(writeProfile(path, *profile)), "");
}

/// A model read for a machine's short form, with estimated costs.
inline DriverOptions optionsOf(const std::string &model,
                               const std::string &machine) {
  DriverOptions options;
  options.model = fixture(model);
  options.machine = machine;
  options.costs = "roofline";
  // Cut in the middle, so that every device has something to do.
  options.placer = "mtopo";
  options.budget = "0";
  return options;
}

inline std::unique_ptr<Compilation> readModel(DriverOptions options,
                                              Listener &listener) {
  llvm::Expected<placement::Machine> machine = readMachine(options.machine);
  EXPECT_TRUE(bool(machine));
  auto compilation =
      Compilation::read(std::move(options), std::move(*machine), listener);
  if (!compilation) {
    ADD_FAILURE() << llvm::toString(compilation.takeError());
    return nullptr;
  }
  return std::move(*compilation);
}

inline llvm::Error setAll(Compilation &compilation, Execution &execution) {
  return setFirstValues(compilation.module(), "", execution).takeError();
}

/// Costs found, placed and compiled.
inline std::unique_ptr<Compilation> compileModel(DriverOptions options,
                                                 Listener &listener) {
  std::unique_ptr<Compilation> compilation =
      readModel(std::move(options), listener);
  if (!compilation)
    return nullptr;
  auto setArguments = [&](Execution &program) {
    return setAll(*compilation, program);
  };
  EXPECT_EQ(messageOf(compilation->findCosts(setArguments)), "");
  EXPECT_EQ(messageOf(compilation->compile(setArguments)), "");
  return compilation;
}

} // namespace baechi::test

#endif // BAECHI_UNITTESTS_DRIVER_HELPERS_H
