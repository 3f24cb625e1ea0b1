//===- ObjectStore.h - Compiled kernels in a folder -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A file for each object, named by the hash of all that it was made from, the
/// key, and ended by a hash of the key and of what is in it. (LLVM's
/// ObjectCache is asked after a module has been lowered and translated; this
/// store saves that, too.)
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_HOSTJIT_OBJECTSTORE_H
#define BAECHI_CONVERSION_HOSTJIT_OBJECTSTORE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace baechi {

class ObjectStore {
public:
  /// Opens the folder, and makes it, for this user alone, where it is missing.
  /// One that others own or may write is an error: its code would run here.
  static llvm::Expected<ObjectStore> open(llvm::StringRef folder);

  /// Of `text` and all of `rest`: the compiler's version, the target.
  static std::string key(llvm::StringRef text, llvm::StringRef rest);

  /// The object of that key; null when there is none, or none that is as it
  /// was saved.
  std::unique_ptr<llvm::MemoryBuffer> load(llvm::StringRef key);

  /// Adds an object.
  void save(llvm::StringRef key, llvm::StringRef object);

  /// Removes what has not been used for a month, and the oldest above 1 GiB.
  /// Looks only once a day.
  void prune() const;

  /// What went wrong since the last call, a line each: the store is only slower
  /// for it.
  std::string takeWarnings() { return std::exchange(warnings, {}); }

private:
  explicit ObjectStore(std::string folder) : folder(std::move(folder)) {}
  std::string fileOf(llvm::StringRef key) const;
  void warn(const llvm::Twine &file, const llvm::Twine &reason);

  std::string folder, warnings;
};

} // namespace baechi

#endif // BAECHI_CONVERSION_HOSTJIT_OBJECTSTORE_H
