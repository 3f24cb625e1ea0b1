//===- Evaluate.cpp - Many assignments of one problem -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "Baechi/Placement/Search/AssignmentEvaluator.h"
#include "Baechi/Placement/Study/Judge.h"

#include <nanobind/stl/map.h>

#include <map>
#include <mutex>

using namespace baechi;
using namespace baechi::python;

namespace {

std::span<const int32_t> spanOf(const Vector<int32_t> &array) {
  return {array.data(), array.size()};
}
std::span<const int32_t> spanOf(const std::optional<Vector<int32_t>> &array) {
  return array ? spanOf(*array) : std::span<const int32_t>();
}

class Evaluator {
public:
  explicit Evaluator(const SharedProblem &problem) : of(problem) {
    std::string error;
    {
      nb::gil_scoped_release unlocked;
      own = placement::AssignmentEvaluator::create(*of.problem, error);
    }
    raiseUnlessEmpty(error);
  }

  const std::vector<int32_t> &units() const { return own->units(); }
  nb::ndarray<nb::numpy, bool> allowed() const {
    size_t units = own->numUnits(),
           devices = of.problem->machine.devices.size();
    auto *values = new bool[std::max<size_t>(units * devices, 1)];
    nb::capsule owner(
        values, [](void *p) noexcept { delete[] static_cast<bool *>(p); });
    for (size_t u = 0; u < units; ++u)
      for (size_t d = 0; d < devices; ++d)
        values[u * devices + d] =
            own->mayUse(static_cast<int32_t>(u), static_cast<int32_t>(d));
    return nb::ndarray<nb::numpy, bool>(values, {units, devices}, owner);
  }

  int64_t stepNs(const Vector<int32_t> &device,
                 const std::optional<Vector<int32_t>> &order) {
    int64_t ns = 0;
    raiseUnlessEmpty(unlocked(
        [&] { return own->makespan(spanOf(device), spanOf(order), ns); }));
    return ns;
  }

  nb::tuple evaluate(const Vector<int32_t> &device,
                     const std::optional<Vector<int32_t>> &order) {
    placement::Evaluation result;
    raiseUnlessEmpty(unlocked(
        [&] { return own->evaluate(spanOf(device), spanOf(order), result); }));
    return nb::make_tuple(result.makespanNs,
                          toArray(std::move(result.peakBytes)), result.problem);
  }

  using Matrix =
      nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  nb::tuple evaluateMany(const Matrix &devices) {
    size_t rows = devices.shape(0), operators = devices.shape(1);
    std::vector<int64_t> ns, peaks;
    std::map<size_t, std::string> problems;
    Interrupt interrupt;
    std::string error = unlocked([&]() -> std::string {
      placement::Evaluation result;
      for (size_t row = 0; row < rows && !interrupt(); ++row) {
        std::string wrong = own->evaluate(
            {devices.data() + row * operators, operators}, {}, result);
        if (!wrong.empty())
          return "row " + std::to_string(row) + ": " + wrong;
        if (!result.problem.empty())
          problems.emplace(row, std::move(result.problem));
        ns.push_back(result.makespanNs);
        peaks.insert(peaks.end(), result.peakBytes.begin(),
                     result.peakBytes.end());
      }
      return "";
    });
    interrupt.raise();
    raiseUnlessEmpty(error);
    size_t width = of.problem->machine.devices.size();
    return nb::make_tuple(toArray(std::move(ns)),
                          toArray(std::move(peaks), {rows, width}), problems);
  }

  Result place(const Vector<int32_t> &device,
               const std::optional<Vector<int32_t>> &order) {
    Result answer{of, {}, {}};
    answer.options.placer = "given";
    raiseUnlessEmpty(unlocked([&] {
      placement::Placement placement;
      std::string error =
          own->schedule(spanOf(device), spanOf(order), placement);
      if (error.empty()) {
        answer.result = placement::judge(*of.problem, placement);
        error = answer.result.error;
      }
      return error;
    }));
    return answer;
  }

private:
  /// Without the interpreter's lock, one call at a time.
  template <typename Function> std::string unlocked(Function function) {
    nb::gil_scoped_release released;
    std::lock_guard lock(busy);
    return function();
  }

  SharedProblem of;
  std::unique_ptr<placement::AssignmentEvaluator> own;
  std::mutex busy;
};

} // namespace

void python::defineEvaluator(nb::module_ &m) {
  nb::class_<Evaluator>(m, "Evaluator", "Many assignments of one problem.")
      .def(nb::init<const SharedProblem &>(), "problem"_a)
      .def_prop_ro(
          "units", [](const Evaluator &self) { return toArray(self.units()); },
          nb::rv_policy::automatic)
      .def_prop_ro("allowed", &Evaluator::allowed, nb::rv_policy::automatic)
      .def("step_ns", &Evaluator::stepNs, "device"_a, "order"_a.none())
      .def("evaluate", &Evaluator::evaluate, "device"_a, "order"_a.none())
      .def("evaluate_many", &Evaluator::evaluateMany, "devices"_a)
      .def("place", &Evaluator::place, "device"_a, "order"_a.none());
}
