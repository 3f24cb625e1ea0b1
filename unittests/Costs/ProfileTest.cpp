//===- ProfileTest.cpp - Profile files and keys of rows -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Profile.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Placement/Io/Files.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <filesystem>
#include <thread>

using namespace baechi;
using testing::HasSubstr;

namespace {
Profile example() {
  Profile profile;
  profile.target = "some+processor";
  profile.rows.push_back(
      {"matmul", "6f1c", "openblas", "host", 41000, 300, 25, 0});
  profile.rows.push_back(
      {"matmul", "6f1c", "generated", "host", 82000, 500, 9, 4096});
  return profile;
}

std::string errorOf(llvm::StringRef text) {
  auto profile = parseProfile(text, "p.json");
  return profile ? "" : llvm::toString(profile.takeError());
}

std::string withRow(const std::string &row) {
  return R"({"format": "baechi-profile", "version": 1, "rows": [)" + row + "]}";
}

TEST(Profile, RoundTrip) {
  std::string path = std::filesystem::temp_directory_path() /
                     ("baechi_profile_" + std::to_string(::getpid()) + ".json");
  Profile written = example();
  written.cudaTarget = "a GPU";
  written.plans = {{"6f", 41}, {"7a", 0}};
  written.peaks = HostPeaks{242e9, 30.5e9};
  written.hosts = {{1, {5000, 40, 0}},
                   {2,
                    {30000, 60, 50000},
                    placement::Link{900, 12000},
                    /*carrierNs=*/21000,
                    /*carrierBytesPerUs=*/5200}};
  for (HostTimes &times : written.hosts)
    times.runtime.aloneNs = 4000;
  written.rows[1].algorithm = {1, -2, 3, 4, 5, 6, 7, INT64_MIN};
  ASSERT_FALSE(static_cast<bool>(writeProfile(path, written)));
  auto read = readProfile(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->target, written.target);
  ASSERT_EQ(read->rows.size(), written.rows.size());
  for (size_t i = 0; i < written.rows.size(); ++i) {
    const ProfileRow &a = read->rows[i], &b = written.rows[i];
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.hash, b.hash);
    EXPECT_EQ(a.implementation, b.implementation);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.medianNs, b.medianNs);
    EXPECT_EQ(a.spreadNs, b.spreadNs);
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.scratchBytes, b.scratchBytes);
    EXPECT_EQ(a.algorithm, b.algorithm);
  }
  EXPECT_EQ(read->cudaTarget, written.cudaTarget);
  ASSERT_EQ(read->plans.size(), 2u);
  EXPECT_EQ(read->plans[0].stepNs, 41);
  ASSERT_TRUE(read->findPlan("7a"));
  EXPECT_EQ(read->findPlan("8b"), nullptr);
  ASSERT_TRUE(read->peaks);
  EXPECT_EQ(read->peaks->flopsPerSecond, 242e9);
  EXPECT_EQ(read->peaks->bytesPerSecond, 30.5e9);
  ASSERT_EQ(read->hosts.size(), 2u);
  ASSERT_TRUE(read->findHost(1));
  EXPECT_FALSE(read->findHost(1)->link);
  EXPECT_EQ(read->findHost(3), nullptr);
  const HostTimes *two = read->findHost(2);
  ASSERT_TRUE(two && two->link);
  EXPECT_EQ(two->link, (placement::Link{900, 12000}));
  EXPECT_EQ(two->runtime.stepNs, 30000);
  EXPECT_EQ(two->runtime.operatorNs, 60);
  EXPECT_EQ(two->runtime.wakeNs, 50000);
  EXPECT_EQ(two->runtime.aloneNs, 4000);
  EXPECT_EQ(two->carrierNs, 21000);
  EXPECT_EQ(two->carrierBytesPerUs, 5200);
  EXPECT_EQ(read->findHost(1)->carrierBytesPerUs, 0);
}

TEST(Profile, FindsTheFastestRow) {
  Profile profile = example();
  EXPECT_EQ(profile.fastest("6f1c", "host")->implementation, "openblas");
  EXPECT_EQ(profile.find("6f1c", "host", "generated")->medianNs, 82000);
  EXPECT_EQ(profile.fastest("6f1c", "cuda"), nullptr);
  EXPECT_EQ(profile.fastest("other", "host"), nullptr);
}

TEST(Profile, ErrorsNameTheFileAndTheField) {
  EXPECT_THAT(errorOf("{"), HasSubstr("p.json"));
  EXPECT_THAT(errorOf("[]"), HasSubstr("not a baechi-profile file"));
  EXPECT_THAT(errorOf(R"({"format": "baechi-profile", "version": 2})"),
              HasSubstr("version 1"));
  EXPECT_THAT(errorOf(R"({"format": "baechi-profile", "version": 1})"),
              HasSubstr("p.json: needs 'rows', a list"));
  EXPECT_THAT(errorOf(withRow("3")), HasSubstr("rows[0] must be an object"));
  EXPECT_THAT(errorOf(withRow("{}")), HasSubstr("rows[0] needs 'kernel'"));
  std::string row = R"({"kernel": "k", "hash": "h", "implementation": "i", )"
                    R"("kind": "host", "median_ns": 1, "spread_ns": 0, )"
                    R"("samples": 3, "scratch_bytes": 0})";
  EXPECT_EQ(errorOf(withRow(row)), "");
  EXPECT_THAT(errorOf(withRow(row + ", " + row)),
              HasSubstr("rows[1] repeats rows[0]: kernel 'k', 'i' on 'host'"));
  std::string disturbed = row;
  disturbed.insert(disturbed.size() - 1, R"(, "disturbed": 1)");
  EXPECT_THAT(errorOf(withRow(disturbed)),
              HasSubstr("rows[0] needs 'disturbed', true or false"));
  std::string negative = row;
  negative.replace(negative.find("\"median_ns\": 1"), 14, "\"median_ns\": -1");
  EXPECT_THAT(errorOf(withRow(negative)),
              HasSubstr("rows[0] needs 'median_ns', a non-negative integer"));
  for (const char *algorithm :
       {"3", "[1, 2]", "[1, 2, 3, 4, 5, 6, 7, \"8\"]"}) {
    std::string wrong = row;
    wrong.insert(wrong.size() - 1,
                 std::string(", \"algorithm\": ") + algorithm);
    EXPECT_THAT(errorOf(withRow(wrong)),
                HasSubstr("rows[0] needs 'algorithm', a list of 8 integers"));
  }
  std::string engine = row;
  engine.replace(engine.find("\"i\""), 3, "\"cudnn-tf32\"");
  engine.insert(engine.size() - 1, ", \"algorithm\": [1, 2, 3, 4, 5, 6, 7, 8]");
  EXPECT_THAT(errorOf(withRow(engine)),
              HasSubstr("rows[0] needs 'algorithm', a list of 24 integers"));
  engine.insert(engine.find("[1") + 1, "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
                                       "0, 0, 0, 0, ");
  EXPECT_EQ(errorOf(withRow(engine)), "");
  auto withPlans = [](const std::string &plans) {
    return R"({"format": "baechi-profile", "version": 1, "rows": [], "plans": )" +
           plans + "}";
  };
  std::string plan = R"({"program": "6f", "step_ns": 5})";
  EXPECT_EQ(errorOf(withPlans("[" + plan + "]")), "");
  EXPECT_THAT(errorOf(withPlans("3")), HasSubstr("p.json: 'plans' is no list"));
  for (const char *wrong :
       {"3", R"({"step_ns": 5})", R"({"program": "6f", "step_ns": -1})"})
    EXPECT_THAT(
        errorOf(withPlans(std::string("[") + wrong + "]")),
        HasSubstr("plans[0] needs 'program', a string, and 'step_ns', a "
                  "non-negative integer"));
  EXPECT_THAT(errorOf(withPlans("[" + plan + ", " + plan + "]")),
              HasSubstr("plans[1] repeats program '6f'"));
  for (const char *wrong : {"3", R"({"flops_per_second": 1e9})",
                            R"({"flops_per_second": 1e9,
                                "bytes_per_second": 0})"})
    EXPECT_THAT(errorOf(R"({"format": "baechi-profile", "version": 1,
                            "rows": [], "host_peaks": )" +
                        std::string(wrong) + "}"),
                HasSubstr("p.json: host_peaks needs 'flops_per_second' and "
                          "'bytes_per_second', positive numbers"));
  auto withHosts = [](const std::string &hosts) {
    return R"({"format": "baechi-profile", "version": 1, "rows": [], "hosts": )" +
           hosts + "}";
  };
  std::string host = R"({"cores": 2, "step_ns": 3, "alone_ns": 2, )"
                     R"("operator_ns": 1, "wake_ns": 0)";
  EXPECT_EQ(errorOf(withHosts("[" + host + "}]")), "");
  EXPECT_THAT(errorOf(withHosts("3")), HasSubstr("p.json: 'hosts' is no list"));
  for (const std::string &wrong :
       {std::string("3"), std::string(R"({"cores": 2})"),
        host + R"(, "carrier_ns": 5})",
        host + R"(, "carrier_ns": 5, "carrier_bytes_per_us": 0})",
        host + R"(, "link": 3})", host + R"(, "link": {"latency_ns": 1}})",
        host + R"(, "link": {"latency_ns": 1, "bytes_per_us": 0}})"})
    EXPECT_THAT(errorOf(withHosts("[" + wrong + "]")),
                HasSubstr("hosts[0] needs 'cores', at least 1, 'step_ns', "
                          "'alone_ns', 'operator_ns' and 'wake_ns', "
                          "non-negative integers, and in its 'link', if it has "
                          "one, 'latency_ns' and 'bytes_per_us', at least 1; "
                          "with 'carrier_ns' goes 'carrier_bytes_per_us', at "
                          "least 1"));
  EXPECT_THAT(errorOf(withHosts("[" + host + "}, " + host + "}]")),
              HasSubstr("hosts[1] repeats one of 2 cores"));
  auto missing = readProfile("no/such/file.json");
  ASSERT_FALSE(static_cast<bool>(missing));
  EXPECT_THAT(llvm::toString(missing.takeError()), HasSubstr("no/such/file"));
}

TEST(Profile, WhatSeveralWritersAddIsKept) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("profile", folder));
  std::string path = (folder + "/profile.json").str();
  constexpr int writers = 4, rows = 8;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      Profile profile;
      profile.target = "here";
      for (int row = 0; row < rows; ++row) {
        profile.rows.push_back(
            {"k", std::to_string(writer * rows + row), "generated", "host"});
        // All of them write this one, too.
        if (row == 0)
          profile.rows.push_back({"k", "shared", "generated", "host"});
        EXPECT_EQ(llvm::toString(addToProfile(path, profile)), "");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  auto whole = readProfile(path);
  ASSERT_TRUE(static_cast<bool>(whole)) << llvm::toString(whole.takeError());
  EXPECT_EQ(whole->rows.size(), size_t(writers * rows + 1));
  EXPECT_EQ(whole->target, "here");

  // Times of another host are not mixed in; those of other kinds stay.
  ASSERT_FALSE(llvm::errorToBool(
      addToProfile(path, {{{"k", "a", "library", "gpu"}}, "here", ""})));
  ASSERT_FALSE(llvm::errorToBool(addToProfile(
      path, {{{"k", "b", "generated", "host"}}, "elsewhere", ""})));
  whole = readProfile(path);
  ASSERT_TRUE(static_cast<bool>(whole));
  ASSERT_EQ(whole->rows.size(), 2u);
  EXPECT_EQ(whole->rows[0].kind, "gpu");
  EXPECT_EQ(whole->rows[1].hash, "b");

  // They lie beside it.
  std::vector<std::string> others;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator file(folder, code), end; file != end;
       file.increment(code))
    if (llvm::StringRef(file->path()).contains("profile.json.") &&
        !llvm::StringRef(file->path()).ends_with(".lock"))
      others.push_back(file->path());
  ASSERT_EQ(others.size(), 1u);
  auto other = readProfile(others[0]);
  ASSERT_TRUE(static_cast<bool>(other)) << llvm::toString(other.takeError());
  EXPECT_EQ(other->target, "here");
  EXPECT_EQ(other->rows.size(), size_t(writers * rows + 2));

  // A time within a step goes to the row that is there, and stays.
  Profile refined{{{"k", "b", "generated", "host"}}, "elsewhere", ""};
  for (int64_t ns : {70, 80}) {
    refined.rows[0].stepNs = ns;
    ASSERT_FALSE(llvm::errorToBool(addToProfile(path, refined)));
  }
  whole = readProfile(path);
  ASSERT_TRUE(static_cast<bool>(whole));
  ASSERT_EQ(whole->rows.size(), 2u);
  EXPECT_EQ(whole->rows[1].stepNs, 70);
  EXPECT_EQ(whole->rows[1].costNs(), 70);
  EXPECT_EQ(whole->rows[0].costNs(), whole->rows[0].medianNs);

  // Nor are times of another GPU, while those of the host stay.
  for (const char *gpu : {"one", "two"}) {
    Profile measured{{{"k", gpu, "generated", "cuda"}}, "", "", gpu};
    ASSERT_FALSE(llvm::errorToBool(addToProfile(path, measured)));
  }
  whole = readProfile(path);
  ASSERT_TRUE(static_cast<bool>(whole));
  EXPECT_EQ(whole->target, "elsewhere");
  EXPECT_EQ(whole->cudaTarget, "two");
  ASSERT_EQ(whole->rows.size(), 3u);
  EXPECT_EQ(whole->rows[2].hash, "two");

  // A damaged store is not written over.
  ASSERT_EQ(placement::writeTextFile(path, "{"), "");
  EXPECT_THAT(llvm::toString(addToProfile(path, *whole)),
              HasSubstr("profile.json: "));
  std::string text;
  EXPECT_EQ(placement::readTextFile(path, text), "");
  EXPECT_EQ(text, "{");
  llvm::sys::fs::setPermissions(path, llvm::sys::fs::perms(0666));
  EXPECT_THAT(llvm::toString(readProfile(path).takeError()),
              HasSubstr("profile.json: is not read: everybody may write it;"));
  llvm::sys::fs::remove_directories(folder);
}

TEST(Profile, HostsAreOfTheMachineAndReplaced) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("profile", folder));
  std::string path = (folder + "/profile.json").str();
  auto add = [&](const char *target, const char *compiler, HostTimes times) {
    times.runtime.aloneNs = 1;
    Profile profile;
    profile.target = target;
    profile.compiler = compiler;
    if (times.cores)
      profile.hosts.push_back(times);
    EXPECT_EQ(llvm::toString(addToProfile(path, profile)), "");
    return llvm::cantFail(readProfile(path)).hosts;
  };
  EXPECT_EQ(add("here", "one", {2, {7}}).size(), 1u);
  EXPECT_EQ(add("here", "one", {1, {5}}).size(), 2u);
  std::vector<HostTimes> hosts = add("here", "one", {2, {6}});
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts.back().cores, 2);
  EXPECT_EQ(hosts.back().runtime.stepNs, 6);
  // Kernels of another compiler are others, the machine is not.
  EXPECT_EQ(add("here", "other", {0, {}}).size(), 2u);
  EXPECT_EQ(add("elsewhere", "other", {0, {}}).size(), 0u);
  llvm::sys::fs::remove_directories(folder);
}

TEST(Profile, HashIsOfTheTextWithoutNames) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::func::FuncDialect, BaechiDialect>();
  auto hash = [&](const std::string &attributes, const std::string &name,
                  const std::string &type) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func private @" + name + "(%x: " + type + ") -> " + type +
            " attributes {" + attributes + "} {\n  return %x : " + type + "\n}",
        &context);
    return kernelHash(*module->getOps<mlir::func::FuncOp>().begin());
  };
  std::string base = hash("baechi.kernel", "a", "tensor<4xf32>");
  EXPECT_EQ(base, hash("baechi.kernel, baechi.kernel_scratch = 64 : i64, "
                       "baechi.implementation = \"openblas\"",
                       "b", "tensor<4xf32>"));
  EXPECT_NE(base, hash("baechi.kernel", "a", "tensor<5xf32>"));
}
TEST(Profile, WhatWasDisturbedIsReplaced) {
  std::string folder = std::filesystem::temp_directory_path() /
                       ("baechi_disturbed_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  std::string path = folder + "/profile.json";
  auto keep = [&](int64_t medianNs, bool disturbed, int64_t stepNs,
                  bool stepDisturbed) {
    ProfileRow row{"k", "h", "generated", "host", medianNs};
    row.disturbed = disturbed;
    row.stepNs = stepNs;
    row.stepDisturbed = stepDisturbed;
    EXPECT_FALSE(llvm::errorToBool(addToProfile(path, {{row}, "here", ""})));
    auto whole = readProfile(path);
    EXPECT_TRUE(static_cast<bool>(whole));
    EXPECT_EQ(whole->rows.size(), 1u);
    return whole->rows.front();
  };
  ProfileRow row = keep(90, true, 80, true);
  EXPECT_TRUE(row.disturbed && row.stepDisturbed);
  // A good step, and a bad time alone, which takes the place of the other one.
  row = keep(95, true, 40, false);
  EXPECT_TRUE(row.disturbed);
  EXPECT_FALSE(row.stepDisturbed);
  EXPECT_EQ(row.stepNs, 40);
  row = keep(50, false, -1, false);
  EXPECT_FALSE(row.disturbed || row.stepDisturbed);
  EXPECT_EQ(row.medianNs, 50);
  EXPECT_EQ(row.stepNs, 40);
  row = keep(99, true, 99, true);
  EXPECT_FALSE(row.disturbed || row.stepDisturbed);
  EXPECT_EQ(row.medianNs, 50);
  EXPECT_EQ(row.stepNs, 40);
  std::filesystem::remove_all(folder);
}
} // namespace
