//===- AddToProfile.cpp - What several processes add to a profile ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Profile.h"
#include "Baechi/Placement/Io/Store.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace baechi;

/// Where rows of another target or compiler go: "profile.json.3f2a…".
static std::string besides(const std::string &path, const Profile &profile) {
  std::string what = profile.target + "\n" + profile.compiler;
  if (!profile.cudaTarget.empty())
    what += "\n" + profile.cudaTarget;
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(what));
  return path + "." +
         llvm::toHex(ArrayRef(digest).take_front(4), /*LowerCase=*/true);
}

/// Takes from \p found what \p row lacks or has disturbed.
static void improve(ProfileRow &row, const ProfileRow &found) {
  bool isBetterStep =
      row.stepNs < 0 || (row.stepDisturbed && found.stepNs >= 0);
  ProfileRow before = row;
  if (row.disturbed)
    row = found;
  row.stepNs = isBetterStep ? found.stepNs : before.stepNs;
  row.stepDisturbed = isBetterStep ? found.stepDisturbed : before.stepDisturbed;
}

/// What rows are told apart by.
static std::string keyOf(const ProfileRow &row) {
  return row.hash + "/" + row.kind + "/" + row.implementation;
}

/// Takes the oldest rows and plans off a file that has too many, but for rows
/// of code that a program stays with.
static void dropOldest(Profile &profile) {
  if (profile.rows.size() > kMostProfileRows) {
    llvm::StringSet<> chosen;
    for (const ProgramChoice &choice : profile.choices)
      for (const auto &[hash, implementation] : choice.implementations)
        chosen.insert(hash + "/host/" + implementation);
    auto mayGo = [&](const ProfileRow &row) {
      return !chosen.contains(keyOf(row));
    };
    size_t count = llvm::count_if(profile.rows, mayGo);
    size_t excess = count - std::min(count, kMostProfileRows);
    llvm::erase_if(profile.rows, [&](const ProfileRow &row) {
      if (excess == 0 || !mayGo(row))
        return false;
      --excess;
      return true;
    });
  }
  if (profile.plans.size() > kMostProfileRows)
    profile.plans.erase(profile.plans.begin(),
                        profile.plans.end() - kMostProfileRows);
}

/// Into the file, whose lock is held; gives what it holds then. \p choice: the
/// file's, unless it has one of that program that is not \p replaced. Null:
/// none.
static llvm::Expected<Profile> addLocked(const std::string &path,
                                         const Profile &profile,
                                         const ProgramChoice *choice,
                                         const ProgramChoice *replaced) {
  Profile whole;
  whole.target = profile.target;
  whole.compiler = profile.compiler;
  whole.cudaTarget = profile.cudaTarget;
  if (llvm::sys::fs::exists(path)) {
    llvm::Expected<Profile> there = readProfile(path);
    if (!there)
      return there.takeError();
    bool otherHost = !there->target.empty() && !profile.target.empty() &&
                     !there->isComparable(profile);
    bool otherGpu = !there->cudaTarget.empty() && !profile.cudaTarget.empty() &&
                    there->cudaTarget != profile.cudaTarget;
    // They cost minutes and may be wanted again.
    if (otherHost || otherGpu)
      if (llvm::Error error = writeProfile(besides(path, *there), *there))
        return std::move(error);
    llvm::erase_if(there->rows, [&](const ProfileRow &row) {
      return (otherHost && row.kind == "host") ||
             (otherGpu && row.kind == "cuda");
    });
    if (!otherHost && !otherGpu)
      whole.plans = std::move(there->plans);
    if (!otherHost)
      whole.choices = std::move(there->choices);
    // Of the machine, whatever compiled the kernels.
    if (there->target.empty() || profile.target.empty() ||
        there->target == profile.target) {
      whole.peaks = there->peaks;
      whole.hosts = std::move(there->hosts);
    }
    if (whole.target.empty()) {
      whole.target = there->target;
      whole.compiler = there->compiler;
    }
    if (whole.cudaTarget.empty())
      whole.cudaTarget = there->cudaTarget;
    whole.rows = std::move(there->rows);
  }
  llvm::StringMap<size_t> known;
  for (auto [index, row] : llvm::enumerate(whole.rows))
    known[keyOf(row)] = index;
  for (const ProfileRow &row : profile.rows) {
    auto [there, isNew] = known.try_emplace(keyOf(row), whole.rows.size());
    if (isNew)
      whole.rows.push_back(row);
    else
      improve(whole.rows[there->second], row);
  }
  if (!whole.peaks)
    whole.peaks = profile.peaks;
  for (const HostTimes &times : profile.hosts)
    whole.setHost(times);
  llvm::StringSet<> planned;
  for (const PlanRow &plan : whole.plans)
    planned.insert(plan.program);
  for (const PlanRow &plan : profile.plans)
    if (planned.insert(plan.program).second)
      whole.plans.push_back(plan);
  if (choice)
    whole.settleChoice(*choice, replaced);
  dropOldest(whole);
  if (llvm::Error error = writeProfile(path, whole))
    return std::move(error);
  return whole;
}

llvm::Error baechi::addToProfile(const std::string &path,
                                 const Profile &profile) {
  placement::StoreLock lock(path);
  if (!lock.error().empty())
    return llvm::createStringError(path + ": " + lock.error());
  return addLocked(path, profile, nullptr, nullptr).takeError();
}

llvm::Expected<ProgramChoice>
baechi::keepChoice(const std::string &path, Profile &profile,
                   const ProgramChoice &choice, const ProgramChoice *replaced) {
  placement::StoreLock lock(path);
  if (!lock.error().empty())
    return llvm::createStringError(path + ": " + lock.error());
  llvm::Expected<Profile> whole = addLocked(path, profile, &choice, replaced);
  if (!whole)
    return whole.takeError();
  ProgramChoice kept = *whole->findChoice(choice.program);
  for (const auto &[hash, implementation] : kept.implementations)
    if (!profile.find(hash, "host", implementation))
      if (const ProfileRow *row = whole->find(hash, "host", implementation))
        profile.rows.push_back(*row);
  return kept;
}
