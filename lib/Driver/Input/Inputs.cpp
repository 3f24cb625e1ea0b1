//===- Inputs.cpp - What a run starts from and is compared with -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Inputs.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Pipelines/InitialValues.h"
#include "Baechi/Placement/Io/Files.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace baechi;

namespace {
std::string describe(const Array &array) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : array.shape)
    os << size << 'x';
  os << array.type;
  return text;
}
} // namespace

llvm::Expected<FirstValues> FirstValues::read(func::FuncOp step,
                                              const std::string &path,
                                              int64_t replicas) {
  FailureOr<SmallVector<BorderTensor>> arguments = borderArguments(step);
  if (failed(arguments))
    return diagnosed();
  FirstValues values(step, std::move(*arguments));
  values.replicas = replicas;
  std::map<std::string, Array> arrays;
  if (!path.empty()) {
    std::string error = readArrays(path, arrays);
    if (!error.empty())
      return llvm::createStringError(error);
  }
  for (const BorderTensor &argument : values.arguments) {
    unsigned index = argument.number;
    std::string name = "arg" + std::to_string(index);
    if (arrays.count(argument.name))
      name = argument.name;
    auto it = arrays.find(name);
    if (it == arrays.end())
      continue;
    auto type = cast<RankedTensorType>(argument.type);
    Array expected;
    llvm::raw_string_ostream(expected.type) << type.getElementType();
    expected.shape.assign(type.getShape().begin(), type.getShape().end());
    std::string others;
    if (replicas > 1 && expected.elements() > 0 && !expected.shape.empty() &&
        !step.getArgAttr(argument.first, BaechiDialect::kUpdatedBy)) {
      Array ofAll = expected;
      ofAll.shape.front() *= replicas;
      others = ", and that of " + std::to_string(replicas) + " replicas " +
               describe(ofAll);
      if (it->second.shape == ofAll.shape) {
        values.cut.insert(index);
        expected = std::move(ofAll);
      }
    }
    if (it->second.shape != expected.shape || it->second.type != expected.type)
      return llvm::createStringError(
          llvm::Twine(path) + ": array '" + name + "' is " +
          describe(it->second) + ", the step's argument " + llvm::Twine(index) +
          " is " + describe(expected) + others);
    values.given[index] = std::move(it->second);
    arrays.erase(it);
  }
  // The archive may hold results too, as the importer's references do.
  for (const auto &[name, array] : arrays)
    if (!StringRef(name).starts_with("out"))
      return llvm::createStringError(llvm::Twine(path) +
                                     ": the step has no argument '" + name +
                                     "'; arguments are called argN or "
                                     "by their baechi.name");
  return values;
}

llvm::Expected<Array> FirstValues::take(size_t index) {
  if (auto node = given.extract(index))
    return std::move(node.mapped());
  bool withoutValue = false;
  FailureOr<Array> value = initialValue(step, arguments[index], withoutValue);
  if (failed(value))
    return llvm::createStringError("no first value for argument " +
                                   std::to_string(index));
  numInvented += withoutValue;
  return std::move(*value);
}

llvm::Expected<Array> FirstValues::of(int64_t replica, size_t index) {
  auto it = given.find(index);
  if (it == given.end())
    return take(index);
  Array value = it->second;
  if (cut.contains(index)) {
    size_t bytes = value.data.size() / replicas;
    value.shape.front() /= replicas;
    const char *part = it->second.data.data() + replica * bytes;
    value.data.assign(part, part + bytes);
  }
  return value;
}

llvm::Expected<std::vector<double>>
baechi::readReference(const std::string &path) {
  std::string text, error = placement::readTextFile(path, text);
  if (!error.empty())
    return llvm::createStringError(error);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return llvm::createStringError(path + ": " +
                                   llvm::toString(value.takeError()));
  const llvm::json::Object *object = value->getAsObject();
  const llvm::json::Array *losses =
      object && object->getString("format") == "baechi-reference"
          ? object->getArray("losses")
          : nullptr;
  std::vector<double> result;
  if (losses)
    for (const llvm::json::Value &loss : *losses)
      if (std::optional<double> number = loss.getAsNumber())
        result.push_back(*number);
  if (!losses || result.size() != losses->size())
    return llvm::createStringError(
        path + ": not a baechi-reference file with a list of losses");
  if (result.empty())
    return llvm::createStringError(path + ": has no losses to compare with");
  return result;
}
