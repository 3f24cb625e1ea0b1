//===- ObjectStore.cpp - Compiled kernels in a folder -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/ObjectStore.h"
#include "Baechi/Placement/Io/Store.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <chrono>

using namespace baechi;
namespace fs = llvm::sys::fs;

namespace {
constexpr size_t kHashBytes = 32;
/// No kernel's code comes near it; what is larger is none of ours.
constexpr size_t kMostBytes = size_t(256) << 20;

std::array<uint8_t, kHashBytes> hashOf(llvm::StringRef bytes) {
  return llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
}

llvm::StringRef toText(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::toStringRef(bytes);
}

/// Ends a file. Of the key as well, so that a file is only what its name says:
/// another kernel's, put in its place, is as good as damaged.
std::array<uint8_t, kHashBytes> sealOf(llvm::StringRef key,
                                       llvm::StringRef object) {
  llvm::SHA256 hash;
  hash.update(key);
  hash.update(toText(hashOf(object)));
  return hash.final();
}
} // namespace

llvm::Expected<ObjectStore> ObjectStore::open(llvm::StringRef folder) {
  auto refuse = [&](const llvm::Twine &reason) {
    return llvm::createStringError("the store '" + folder + "' " + reason);
  };
  if (std::error_code code = fs::create_directories(
          folder, /*IgnoreExisting=*/true, fs::perms::owner_all))
    return refuse("cannot be made: " + code.message());
  if (!fs::is_directory(folder))
    return refuse("is not a folder");
  if (std::string why = placement::whyUnsafeForCode(folder.str()); !why.empty())
    return refuse("holds code, but " + why);
  return ObjectStore(folder.str());
}

std::string ObjectStore::key(llvm::StringRef text, llvm::StringRef rest) {
  auto hash = hashOf((toText(hashOf(rest)) + text).str());
  return llvm::toHex(llvm::ArrayRef(hash).take_front(20), /*LowerCase=*/true);
}

std::string ObjectStore::fileOf(llvm::StringRef key) const {
  llvm::SmallString<128> path(folder);
  // The name that LLVM's pruning looks for.
  llvm::sys::path::append(path, "llvmcache-" + key);
  return path.str().str();
}

void ObjectStore::warn(const llvm::Twine &file, const llvm::Twine &reason) {
  warnings += (file + ": " + reason + "\n").str();
}

std::unique_ptr<llvm::MemoryBuffer> ObjectStore::load(llvm::StringRef key) {
  std::string path = fileOf(key);
  placement::CodeFile file = placement::readCode(path, kMostBytes);
  if (!file.error.empty()) {
    if (!file.isMissing)
      warn(path, "not used: " + file.error + "; compiled again");
    return nullptr;
  }
  llvm::StringRef object = file.bytes;
  llvm::StringRef seal = object.take_back(kHashBytes);
  object = object.drop_back(seal.size());
  if (seal != toText(sealOf(key, object))) {
    warn(path, "damaged, or of another name; compiled again");
    return nullptr;
  }
  return llvm::MemoryBuffer::getMemBufferCopy(object, path);
}

void ObjectStore::save(llvm::StringRef key, llvm::StringRef object) {
  std::string path = fileOf(key);
  std::string error =
      placement::writeCode(path, (object + toText(sealOf(key, object))).str());
  if (!error.empty())
    warn(path, "cannot be written: " + error);
}

void ObjectStore::prune() const {
  llvm::CachePruningPolicy policy;
  policy.Interval = std::chrono::hours(24);
  policy.Expiration = std::chrono::hours(24 * 30);
  policy.MaxSizeBytes = uint64_t(1) << 30;
  llvm::pruneCache(folder, policy);
}
