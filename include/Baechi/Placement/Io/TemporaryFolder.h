//===- TemporaryFolder.h - A folder that does not stay ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_IO_TEMPORARYFOLDER_H
#define BAECHI_PLACEMENT_IO_TEMPORARYFOLDER_H

#include <string>

namespace baechi::placement {

/// A folder of this process's own, for what other programs read and write. It
/// is gone with the object. As long as one lives, signals that would end the
/// process (SIGHUP, SIGINT, SIGTERM) wait: programs that were started may still
/// be writing, and what they write must go, too. The last folder that goes
/// raises the one that came.
class TemporaryFolder {
public:
  /// \p name begins the folder's name; it lies in TMPDIR, or else /tmp.
  explicit TemporaryFolder(const std::string &name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  /// Why there is no folder; empty when there is one.
  const std::string &error() const { return why; }
  /// The path of a file in it.
  std::string file(const std::string &name) const { return path + "/" + name; }

private:
  std::string path, why;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_IO_TEMPORARYFOLDER_H
