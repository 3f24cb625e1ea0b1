//===- Options.cpp - What is wrong with options ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Options.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Placement/Io/Store.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cmath>
#include <unistd.h>

using namespace baechi;
namespace fs = llvm::sys::fs;

static llvm::Error mistake(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

static llvm::Error checkAll(llvm::ArrayRef<std::string> paths,
                            llvm::Error (*check)(const std::string &)) {
  for (const std::string &path : paths)
    if (llvm::Error error = check(path))
      return error;
  return llvm::Error::success();
}

llvm::Error baechi::checkReadable(const std::string &path) {
  if (path.empty())
    return llvm::Error::success();
  // Not opened: that would wait for whoever writes to a pipe.
  std::error_code error;
  if (::access(path.c_str(), R_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  if (!error && fs::is_directory(path))
    error = std::make_error_code(std::errc::is_a_directory);
  if (error)
    return mistake(path + ": cannot be read: " + error.message());
  return llvm::Error::success();
}

llvm::Error baechi::checkWritable(const std::string &path) {
  if (path.empty())
    return llvm::Error::success();
  std::error_code error;
  if (fs::is_directory(path)) {
    error = std::make_error_code(std::errc::is_a_directory);
  } else if (fs::exists(path)) {
    error = fs::access(path, fs::AccessMode::Write);
  } else {
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (folder.empty())
      folder = ".";
    error = fs::is_directory(folder)
                ? fs::access(folder, fs::AccessMode::Write)
                : std::make_error_code(std::errc::no_such_file_or_directory);
  }
  if (error)
    return mistake(path + ": cannot be written: " + error.message());
  return llvm::Error::success();
}

llvm::Error baechi::checkOptions(const DriverOptions &options) {
  if (llvm::Error error =
          checkOptions(static_cast<const CompileOptions &>(options)))
    return error;
  if (!std::isfinite(options.watchdog) || options.watchdog < 0)
    return mistake("--watchdog needs a finite number of seconds, 0 or more");
  if (llvm::Error error =
          checkAll({options.placement, options.expert, options.stepTimes},
                   checkReadable))
    return error;
  // A pipe's reader would wait for its writer: for this process.
  if (fs::exists(options.profile) && !fs::is_regular_file(options.profile))
    return mistake(options.profile +
                   ": cannot be used as a profile: it is no regular file");
  // Where the next run would refuse it, minutes of measuring are lost.
  if (std::string why = placement::whyUntrusted(options.profile);
      !options.profile.empty() && !why.empty())
    return mistake(options.profile + ": cannot be used: " + why);
  // One that is there may be somebody else's, to be read alone.
  return fs::exists(options.profile) ? llvm::Error::success()
                                     : checkWritable(options.profile);
}

llvm::Error baechi::checkOptions(const StepOptions &options) {
  if (options.calibrates && !options.check)
    return mistake(
        "--calibrate compares with one device; leave --check-single on");
  if (options.calibrates && options.overlap)
    return mistake("--calibrate needs steps one by one: leave --overlap-steps "
                   "off");
  if (options.steps < 1)
    return mistake("--steps needs a positive number, not " +
                   llvm::Twine(options.steps));
  if (options.injectFault && *options.injectFault < 1)
    return mistake("--inject-fault needs a positive number, not " +
                   llvm::Twine(*options.injectFault));
  return checkAll({options.inputs, options.reference}, checkReadable);
}

llvm::Error baechi::checkOptions(const OutputOptions &options) {
  for (llvm::StringRef suffix : {".xz", ".gz", ".bz2", ".zst"})
    if (llvm::StringRef(options.outputs).ends_with(suffix))
      return mistake("--outputs=" + options.outputs +
                     " would be an .npz archive that is not compressed: "
                     "leave '" +
                     suffix + "' off");
  std::pair<llvm::StringRef, llvm::StringRef> files[] = {
      {"--outputs", options.outputs},
      {"--trace", options.trace},
      {"--json", options.json},
      {"--html", options.html},
      {"--calibrate", options.calibrate}};
  llvm::StringMap<llvm::StringRef> asked;
  for (auto [option, file] : files)
    if (auto [first, isNew] = asked.try_emplace(file, option);
        !isNew && !file.empty() && file != "-")
      return mistake(first->second + " and " + option + " name one file, '" +
                     file + "': give each its own");
  if (llvm::Error error = checkAll(
          {options.outputs, options.trace, options.html, options.calibrate},
          checkWritable))
    return error;
  return options.json == "-" ? llvm::Error::success()
                             : checkWritable(options.json);
}
