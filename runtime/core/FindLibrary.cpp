//===- FindLibrary.cpp - Libraries wherever they were installed -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/FindLibrary.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

using namespace baechi::runtime;
namespace fs = std::filesystem;

static void add(std::vector<std::string> &folders, const fs::path &folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored) &&
      std::find(folders.begin(), folders.end(), folder.string()) ==
          folders.end())
    folders.push_back(folder.string());
}

/// The entries of a folder, sorted: the same files give the same order.
static std::vector<fs::path> entriesOf(const fs::path &folder) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, ignored))
    entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

static void addPackages(std::vector<std::string> &folders,
                        const fs::path &packages) {
  for (const fs::path &package : entriesOf(packages / "nvidia"))
    add(folders, package / "lib");
}

/// The package folders that loaded objects lie in.
static int notePackages(dl_phdr_info *info, size_t, void *into) {
  std::string_view path = info->dlpi_name ? info->dlpi_name : "";
  for (std::string_view name : {"/site-packages/", "/dist-packages/"})
    if (size_t at = path.find(name); at != std::string_view::npos)
      static_cast<std::vector<std::string> *>(into)->emplace_back(
          path.substr(0, at + name.size() - 1));
  return 0;
}

std::vector<std::string> baechi::runtime::libraryFolders() {
  std::vector<std::string> packages, folders;
  dl_iterate_phdr(notePackages, &packages);
  if (const char *environment = std::getenv("VIRTUAL_ENV"))
    for (const fs::path &version : entriesOf(fs::path(environment) / "lib"))
      packages.push_back((version / "site-packages").string());
  for (const std::string &folder : packages)
    addPackages(folders, folder);
  std::vector<std::string> toolkits;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const char *folder = std::getenv(variable); folder && *folder)
      toolkits.emplace_back(folder);
  toolkits.emplace_back("/usr/local/cuda");
  for (const fs::path toolkit : toolkits)
    for (const char *inside : {"lib64", "lib", "targets/x86_64-linux/lib"})
      add(folders, toolkit / inside);
  return folders;
}

void *baechi::runtime::findLibrary(const char *variable,
                                   const std::vector<std::string> &names,
                                   std::string &why) {
  auto open = [&](const std::string &name, int more) {
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | more);
    if (!library && more == 0) {
      const char *said = dlerror();
      why = said ? said : name;
    }
    return library;
  };
  const char *given = std::getenv(variable);
  if (given && *given)
    return open(given, 0);
  for (int more : {RTLD_NOLOAD, 0})
    for (const std::string &name : names)
      if (void *library = open(name, more))
        return library;
  std::error_code ignored;
  for (const std::string &folder : libraryFolders())
    for (const std::string &name : names)
      if (fs::path file = fs::path(folder) / name; fs::exists(file, ignored))
        if (void *library = open(file.string(), 0))
          return library;
  return nullptr;
}
