//===- ChoiceText.h - Choices of code in a profile file ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_CHOICETEXT_H
#define BAECHI_COSTS_CHOICETEXT_H

#include "Baechi/Costs/Profile.h"

namespace baechi {

/// Reads the list of choices, which files of before do not have.
llvm::Error readChoices(const llvm::json::Object &object, Profile &profile);
llvm::json::Array choicesToJson(llvm::ArrayRef<ProgramChoice> choices);

} // namespace baechi

#endif // BAECHI_COSTS_CHOICETEXT_H
