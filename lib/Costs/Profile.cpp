//===- Profile.cpp - Measured times of kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Profile.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Io/Store.h"
#include "ChoiceText.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;
namespace json = llvm::json;

const ProfileRow *Profile::find(StringRef hash, StringRef kind,
                                StringRef implementation) const {
  for (const ProfileRow &row : rows)
    if (row.hash == hash && row.kind == kind &&
        row.implementation == implementation)
      return &row;
  return nullptr;
}

const ProfileRow *Profile::fastest(StringRef hash, StringRef kind) const {
  const ProfileRow *best = nullptr;
  for (const ProfileRow &row : rows)
    if (row.hash == hash && row.kind == kind &&
        (!best || row.medianNs < best->medianNs))
      best = &row;
  return best;
}

const PlanRow *Profile::findPlan(StringRef program) const {
  for (const PlanRow &plan : plans)
    if (plan.program == program)
      return &plan;
  return nullptr;
}

const HostTimes *Profile::findHost(int64_t cores) const {
  for (const HostTimes &times : hosts)
    if (times.cores == cores)
      return &times;
  return nullptr;
}

void Profile::setHost(const HostTimes &times) {
  llvm::erase_if(hosts, [&](const HostTimes &known) {
    return known.cores == times.cores;
  });
  hosts.push_back(times);
}

namespace {
/// Words of cublasLtMatmulAlgo_t, and of baechi_cuda_convolution::engine.
size_t algorithmWords(StringRef implementation) {
  return implementation.starts_with("cudnn") ? 24 : 8;
}

llvm::Error readAlgorithm(const json::Object &object, ProfileRow &row) {
  if (const json::Array *words = object.getArray("algorithm"))
    for (const json::Value &word : *words)
      if (std::optional<int64_t> number = word.getAsInteger())
        row.algorithm.push_back(*number);
  const json::Array *words = object.getArray("algorithm");
  size_t known = algorithmWords(row.implementation);
  if (!words || words->size() != known || row.algorithm.size() != known)
    return llvm::createStringError("needs 'algorithm', a list of " +
                                   llvm::Twine(known) + " integers");
  return llvm::Error::success();
}

/// Reads one row; the error names the field.
llvm::Error readRow(const json::Object &object, ProfileRow &row) {
  auto text = [&](StringRef key, std::string &value) -> llvm::Error {
    std::optional<StringRef> found = object.getString(key);
    if (!found || found->empty())
      return llvm::createStringError("needs '" + key + "', a string");
    value = found->str();
    return llvm::Error::success();
  };
  auto number = [&](StringRef key, int64_t &value) -> llvm::Error {
    std::optional<int64_t> found = object.getInteger(key);
    if (!found || *found < 0)
      return llvm::createStringError("needs '" + key +
                                     "', a non-negative integer");
    value = *found;
    return llvm::Error::success();
  };
  for (auto [key, value] :
       {std::pair("kernel", &row.kernel), std::pair("hash", &row.hash),
        std::pair("implementation", &row.implementation),
        std::pair("kind", &row.kind)})
    if (llvm::Error error = text(key, *value))
      return error;
  for (auto [key, value] : {std::pair("median_ns", &row.medianNs),
                            std::pair("spread_ns", &row.spreadNs),
                            std::pair("samples", &row.samples),
                            std::pair("scratch_bytes", &row.scratchBytes)})
    if (llvm::Error error = number(key, *value))
      return error;
  // Rows written by hand may lack them.
  for (auto [key, value] :
       {std::pair("step_ns", &row.stepNs), std::pair("flops", &row.flops),
        std::pair("bytes", &row.bytes)})
    if (object.get(key))
      if (llvm::Error error = number(key, *value))
        return error;
  for (auto [key, value] : {std::pair("disturbed", &row.disturbed),
                            std::pair("step_disturbed", &row.stepDisturbed)}) {
    std::optional<bool> given = object.getBoolean(key);
    if (object.get(key) && !given)
      return llvm::createStringError("needs '" + llvm::Twine(key) +
                                     "', true or false");
    *value = given.value_or(false);
  }
  if (object.get("algorithm"))
    return readAlgorithm(object, row);
  return llvm::Error::success();
}

/// Reads the list of plans, which files of before do not have.
llvm::Error readPlans(const json::Object &object, Profile &profile) {
  const json::Array *plans = object.getArray("plans");
  if (!plans)
    return object.get("plans") ? llvm::createStringError("'plans' is no list")
                               : llvm::Error::success();
  llvm::StringSet<> seen;
  for (auto [index, entry] : llvm::enumerate(*plans)) {
    const json::Object *fields = entry.getAsObject();
    std::optional<StringRef> program =
        fields ? fields->getString("program") : std::nullopt;
    std::optional<int64_t> ns =
        fields ? fields->getInteger("step_ns") : std::nullopt;
    if (!program || program->empty() || !ns || *ns < 0)
      return llvm::createStringError(
          "plans[" + llvm::Twine(index) +
          "] needs 'program', a string, and 'step_ns', a non-negative integer");
    if (!seen.insert(*program).second)
      return llvm::createStringError("plans[" + llvm::Twine(index) +
                                     "] repeats program '" + *program + "'");
    profile.plans.push_back({program->str(), *ns});
  }
  return llvm::Error::success();
}

/// Reads the host's peaks, which files of before do not have.
llvm::Error readPeaks(const json::Object &object, Profile &profile) {
  const json::Value *value = object.get("host_peaks");
  if (!value)
    return llvm::Error::success();
  const json::Object *fields = value->getAsObject();
  auto number = [&](StringRef key) {
    return fields ? fields->getNumber(key).value_or(0) : 0;
  };
  HostPeaks peaks{number("flops_per_second"), number("bytes_per_second")};
  if (!(peaks.flopsPerSecond > 0) || !(peaks.bytesPerSecond > 0))
    return llvm::createStringError("host_peaks needs 'flops_per_second' and "
                                   "'bytes_per_second', positive numbers");
  profile.peaks = peaks;
  return llvm::Error::success();
}

/// Reads one of the hosts; false: it lacks something.
bool readHost(const json::Value &value, HostTimes &times) {
  auto read = [](const json::Object *fields, StringRef key, int64_t least,
                 int64_t &number) {
    std::optional<int64_t> found =
        fields ? fields->getInteger(key) : std::nullopt;
    number = found.value_or(least);
    return found && *found >= least;
  };
  const json::Object *fields = value.getAsObject();
  if (!read(fields, "cores", 1, times.cores))
    return false;
  for (auto [key, number] :
       {std::pair("step_ns", &times.runtime.stepNs),
        std::pair("alone_ns", &times.runtime.aloneNs),
        std::pair("operator_ns", &times.runtime.operatorNs),
        std::pair("wake_ns", &times.runtime.wakeNs)})
    if (!read(fields, key, 0, *number))
      return false;
  if (fields->get("carrier_ns") &&
      (!read(fields, "carrier_ns", 0, times.carrierNs) ||
       !read(fields, "carrier_bytes_per_us", 1, times.carrierBytesPerUs)))
    return false;
  if (!fields->get("link"))
    return true;
  const json::Object *link = fields->getObject("link");
  times.link.emplace();
  return read(link, "latency_ns", 0, times.link->latencyNs) &&
         read(link, "bytes_per_us", 1, times.link->bytesPerUs);
}

/// Reads the list of hosts, which files of before do not have.
llvm::Error readHosts(const json::Object &object, Profile &profile) {
  const json::Array *hosts = object.getArray("hosts");
  if (!hosts)
    return object.get("hosts") ? llvm::createStringError("'hosts' is no list")
                               : llvm::Error::success();
  for (auto [index, entry] : llvm::enumerate(*hosts)) {
    HostTimes times;
    if (!readHost(entry, times))
      return llvm::createStringError(
          "hosts[" + llvm::Twine(index) +
          "] needs 'cores', at least 1, 'step_ns', 'alone_ns', 'operator_ns' "
          "and 'wake_ns', non-negative integers, and in its 'link', if it has "
          "one, 'latency_ns' and 'bytes_per_us', at least 1; with 'carrier_ns' "
          "goes 'carrier_bytes_per_us', at least 1");
    if (profile.findHost(times.cores))
      return llvm::createStringError("hosts[" + llvm::Twine(index) +
                                     "] repeats one of " +
                                     llvm::Twine(times.cores) + " cores");
    profile.hosts.push_back(times);
  }
  return llvm::Error::success();
}

json::Object toJson(const HostTimes &times) {
  json::Object object{{"cores", times.cores},
                      {"step_ns", times.runtime.stepNs},
                      {"alone_ns", times.runtime.aloneNs},
                      {"operator_ns", times.runtime.operatorNs},
                      {"wake_ns", times.runtime.wakeNs}};
  if (times.carrierBytesPerUs > 0) {
    object["carrier_ns"] = times.carrierNs;
    object["carrier_bytes_per_us"] = times.carrierBytesPerUs;
  }
  if (times.link)
    object["link"] = json::Object{{"latency_ns", times.link->latencyNs},
                                  {"bytes_per_us", times.link->bytesPerUs}};
  return object;
}
} // namespace

llvm::Expected<Profile> baechi::parseProfile(StringRef text,
                                             const std::string &name) {
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return llvm::createStringError(name + ": " +
                                   llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object || object->getString("format") != "baechi-profile" ||
      object->getInteger("version") != 1)
    return llvm::createStringError(name +
                                   ": not a baechi-profile file of version 1");
  const json::Array *rows = object->getArray("rows");
  if (!rows)
    return llvm::createStringError(name + ": needs 'rows', a list");
  Profile profile;
  profile.target = object->getString("target").value_or("").str();
  profile.compiler = object->getString("compiler").value_or("").str();
  profile.cudaTarget = object->getString("cuda_target").value_or("").str();
  llvm::StringMap<size_t> seen;
  for (auto [index, entry] : llvm::enumerate(*rows)) {
    ProfileRow row;
    const json::Object *fields = entry.getAsObject();
    llvm::Error error = fields ? readRow(*fields, row)
                               : llvm::createStringError("must be an object");
    if (error)
      return llvm::createStringError(name + ": rows[" + llvm::Twine(index) +
                                     "] " + llvm::toString(std::move(error)));
    auto [first, isNew] = seen.try_emplace(
        row.hash + "/" + row.kind + "/" + row.implementation, index);
    if (!isNew)
      return llvm::createStringError(
          name + ": rows[" + llvm::Twine(index) + "] repeats rows[" +
          llvm::Twine(first->second) + "]: kernel '" + row.kernel + "', '" +
          row.implementation + "' on '" + row.kind + "'");
    profile.rows.push_back(std::move(row));
  }
  for (auto read : {readPlans, readChoices, readPeaks, readHosts})
    if (llvm::Error error = read(*object, profile))
      return llvm::createStringError(name + ": " +
                                     llvm::toString(std::move(error)));
  return profile;
}

llvm::Expected<Profile> baechi::readProfile(const std::string &path) {
  if (std::string reason = placement::whyUntrusted(path); !reason.empty())
    return llvm::createStringError(path + ": is not read: " + reason);
  std::string text, error = placement::readTextFile(path, text);
  if (error.empty() && StringRef(text).trim().empty())
    error = path + ": is empty";
  if (error.empty()) {
    llvm::Expected<Profile> profile = parseProfile(text, path);
    if (profile)
      return profile;
    error = llvm::toString(profile.takeError());
  }
  if (llvm::sys::fs::exists(path))
    error += "; delete the file or give another profile: what it lacks, "
             "baechi-run measures again";
  return llvm::createStringError(error);
}

json::Object baechi::profileObject(const Profile &profile) {
  json::Array rows;
  for (const ProfileRow &row : profile.rows) {
    json::Object object{{"kernel", row.kernel},
                        {"hash", row.hash},
                        {"implementation", row.implementation},
                        {"kind", row.kind},
                        {"median_ns", row.medianNs},
                        {"spread_ns", row.spreadNs},
                        {"samples", row.samples},
                        {"scratch_bytes", row.scratchBytes}};
    if (row.stepNs >= 0)
      object["step_ns"] = row.stepNs;
    if (row.flops >= 0)
      object["flops"] = row.flops;
    if (row.bytes >= 0)
      object["bytes"] = row.bytes;
    if (row.disturbed)
      object["disturbed"] = true;
    if (row.stepDisturbed)
      object["step_disturbed"] = true;
    if (!row.algorithm.empty())
      object["algorithm"] = json::Array(row.algorithm);
    rows.push_back(std::move(object));
  }
  json::Object value{{"format", "baechi-profile"},
                     {"version", 1},
                     {"target", profile.target},
                     {"compiler", profile.compiler},
                     {"rows", std::move(rows)}};
  if (!profile.cudaTarget.empty())
    value["cuda_target"] = profile.cudaTarget;
  json::Array plans;
  for (const PlanRow &plan : profile.plans)
    plans.push_back(
        json::Object{{"program", plan.program}, {"step_ns", plan.stepNs}});
  if (!plans.empty())
    value["plans"] = std::move(plans);
  if (!profile.choices.empty())
    value["choices"] = choicesToJson(profile.choices);
  if (profile.peaks)
    value["host_peaks"] =
        json::Object{{"flops_per_second", profile.peaks->flopsPerSecond},
                     {"bytes_per_second", profile.peaks->bytesPerSecond}};
  json::Array hosts;
  for (const HostTimes &times : profile.hosts)
    hosts.push_back(toJson(times));
  if (!hosts.empty())
    value["hosts"] = std::move(hosts);
  return value;
}

llvm::Error baechi::writeProfile(const std::string &path,
                                 const Profile &profile) {
  std::string error = placement::writeTextFile(
      path,
      llvm::formatv("{0:2}", json::Value(profileObject(profile))).str() + "\n");
  if (!error.empty())
    return llvm::createStringError(error);
  return llvm::Error::success();
}
