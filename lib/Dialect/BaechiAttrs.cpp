//===- BaechiAttrs.cpp - Attributes of the baechi dialect -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/LoopOps.h"
#include "Baechi/Dialect/Pieces.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace baechi;

//===----------------------------------------------------------------------===//
// Times per device kind: {cuda = 41000, host = 910000}
//===----------------------------------------------------------------------===//

static ParseResult parseTimePerKind(AsmParser &parser, DictionaryAttr &times) {
  NamedAttrList entries;
  Type i64 = parser.getBuilder().getI64Type();
  auto parseEntry = [&]() -> ParseResult {
    std::string kind;
    int64_t ns;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&kind) || parser.parseEqual() ||
        parser.parseInteger(ns))
      return failure();
    if (entries.get(kind))
      return parser.emitError(loc) << "device kind '" << kind << "' twice";
    entries.append(kind, IntegerAttr::get(i64, ns));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseEntry))
    return failure();
  times = entries.getDictionary(parser.getContext());
  return success();
}

static void printTimePerKind(AsmPrinter &printer, DictionaryAttr times) {
  printer << '{';
  llvm::interleaveComma(times, printer, [&](NamedAttribute entry) {
    printer.printKeywordOrString(entry.getName());
    printer << " = " << cast<IntegerAttr>(entry.getValue()).getInt();
  });
  printer << '}';
}

// A last word that may be left out: ", lends"

static ParseResult parseLends(AsmParser &parser, bool &lends) {
  lends = succeeded(parser.parseOptionalComma());
  return lends ? parser.parseKeyword("lends") : ParseResult(success());
}

static void printLends(AsmPrinter &printer, bool lends) {
  if (lends)
    printer << ", lends";
}

// Distances, one a key: (0, from 1, to 2, 1 to 3, any)

static constexpr int64_t kOpen = ShapedType::kDynamic;

static ParseResult parseDistances(AsmParser &parser, DenseI64ArrayAttr &least,
                                  DenseI64ArrayAttr &most) {
  SmallVector<int64_t> lows, highs;
  auto parseDistance = [&]() -> ParseResult {
    int64_t &low = lows.emplace_back(kOpen), &high = highs.emplace_back(kOpen);
    if (succeeded(parser.parseOptionalKeyword("any")))
      return success();
    if (succeeded(parser.parseOptionalKeyword("from")))
      return parser.parseInteger(low);
    if (succeeded(parser.parseOptionalKeyword("to")))
      return parser.parseInteger(high);
    if (parser.parseInteger(low))
      return failure();
    high = low;
    if (failed(parser.parseOptionalKeyword("to")))
      return success();
    return parser.parseInteger(high);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     parseDistance))
    return failure();
  least = parser.getBuilder().getDenseI64ArrayAttr(lows);
  most = parser.getBuilder().getDenseI64ArrayAttr(highs);
  return success();
}

static void printDistances(AsmPrinter &printer, DenseI64ArrayAttr least,
                           DenseI64ArrayAttr most) {
  printer << '(';
  llvm::interleaveComma(llvm::zip(least.asArrayRef(), most.asArrayRef()),
                        printer, [&](auto of) {
                          auto [low, high] = of;
                          if (low == kOpen && high == kOpen)
                            printer << "any";
                          else if (high == kOpen)
                            printer << "from " << low;
                          else if (low == kOpen)
                            printer << "to " << high;
                          else if (low == high)
                            printer << low;
                          else
                            printer << low << " to " << high;
                        });
  printer << ')';
}

#include "Baechi/Dialect/BaechiEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Baechi/Dialect/BaechiAttrs.cpp.inc"

void BaechiDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Baechi/Dialect/BaechiAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

LogicalResult
DeviceSpecAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       StringRef name, StringRef kind, int64_t memory) {
  if (name.empty())
    return emitError() << "a device needs a name";
  if (kind.empty())
    return emitError() << "device '" << name << "' needs a kind";
  if (memory < 0)
    return emitError() << "device '" << name << "' has a negative memory of "
                       << memory << " bytes";
  return success();
}

LogicalResult LinkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringRef from, StringRef to, int64_t latencyNs,
                               int64_t bytesPerUs, bool) {
  if (latencyNs < 0)
    return emitError() << "link '" << from << "' -> '" << to
                       << "' has a negative latency of " << latencyNs << " ns";
  if (bytesPerUs <= 0)
    return emitError() << "link '" << from << "' -> '" << to << "' moves "
                       << bytesPerUs << " bytes per us; it must be positive";
  return success();
}

LogicalResult MachineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<DeviceSpecAttr> devices,
                                  ArrayRef<LinkAttr> links,
                                  LinkAttr linkDefault, LinkModel linkModel,
                                  StringAttr, RuntimeCostsAttr) {
  if (devices.empty())
    return emitError() << "a machine needs at least one device";
  llvm::StringSet<> names;
  for (DeviceSpecAttr device : devices)
    if (!names.insert(device.getName()).second)
      return emitError() << "two devices of one name, '" << device.getName()
                         << "'";
  llvm::DenseSet<std::pair<StringRef, StringRef>> pairs;
  for (LinkAttr link : links) {
    for (StringRef end : {link.getFrom(), link.getTo()})
      if (!names.contains(end))
        return emitError() << "link '" << link.getFrom() << "' -> '"
                           << link.getTo() << "' names an unknown device '"
                           << end << "'";
    if (link.getFrom() == link.getTo())
      return emitError() << "a link from '" << link.getFrom() << "' to itself";
    if (!pairs.insert({link.getFrom(), link.getTo()}).second)
      return emitError() << "two links '" << link.getFrom() << "' -> '"
                         << link.getTo() << "'";
  }
  return success();
}

LogicalResult
RuntimeCostsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         int64_t stepNs, int64_t operatorNs, int64_t wakeNs,
                         int64_t sharedPercent, int64_t aloneNs,
                         int64_t cores) {
  for (auto [name, ns] : {std::pair("step_ns", stepNs),
                          {"operator_ns", operatorNs},
                          {"wake_ns", wakeNs},
                          {"alone_ns", std::max<int64_t>(aloneNs, 0)}})
    if (ns < 0 || ns > 1'000'000'000)
      return emitError() << name << " is not between 0 and a second: " << ns;
  if (sharedPercent < 1 || sharedPercent > 10000)
    return emitError() << "shared_percent is not between 1 and 10000: "
                       << sharedPercent;
  if (cores < 0 || cores > 65536)
    return emitError() << "cores is not between 0 and 65536: " << cores;
  return success();
}

LogicalResult SplitAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t dim, ArrayRef<int64_t> sizes) {
  if (dim < 0)
    return emitError() << "a split's dim must not be negative, it is " << dim;
  if (sizes.empty())
    return emitError() << "a split needs sizes";
  for (int64_t size : sizes)
    if (size < 1 || size > (int64_t(1) << 48))
      return emitError() << "a split's sizes must be positive and below 2^48, "
                            "one is "
                         << size;
  return success();
}

Attribute MachineAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<DeviceSpecAttr> devices;
  SmallVector<LinkAttr> links;
  LinkAttr linkDefault;
  std::optional<LinkModel> linkModel;
  StringAttr stagedThrough;
  RuntimeCostsAttr runtime;

  auto parseEntry = [&]() -> ParseResult {
    StringRef key;
    SMLoc keyLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    auto parseInto = [&](auto &attrs) {
      return parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square, [&]() -> ParseResult {
            using AttrT = std::decay_t<decltype(attrs[0])>;
            auto attr =
                dyn_cast_or_null<AttrT>(AttrT::parse(parser, /*odsType=*/{}));
            if (!attr)
              return failure();
            attrs.push_back(attr);
            return success();
          });
    };
    if (key == "devices")
      return parseInto(devices);
    if (key == "links")
      return parseInto(links);
    if (key == "link_default") {
      linkDefault = dyn_cast_or_null<LinkAttr>(LinkAttr::parse(parser, {}));
      return success(linkDefault != nullptr);
    }
    if (key == "link_model") {
      StringRef model;
      SMLoc modelLoc = parser.getCurrentLocation();
      if (parser.parseKeyword(&model))
        return failure();
      linkModel = symbolizeLinkModel(model);
      if (!linkModel)
        return parser.emitError(modelLoc)
               << "unknown link_model '" << model
               << "'; known: unlimited, parallel, duplex, sequential";
      return success();
    }
    if (key == "staged_through")
      return parser.parseAttribute(stagedThrough);
    if (key == "runtime") {
      runtime = dyn_cast_or_null<RuntimeCostsAttr>(
          RuntimeCostsAttr::parse(parser, {}));
      return success(runtime != nullptr);
    }
    return parser.emitError(keyLoc)
           << "unknown field '" << key
           << "'; known: devices, links, link_default, link_model, "
              "staged_through, runtime";
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseEntry))
    return {};
  if (!linkModel) {
    parser.emitError(loc) << "a machine needs a link_model";
    return {};
  }
  return parser.getChecked<MachineAttr>(loc, parser.getContext(), devices,
                                        links, linkDefault, *linkModel,
                                        stagedThrough, runtime);
}

void MachineAttr::print(AsmPrinter &printer) const {
  auto printAll = [&](StringRef key, auto attrs) {
    printer << key << " = [";
    llvm::interleaveComma(attrs, printer,
                          [&](auto attr) { attr.print(printer); });
    printer << "], ";
  };
  printer << '<';
  printAll("devices", getDevices());
  if (!getLinks().empty())
    printAll("links", getLinks());
  if (getLinkDefault()) {
    printer << "link_default = ";
    getLinkDefault().print(printer);
    printer << ", ";
  }
  printer << "link_model = " << stringifyLinkModel(getLinkModel());
  if (StringAttr kind = getStagedThrough())
    printer << ", staged_through = " << kind;
  if (RuntimeCostsAttr costs = getRuntime()) {
    printer << ", runtime = ";
    costs.print(printer);
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Costs, certificates, arenas
//===----------------------------------------------------------------------===//

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               DictionaryAttr timeNs, int64_t scratch,
                               ArrayAttr estimated) {
  for (NamedAttribute entry : timeNs) {
    auto ns = dyn_cast<IntegerAttr>(entry.getValue());
    if (!ns)
      return emitError() << "the time of kind '" << entry.getName().getValue()
                         << "' must be an integer of ns";
    if (ns.getInt() < 0)
      return emitError() << "the time of kind '" << entry.getName().getValue()
                         << "' is negative: " << ns.getInt() << " ns";
  }
  if (scratch < 0)
    return emitError() << "negative scratch of " << scratch << " bytes";
  if (estimated)
    for (Attribute kind : estimated) {
      auto name = dyn_cast<StringAttr>(kind);
      if (!name || !timeNs.contains(name))
        return emitError() << "estimated names " << kind
                           << ", which is no kind that has a time";
    }
  return success();
}

ArrayRef<StringRef> CudaProductAttr::knownMath() {
  static const StringRef known[] = {"fp32", "tf32", "bf16", "fp16"};
  return known;
}

std::string CudaProductAttr::getImplementation() const {
  return getMath() == "fp32" ? "cublaslt" : ("cublaslt-" + getMath()).str();
}

LogicalResult
CudaProductAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        StringRef math, int64_t workspace,
                        DenseI64ArrayAttr algorithm) {
  if (!llvm::is_contained(knownMath(), math))
    return emitError() << "unknown math '" << math
                       << "'; known: " << llvm::join(knownMath(), ", ");
  if (workspace < 0)
    return emitError() << "negative workspace of " << workspace << " bytes";
  if (algorithm && algorithm.size() != 8)
    return emitError() << "an algorithm has 8 words, not " << algorithm.size();
  return success();
}

std::string CudaConvolutionAttr::getLibraryImplementation() const {
  return getMath() == "fp32" ? "cudnn" : ("cudnn-" + getMath()).str();
}

LogicalResult
CudaConvolutionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                            StringRef math, int64_t workspace, bool,
                            DenseI64ArrayAttr engine) {
  if (failed(CudaProductAttr::verify(emitError, math, workspace, {})))
    return failure();
  if (engine && engine.size() != 24)
    return emitError() << "an engine has 24 words, not " << engine.size();
  return success();
}

LogicalResult PlacementCertificateAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, StringRef, StringRef,
    int64_t makespan, int64_t lowerBound, StringRef, int64_t singleDevice,
    int64_t, int64_t, DenseI64ArrayAttr peaks) {
  if (makespan < 0 || lowerBound < 0 || singleDevice < 0)
    return emitError() << "times of a certificate must not be negative";
  if (peaks &&
      llvm::any_of(peaks.asArrayRef(), [](int64_t p) { return p < 0; }))
    return emitError() << "the peaks of a certificate must not be negative";
  if (lowerBound > makespan)
    return emitError() << "the lower bound of " << lowerBound
                       << " ns exceeds the makespan of " << makespan << " ns";
  return success();
}

LogicalResult ArenaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t bytes, int64_t resident, int64_t live,
                                int64_t limit, int64_t promised) {
  if (promised < 0)
    return emitError() << "a promise of " << promised << " bytes";
  if (resident < 0 || live < resident || bytes < live)
    return emitError() << "an arena holds resident <= live <= bytes, not "
                       << resident << ", " << live << ", " << bytes;
  if (bytes > limit)
    return emitError() << "an arena of " << bytes
                       << " bytes exceeds the device's " << limit;
  return success();
}

LogicalResult TransferAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t result, StringRef from, StringRef to,
                                   int64_t start, int64_t end) {
  if (result < 0)
    return emitError() << "a transfer's result must not be negative";
  if (from == to)
    return emitError() << "a transfer from '" << from << "' to itself";
  if (start < 0 || end < start)
    return emitError() << "a transfer from " << start << " ns to " << end
                       << " ns";
  return success();
}
