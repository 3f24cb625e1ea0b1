//===- Load.h - What else a machine does ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_LOAD_H
#define BAECHI_RUNTIME_LOAD_H

#include <optional>
#include <string_view>
#include <vector>

namespace baechi::runtime {

/// Seconds that \p processors were busy, as the text of /proc/stat has it in
/// units of \p ticksPerSecond; nullopt where it lacks one of them.
std::optional<double> busySeconds(std::string_view stat,
                                  const std::vector<int> &processors,
                                  double ticksPerSecond);

/// What the processors that this process may use did for others since it was
/// made, or begun again.
class LoadWatch {
public:
  LoadWatch() { begin(); }
  void begin();

  /// So many processors' work, in the mean; nullopt where the system does not
  /// say, or too little time has passed for its clock.
  std::optional<double> others() const;

  /// True when others left fewer than \p needed processors.
  bool isDisturbed(size_t needed) const;

private:
  std::vector<int> processors;
  double startNs = 0, ownNs = 0;
  std::optional<double> busyBefore;
};

/// Whether \p others of \p processors leave less than \p needed of them, by
/// more than what always runs.
bool isCrowded(double others, size_t processors, size_t needed);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_LOAD_H
