//===- LaunchTest.cpp - Which processes were started together -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Launch.h"

#include <gmock/gmock.h>

#include <map>

using namespace baechi::runtime;
using testing::HasSubstr;

namespace {

using Variables = std::map<std::string, std::string>;

Expected<Launch> launchOf(const Variables &variables) {
  return findLaunch([&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expectMeeting(const Variables &variables, const Meeting &meeting,
                   const char *launcher) {
  Expected<Launch> launch = launchOf(variables);
  ASSERT_TRUE(launch) << launch.error().message();
  EXPECT_EQ(Launch::Way::Sockets, launch->way);
  EXPECT_EQ(launcher, launch->launcher);
  EXPECT_EQ(meeting.rank, launch->meeting.rank);
  EXPECT_EQ(meeting.size, launch->meeting.size);
  EXPECT_EQ(meeting.host, launch->meeting.host);
  EXPECT_EQ(meeting.port, launch->meeting.port);
  EXPECT_EQ(meeting.job, launch->meeting.job);
}

const Variables own{{"BAECHI_RANKS", "3"},
                    {"BAECHI_RANK", "2"},
                    {"BAECHI_COORDINATOR", "node7:4000"}};
const Variables torchrun{{"RANK", "1"},
                         {"WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "10.0.0.1"},
                         {"MASTER_PORT", "29500"},
                         {"TORCHELASTIC_RUN_ID", "abc"},
                         {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Variables srun{{"SLURM_JOB_ID", "4097"},
                     {"SLURM_STEP_ID", "0"},
                     {"SLURM_NTASKS", "8"},
                     {"SLURM_PROCID", "5"},
                     {"SLURM_LOCALID", "1"},
                     {"SLURM_STEP_NODELIST", "gpu[007-010,020],login1"}};

Variables with(Variables variables, const char *name, const char *value) {
  variables[name] = value;
  return variables;
}

TEST(Launch, OfEachLauncher) {
  expectMeeting(own, {2, 3, "node7", 4000, ""}, "BAECHI_RANKS");
  expectMeeting(with(own, "BAECHI_COORDINATOR", "[fe80::1]:4000"),
                {2, 3, "fe80::1", 4000, ""}, "BAECHI_RANKS");
  expectMeeting(with(own, "BAECHI_JOB", "a"), {2, 3, "node7", 4000, "a"},
                "BAECHI_RANKS");
  expectMeeting(torchrun, {1, 4, "10.0.0.1", 29501, "abc.2"}, "torchrun");
  expectMeeting(srun, {5, 8, "gpu007", 57345, "4097.0"}, "srun");
  EXPECT_TRUE(launchOf(own)->meeting.readsMemory);
  EXPECT_FALSE(
      launchOf(with(own, "BAECHI_READ_MEMORY", "0"))->meeting.readsMemory);
  for (auto [nodes, first] :
       {std::pair("a,b", "a"), {"a", "a"}, {"n[3,5]", "n3"}, {"n[07]", "n07"}})
    EXPECT_EQ(first,
              launchOf(with(srun, "SLURM_STEP_NODELIST", nodes))->meeting.host);
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    Expected<Launch> launch = launchOf({{name, "2"}});
    ASSERT_TRUE(launch);
    EXPECT_EQ(Launch::Way::Mpi, launch->way);
    EXPECT_EQ(2, launch->meeting.size);
  }
}

TEST(Launch, TheFirstThatIsThere) {
  Variables all = own;
  all.insert(torchrun.begin(), torchrun.end());
  all.insert(srun.begin(), srun.end());
  all["OMPI_COMM_WORLD_SIZE"] = "2";
  EXPECT_EQ("BAECHI_RANKS", launchOf(all)->launcher);
  for (const auto &each : own)
    all.erase(each.first);
  EXPECT_EQ("mpirun", launchOf(all)->launcher);
  all.erase("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ("torchrun", launchOf(all)->launcher);
}

TEST(Launch, OneProcessIsAlone) {
  for (const Variables &variables :
       {Variables{}, Variables{{"RANK", "1"}, {"WORLD_SIZE", "2"}},
        with(with(torchrun, "RANK", "0"), "WORLD_SIZE", "1"),
        with(with(srun, "SLURM_PROCID", "0"), "SLURM_NTASKS", "1"),
        Variables{{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "8"}},
        Variables{{"PMI_SIZE", "1"}}}) {
    Expected<Launch> launch = launchOf(variables);
    ASSERT_TRUE(launch) << launch.error().message();
    EXPECT_EQ(Launch::Way::Alone, launch->way);
  }
}

TEST(Launch, NamesWhatIsWrong) {
  auto expectError = [](const Variables &variables, const char *text) {
    Expected<Launch> launch = launchOf(variables);
    ASSERT_FALSE(launch) << text;
    EXPECT_THAT(launch.error().message(), HasSubstr(text));
  };
  expectError({{"BAECHI_RANK", "0"}}, "BAECHI_RANKS is not set");
  expectError(with(own, "BAECHI_RANKS", "two"),
              "BAECHI_RANKS is 'two', not a number from 1 to 4096");
  expectError(with(own, "BAECHI_RANK", "3"),
              "BAECHI_RANKS says that this is rank 3 of 3: ranks count from 0");
  for (const char *address :
       {"node7", "node7:", ":4000", "node7:0", "node7:70000", "fe80::1:4000",
        "node7:4000x", "no de:4000"})
    expectError(with(own, "BAECHI_COORDINATOR", address), "not host:port");
  expectError(with(torchrun, "MASTER_PORT", "0"), "MASTER_PORT is '0'");
  expectError(with(srun, "SLURM_NTASKS", "8x"), "SLURM_NTASKS is '8x'");
}

TEST(Launch, SaysHowLongARankMaySayNothing) {
  EXPECT_EQ(10, launchOf(own)->silence);
  Expected<Launch> three = launchOf(with(own, "BAECHI_SILENCE", "3"));
  ASSERT_TRUE(three);
  EXPECT_EQ(3, three->silence);
  EXPECT_EQ(3, three->meeting.silence);
  Expected<Launch> wrong = launchOf(with(own, "BAECHI_SILENCE", "long"));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(),
              HasSubstr("BAECHI_SILENCE is 'long', not a number"));
}

} // namespace
