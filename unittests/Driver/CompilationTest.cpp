//===- CompilationTest.cpp - Models are read and refused ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Errors.h"
#include "Helpers.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gmock/gmock.h"

using namespace baechi;
using namespace baechi::test;
using testing::Contains;
using testing::HasSubstr;

namespace {
std::string writeModel(llvm::StringRef text) {
  llvm::SmallString<128> path;
  int file;
  EXPECT_FALSE(
      llvm::sys::fs::createTemporaryFile("driver", "mlir", file, path));
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << text;
  return path.str().str();
}

/// What is wrong with a model, by its error or, empty, by diagnostics.
llvm::Error readError(const std::string &path, Recorder &recorder) {
  DriverOptions options = optionsOf("", "host:1");
  options.model = path;
  placement::Machine machine = llvm::cantFail(readMachine("host:1"));
  auto read = Compilation::read(options, std::move(machine), recorder);
  return read ? llvm::Error::success() : read.takeError();
}

TEST(Compilation, SaysWhatIsWrongWithAModelByDiagnosticsToItsListener) {
  Recorder recorder;
  std::string path = writeModel("func.func @step(%x: tensor<2xf32>) {\n"
                                "  return %y : tensor<2xf32>\n}\n");
  llvm::Error error = readError(path, recorder);
  EXPECT_TRUE(error.isA<DiagnosedError>());
  llvm::consumeError(std::move(error));
  EXPECT_THAT(recorder.errors, HasSubstr(path + ":2:10: error: "));
  EXPECT_THAT(recorder.errors, HasSubstr("use of undeclared SSA value"));
  llvm::sys::fs::remove(path);
}

TEST(Compilation, NamesAFileThatIsNotThere) {
  Recorder recorder;
  EXPECT_THAT(messageOf(readError("/no/such/model.mlir", recorder)),
              HasSubstr("/no/such/model.mlir: cannot read"));
  EXPECT_EQ(recorder.errors, "");
}

TEST(Compilation, ExecutesOnHostsAndGpusAlone) {
  Recorder recorder;
  placement::Machine machine;
  machine.devices = {{"npu0", "npu", 1 << 20}};
  machine.links.resize(1);
  auto read = Compilation::read(optionsOf("mlp_tiny.mlir", "host:1"), machine,
                                recorder);
  ASSERT_FALSE(bool(read));
  EXPECT_THAT(llvm::toString(read.takeError()),
              HasSubstr("device 'npu0' is of kind 'npu'"));
}

TEST(Compilation, PlacesOnEveryDeviceAndKeepsWhatWasAsked) {
  Recorder recorder;
  auto compilation =
      compileModel(optionsOf("mlp_tiny.mlir", "host:2"), recorder);
  ASSERT_TRUE(compilation);
  RunReport report;
  compilation->describe(report);
  EXPECT_EQ(report.placer, "mtopo");
  EXPECT_EQ(report.costs, "roofline");
  EXPECT_EQ(report.kernelCosts.rowsMeasured, 0u);
  EXPECT_GT(report.kernels, 0u);
  EXPECT_GE(report.operators, report.kernels);
  auto program = runtime::Program::parse(compilation->program().manifestText());
  ASSERT_TRUE(program);
  ASSERT_EQ(program->devices.size(), 2u);
  for (const runtime::DeviceInfo &device : program->devices)
    EXPECT_FALSE(device.operators.empty()) << device.name;
}

TEST(Compilation, MeasuredKernelsAreKeptInAProfile) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("driver", "json", path));
  llvm::sys::fs::remove(path);
  DriverOptions options = optionsOf("mlp_tiny.mlir", "host:1");
  options.costs = "measured";
  // What a budget leaves out as too cheap by an estimate, the next compilation
  // may find worth its time by what was measured.
  options.measure = "all";
  options.profile = path.str().str();
  Recorder first, second;
  auto cold = compileModel(options, first);
  ASSERT_TRUE(cold);
  RunReport report;
  cold->describe(report);
  EXPECT_GT(report.kernelCosts.rowsMeasured, 0u);
  EXPECT_EQ(first.phases,
            (std::vector<std::string>{"forming kernels", "measuring kernels",
                                      "compiling kernels", "measuring steps",
                                      "placing", "lowering"}));
  settleProfile(options.profile);
  auto warm = compileModel(options, second);
  ASSERT_TRUE(warm);
  warm->describe(report);
  EXPECT_EQ(report.kernelCosts.rowsMeasured, 0u);
  // Times within a step are there, too.
  EXPECT_EQ(second.phases, (std::vector<std::string>{
                               "forming kernels", "measuring kernels",
                               "placing", "lowering", "compiling kernels"}));
  EXPECT_EQ(first.warnings + second.warnings, "");
  llvm::sys::fs::remove(path);
}

TEST(Compilation, PiecesStayWhereAFewStepsAreFaster) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("driver", "json", path));
  llvm::sys::fs::remove(path);
  DriverOptions options = optionsOf("mlp_tiny.mlir", "host:2");
  options.costs = "measured";
  options.splits = "any";
  options.profile = path.str().str();
  Recorder first, second;
  auto cold = compileModel(options, first);
  ASSERT_TRUE(cold);
  EXPECT_THAT(first.phases, Contains("trying steps").Times(2));
  RunReport report;
  cold->describe(report);
  ASSERT_TRUE(report.pieces);
  ASSERT_TRUE(report.pieces->triedPiecesNs);
  ASSERT_TRUE(report.pieces->triedWholeNs);
  EXPECT_EQ(report.pieces->isKept,
            *report.pieces->triedPiecesNs < *report.pieces->triedWholeNs);
  EXPECT_THAT(report.pieces->lines().back(), HasSubstr("a few steps took"));
  settleProfile(options.profile);
  Profile profile = llvm::cantFail(readProfile(options.profile));
  EXPECT_EQ(profile.plans.size(), 2u);
  // Of the programs that the profile knows, none runs again.
  auto warm = compileModel(options, second);
  ASSERT_TRUE(warm);
  warm->describe(report);
  if (llvm::cantFail(readProfile(options.profile)).plans.size() == 2)
    EXPECT_THAT(second.phases, testing::Not(Contains("trying steps")));
  llvm::sys::fs::remove(path);
}

TEST(Compilation, PredictionsDecideWhereStepsCannotBeTried) {
  DriverOptions options = optionsOf("mlp_tiny.mlir", "host:2");
  options.costs = "measured";
  options.splits = "any";
  Recorder recorder;
  std::unique_ptr<Compilation> compilation = readModel(options, recorder);
  ASSERT_TRUE(compilation);
  EXPECT_EQ(messageOf(compilation->findCosts([&](Execution &program) {
              return setAll(*compilation, program);
            })),
            "");
  EXPECT_EQ(messageOf(compilation->compile([](Execution &) {
              return llvm::createStringError("there are no values");
            })),
            "");
  EXPECT_THAT(recorder.notes,
              HasSubstr("steps in pieces were not compared by running them, "
                        "predictions decide: there are no values"));
  RunReport report;
  compilation->describe(report);
  ASSERT_TRUE(report.pieces);
  EXPECT_FALSE(report.pieces->triedPiecesNs || report.pieces->triedWholeNs);
  EXPECT_EQ(report.pieces->isKept,
            *report.pieces->piecesNs < *report.pieces->wholeNs);
}

TEST(Compilation, StepsWithHostCallsAreNotTried) {
  std::string path = writeModel(R"(
    func.func private @show(tensor<64x64xf32>)
        attributes {baechi.host_call = {effects = "ordered", ns = 500 : i64}}
    func.func @step(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>)
        -> tensor<64x64xf32> {
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %y = linalg.matmul
          ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>)
          outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
      call @show(%y) : (tensor<64x64xf32>) -> ()
      return %y : tensor<64x64xf32>
    })");
  DriverOptions options = optionsOf("", "host:2");
  options.model = path;
  options.costs = "measured";
  options.splits = "any";
  options.split = {"arg0=0:2"};
  options.hostCalls = true;
  Recorder recorder;
  ASSERT_TRUE(compileModel(options, recorder)) << recorder.errors;
  EXPECT_THAT(recorder.notes,
              HasSubstr("predictions decide: the host program computes parts "
                        "of a step"));
  llvm::sys::fs::remove(path);
}

TEST(Compilation, TellsHowFarFittingIs) {
  Recorder recorder;
  DriverOptions options = optionsOf("transformer_tiny.mlir", "host:1@60KiB");
  options.placer = "msct";
  options.splits = "none";
  ASSERT_TRUE(compileModel(options, recorder));
  EXPECT_THAT(
      recorder.phases,
      testing::IsSupersetOf({"placing", "looking for what to compute again",
                             "planning what fits", "lowering"}));
}
} // namespace
