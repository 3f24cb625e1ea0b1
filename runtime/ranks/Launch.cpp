//===- Launch.cpp - Which processes were started together -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

using namespace baechi::runtime;

namespace {

/// Reads variables; the first that is wrong is told.
class Reader {
public:
  explicit Reader(const VariableLookup &environment)
      : environment(environment) {}

  bool has(const char *name) const {
    const char *value = environment(name);
    return value && *value;
  }
  std::string text(const char *name) const {
    return has(name) ? environment(name) : "";
  }
  /// 0 where it is none from `least` to `most`.
  int64_t number(const char *name, int64_t least, int64_t most) {
    std::string value = text(name);
    int64_t result = 0;
    auto [end, code] =
        std::from_chars(value.data(), value.data() + value.size(), result);
    if (code == std::errc() && end == value.data() + value.size() &&
        result >= least && result <= most)
      return result;
    if (!wrong)
      wrong =
          Error(std::string(name) + " is '" + value + "', not a number from " +
                std::to_string(least) + " to " + std::to_string(most));
    return 0;
  }

  Error wrong;

private:
  const VariableLookup &environment;
};

constexpr int64_t mostRanks = 4096;
constexpr int64_t mostPort = 65535;
constexpr int64_t longestSilence = 86400;

/// "host:port", "[address]:port".
bool readAddress(std::string_view text, Meeting &meeting) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return false;
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return false; // An address whose last part is taken for a port.
  int64_t number = 0;
  auto [end, code] =
      std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || host.find(' ') != std::string_view::npos ||
      code != std::errc() || end != port.data() + port.size() || number < 1 ||
      number > mostPort)
    return false;
  meeting.host = host;
  meeting.port = uint16_t(number);
  return true;
}

/// A start whose ranks meet, of which variables say how many they are and which
/// one this is.
Launch bySockets(Reader &read, const char *launcher, const char *size,
                 const char *rank) {
  Launch launch;
  launch.way = Launch::Way::Sockets;
  launch.launcher = launcher;
  launch.meeting.size = int32_t(read.number(size, 1, mostRanks));
  launch.meeting.rank = int32_t(read.number(rank, 0, mostRanks - 1));
  return launch;
}

Expected<Launch> ofOwnVariables(Reader &read) {
  for (const char *name : {"BAECHI_RANKS", "BAECHI_RANK", "BAECHI_COORDINATOR"})
    if (!read.has(name))
      return Error(std::string(name) +
                   " is not set: BAECHI_RANKS (how many processes), "
                   "BAECHI_RANK (which one this is, from 0) and "
                   "BAECHI_COORDINATOR (host:port of rank 0) go together");
  Launch launch =
      bySockets(read, "BAECHI_RANKS", "BAECHI_RANKS", "BAECHI_RANK");
  Meeting &meeting = launch.meeting;
  if (!readAddress(read.text("BAECHI_COORDINATOR"), meeting))
    return Error("BAECHI_COORDINATOR is '" + read.text("BAECHI_COORDINATOR") +
                 "', not host:port");
  meeting.job = read.text("BAECHI_JOB");
  return launch;
}

/// The port beside MASTER_PORT, where torchrun itself listens.
Launch ofTorchrun(Reader &read) {
  Launch launch = bySockets(read, "torchrun", "WORLD_SIZE", "RANK");
  Meeting &meeting = launch.meeting;
  meeting.host = read.text("MASTER_ADDR");
  int64_t port = read.number("MASTER_PORT", 1, mostPort);
  meeting.port = uint16_t(port == mostPort ? port - 1 : port + 1);
  meeting.job = read.text("TORCHELASTIC_RUN_ID") + "." +
                read.text("TORCHELASTIC_RESTART_COUNT");
  return launch;
}

/// "node[001-015,020],other" begins with node001.
std::string firstNode(std::string_view nodes) {
  size_t end = nodes.find_first_of(",[");
  std::string first(nodes.substr(0, end));
  if (end != std::string_view::npos && nodes[end] == '[') {
    nodes.remove_prefix(end + 1);
    first += nodes.substr(0, nodes.find_first_of(",-]"));
  }
  return first;
}

/// As JAX finds its coordinator, at another port: both may be there.
Launch ofSlurm(Reader &read) {
  Launch launch = bySockets(read, "srun", "SLURM_NTASKS", "SLURM_PROCID");
  Meeting &meeting = launch.meeting;
  int64_t job = read.number("SLURM_JOB_ID", 0, INT64_MAX);
  meeting.host = firstNode(read.text("SLURM_STEP_NODELIST"));
  meeting.port = uint16_t(57344 + job % 4096);
  meeting.job = read.text("SLURM_JOB_ID") + "." + read.text("SLURM_STEP_ID");
  return launch;
}

} // namespace

Expected<Launch>
baechi::runtime::findLaunch(const VariableLookup &environment) {
  Reader read(environment);
  auto hasAll = [&](std::initializer_list<const char *> names) {
    for (const char *name : names)
      if (!read.has(name))
        return false;
    return true;
  };
  std::optional<Expected<Launch>> found;
  if (read.has("BAECHI_RANKS") || read.has("BAECHI_RANK") ||
      read.has("BAECHI_COORDINATOR")) {
    found = ofOwnVariables(read);
  } else {
    for (const char *name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
      if (!found && read.has(name)) {
        Launch launch;
        launch.way = Launch::Way::Mpi;
        launch.launcher = "mpirun";
        launch.meeting.size = int32_t(read.number(name, 1, mostRanks));
        launch.variable = name;
        found = launch;
      }
  }
  if (!found && hasAll({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}))
    found = ofTorchrun(read);
  // Not in a batch script or a shell of salloc, which run once.
  if (!found && hasAll({"SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS",
                        "SLURM_PROCID", "SLURM_LOCALID"}))
    found = ofSlurm(read);
  if (!found)
    return Launch();
  if (!*found)
    return *found;
  if (read.wrong)
    return read.wrong;
  Meeting &meeting = (*found)->meeting;
  if (meeting.rank >= meeting.size)
    return Error((*found)->launcher + " says that this is rank " +
                 std::to_string(meeting.rank) + " of " +
                 std::to_string(meeting.size) + ": ranks count from 0");
  if (meeting.size == 1)
    return Launch();
  meeting.readsMemory = read.text("BAECHI_READ_MEMORY") != "0";
  if (read.has("BAECHI_SILENCE"))
    (*found)->silence = meeting.silence =
        double(read.number("BAECHI_SILENCE", 0, longestSilence));
  if (read.wrong)
    return read.wrong;
  return *found;
}

Expected<Launch> baechi::runtime::findLaunch() {
  return findLaunch(
      [](const char *name) -> const char * { return std::getenv(name); });
}
