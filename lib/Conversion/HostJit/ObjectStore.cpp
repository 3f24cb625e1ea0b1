//===- ObjectStore.cpp - Compiled kernels in a folder -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ObjectStore.h"
#include "Baechi/Placement/Store.h"
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

std::array<uint8_t, kHashBytes> hashOf(llvm::StringRef bytes) {
  return llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
}

llvm::StringRef toText(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::toStringRef(bytes);
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
  // A file in it stands for all: the folder is what is judged.
  ObjectStore store(folder.str());
  if (std::string why = placement::whyUntrusted(store.fileOf("")); !why.empty())
    return refuse("holds code, but " + why);
  return store;
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
  // Pruning goes by the time of the last access.
  llvm::Expected<fs::file_t> file =
      fs::openNativeFileForRead(path, fs::OF_UpdateAtime);
  if (!file) {
    llvm::consumeError(file.takeError());
    return nullptr;
  }
  auto content = llvm::MemoryBuffer::getOpenFile(*file, path, /*FileSize=*/-1);
  fs::closeFile(*file);
  if (!content) {
    warn(path, "cannot be read: " + content.getError().message() +
                   "; compiled again");
    return nullptr;
  }
  if (std::string why = placement::whyUntrusted(path); !why.empty()) {
    warn(path, "not used: " + why);
    return nullptr;
  }
  llvm::StringRef object = (*content)->getBuffer();
  llvm::StringRef hash = object.take_back(kHashBytes);
  object = object.drop_back(hash.size());
  if (hash != toText(hashOf(object))) {
    warn(path, "damaged; compiled again");
    return nullptr;
  }
  return llvm::MemoryBuffer::getMemBufferCopy(object, path);
}

void ObjectStore::save(llvm::StringRef key, llvm::StringRef object) {
  auto hash = hashOf(object);
  std::string path = fileOf(key);
  std::string error =
      placement::writeWhole(path, (object + toText(hash)).str());
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
