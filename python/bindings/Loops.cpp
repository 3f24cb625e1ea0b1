//===- Loops.cpp - Serial loops over keys -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Baechi/Loops/Choice.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <stdexcept>

namespace nb = nanobind;
using namespace baechi::loops;

namespace {
/// A loop with its verdict, both as Python sees them; of a plan, with the
/// number of each axis' parts.
struct Analysed {
  Loop loop;
  Verdict verdict;
  std::vector<int32_t> parts;
  PassCost cost;
};

/// By key, the entries' values.
using Columns = std::vector<std::vector<int64_t>>;

Sample sampleOf(const Columns &columns, double each) {
  Sample sample;
  sample.each = each;
  for (size_t n = 0; !columns.empty() && n < columns[0].size(); ++n) {
    sample.entries.emplace_back();
    for (const std::vector<int64_t> &column : columns)
      sample.entries.back().push_back(column[n]);
  }
  return sample;
}

using KeyTuple = std::tuple<std::string, int64_t, int64_t>;
using ArrayTuple =
    std::tuple<std::string, std::vector<int64_t>, int64_t, bool, bool>;
/// "at", "all" or "unknown"; factors, constant, size.
using SubscriptTuple =
    std::tuple<std::string, std::vector<int64_t>, int64_t, int64_t>;
using AccessTuple =
    std::tuple<int32_t, std::string, std::vector<SubscriptTuple>, std::string>;

AccessKind kindOf(const std::string &word) {
  return word == "read"    ? AccessKind::Read
         : word == "write" ? AccessKind::Write
                           : AccessKind::Add; // "add", "set", "min", "max"
}

Analysed analysed(const std::vector<KeyTuple> &keys,
                  const std::vector<ArrayTuple> &arrays,
                  const std::vector<AccessTuple> &accesses, bool ordered,
                  bool reassociate) {
  Analysed made;
  Loop &loop = made.loop;
  for (const auto &[name, lower, upper] : keys)
    loop.keys.push_back({name, lower, upper});
  for (const auto &[name, extents, bytes, buffered, anyOrder] : arrays)
    loop.arrays.push_back({name, extents, bytes, buffered, anyOrder});
  for (const auto &[array, kind, subscripts, place] : accesses) {
    Access access{array, kindOf(kind), {}, place};
    for (const auto &[what, factors, constant, size] : subscripts)
      access.subscripts.push_back({what == "at"    ? Subscript::Kind::At
                                   : what == "all" ? Subscript::Kind::All
                                                   : Subscript::Kind::Unknown,
                                   {factors, constant},
                                   size});
    if (kind == "set")
      access.combiner = kOneNumber;
    else if (kind == "min" || kind == "max")
      access.combiner = kind == "min" ? kMinimum : kMaximum;
    loop.accesses.push_back(std::move(access));
  }
  loop.ordered = ordered;
  loop.reassociate = reassociate;
  if (std::string error = check(loop); !error.empty())
    throw std::invalid_argument(error);
  made.verdict = analyse(loop);
  return made;
}

std::string schemeName(const Analysed &of) {
  switch (of.verdict.scheme) {
  case Scheme::Independent:
    return "independent";
  case Scheme::Disjoint:
    return "disjoint";
  case Scheme::Wavefront:
    return "wavefront";
  case Scheme::Skewed:
    return "skewed";
  case Scheme::Timed:
    return "timed";
  case Scheme::Serial:
    return "serial";
  }
  return "";
}

using BlockTuple = std::tuple<int32_t, int32_t, std::vector<int32_t>>;
} // namespace

NB_MODULE(_loops, m) {
  m.doc() = "What of a serial loop may run at once; the public interface is "
            "`baechi.foreach`.";
  nb::class_<Home>(m, "Home")
      .def_ro("dimension", &Home::dimension)
      .def_ro("factor", &Home::factor)
      .def_ro("constant", &Home::constant)
      .def_ro("below", &Home::below)
      .def_ro("above", &Home::above)
      .def_ro("sheared", &Home::sheared)
      .def_ro("multiple", &Home::multiple);
  nb::class_<Analysed>(m, "Analysed")
      .def_prop_ro("scheme", &schemeName)
      .def_prop_ro("reduced",
                   [](const Analysed &of) { return of.verdict.reduced; })
      .def_prop_ro(
          "text",
          [](const Analysed &of) { return schemeText(of.loop, of.verdict); })
      .def_prop_ro(
          "explanation",
          [](const Analysed &of) { return explain(of.loop, of.verdict); })
      .def_prop_ro(
          "dependences",
          [](const Analysed &of) {
            std::vector<std::tuple<std::string, std::string, std::string>> made;
            for (const Dependence &each : of.verdict.dependences)
              made.emplace_back(text(of.loop, of.loop.accesses[each.from]),
                                text(of.loop, of.loop.accesses[each.to]),
                                text(each));
            return made;
          })
      .def(
          "access",
          [](const Analysed &of, size_t number) {
            return text(of.loop, of.loop.accesses.at(number));
          },
          nb::arg("number"))
      .def_prop_ro(
          "axes",
          [](const Analysed &of) { return axesOf(of.loop, of.verdict); })
      .def(
          "home",
          [](const Analysed &of, int32_t array,
             const std::vector<int64_t> &form) {
            return homeOf(of.loop, array, form);
          },
          nb::arg("array"), nb::arg("form"))
      .def_ro("parts", &Analysed::parts)
      .def_prop_ro("nanoseconds",
                   [](const Analysed &of) { return of.cost.nanoseconds; })
      .def_prop_ro("bytes_moved",
                   [](const Analysed &of) { return of.cost.bytes; })
      .def_prop_ro("plan",
                   [](const Analysed &of) {
                     return text(of.loop, Plan{of.verdict, of.parts, of.cost});
                   })
      .def(
          "plans",
          [](const Analysed &of, const Columns &entries, double each,
             int32_t workers) {
            std::vector<Analysed> made;
            for (Plan &plan :
                 plansOf(of.loop, of.verdict, sampleOf(entries, each), workers))
              made.push_back({of.loop, std::move(plan.verdict),
                              std::move(plan.parts), plan.cost});
            return made;
          },
          nb::arg("entries"), nb::arg("each"), nb::arg("workers"))
      .def(
          "schedule",
          [](const Analysed &of, std::vector<std::vector<int64_t>> cuts,
             int32_t workers) {
            std::vector<BlockTuple> made;
            for (Block &block :
                 makeSchedule(of.loop, of.verdict, std::move(cuts), workers)
                     .blocks)
              made.emplace_back(block.clock, block.worker,
                                std::move(block.parts));
            return made;
          },
          nb::arg("cuts"), nb::arg("workers"));
  m.def("analyse", &analysed, nb::arg("keys"), nb::arg("arrays"),
        nb::arg("accesses"), nb::arg("ordered"), nb::arg("reassociate"));
  m.def("balanced_cuts", &balancedCuts, nb::arg("lower"), nb::arg("counts"),
        nb::arg("parts"));
}
