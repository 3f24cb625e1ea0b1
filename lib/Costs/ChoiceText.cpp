//===- ChoiceText.cpp - Choices of code in a profile ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChoiceText.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace baechi;
namespace json = llvm::json;

const ProgramChoice *Profile::findChoice(StringRef program) const {
  for (const ProgramChoice &choice : choices)
    if (choice.program == program)
      return &choice;
  return nullptr;
}

void Profile::settleChoice(const ProgramChoice &choice,
                           const ProgramChoice *replaced) {
  auto *known = const_cast<ProgramChoice *>(findChoice(choice.program));
  if (!known)
    choices.push_back(choice);
  else if (replaced && *known == *replaced)
    *known = choice;
}

/// Reads one choice; false: it lacks something.
static bool readChoice(const json::Value &value, ProgramChoice &choice) {
  const json::Object *fields = value.getAsObject();
  std::optional<StringRef> program =
      fields ? fields->getString("program") : std::nullopt;
  const json::Object *kernels = fields ? fields->getObject("kernels") : nullptr;
  if (!program || program->empty() || !kernels)
    return false;
  choice.program = program->str();
  for (const auto &[hash, implementation] : *kernels) {
    std::optional<StringRef> name = implementation.getAsString();
    if (!name || name->empty())
      return false;
    choice.implementations[hash.str()] = name->str();
  }
  return true;
}

llvm::Error baechi::readChoices(const json::Object &object, Profile &profile) {
  const json::Array *choices = object.getArray("choices");
  if (!choices)
    return object.get("choices")
               ? llvm::createStringError("'choices' is no list")
               : llvm::Error::success();
  llvm::StringSet<> seen;
  for (auto [index, entry] : llvm::enumerate(*choices)) {
    ProgramChoice choice;
    if (!readChoice(entry, choice))
      return llvm::createStringError(
          "choices[" + llvm::Twine(index) +
          "] needs 'program', a string, and 'kernels', an object of strings");
    if (!seen.insert(choice.program).second)
      return llvm::createStringError("choices[" + llvm::Twine(index) +
                                     "] repeats program '" + choice.program +
                                     "'");
    profile.choices.push_back(std::move(choice));
  }
  return llvm::Error::success();
}

json::Array baechi::choicesToJson(ArrayRef<ProgramChoice> choices) {
  json::Array list;
  for (const ProgramChoice &choice : choices) {
    json::Object kernels;
    for (const auto &[hash, implementation] : choice.implementations)
      kernels[hash] = implementation;
    list.push_back(json::Object{{"program", choice.program},
                                {"kernels", std::move(kernels)}});
  }
  return list;
}
