//===- GemmLibrariesTest.cpp - Libraries that multiply matrices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "gtest/gtest.h"
#include <dlfcn.h>

using namespace baechi;

namespace {

TEST(GemmLibraries, SayTheirVersions) {
  for (const GemmLibrary &library : gemmLibraries()) {
    auto symbols = loadGemmLibrary(library);
    std::string version = gemmLibraryVersion(library);
    ASSERT_EQ(version.empty(), !symbols) << library.title.str();
    if (!symbols) {
      llvm::consumeError(symbols.takeError());
      continue;
    }
    // Of Debian's files: libopenblasp-r0.3.21.so, libdnnl.so.2.6.
    Dl_info file;
    ASSERT_TRUE(::dladdr(symbols->front(), &file));
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::real_path(file.dli_fname, path));
    llvm::Regex numbers("[0-9]+[.][0-9]+([.][0-9]+)?");
    llvm::SmallVector<llvm::StringRef> found;
    if (numbers.match(llvm::sys::path::filename(path), &found)) {
      EXPECT_TRUE(llvm::StringRef(version).starts_with(found[0]))
          << version << " of " << path.c_str();
    }
  }
}

} // namespace
