//===- Problem.cpp - A graph and a machine ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "Baechi/Placement/Grouping/Coplaced.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Session/Place.h"

using namespace baechi;
using namespace baechi::python;

namespace {

/// From texts, as files have them; the names stand for the files in errors.
SharedProblem readProblem(const std::string &graph,
                          const std::string &graphName,
                          const std::string &machine,
                          const std::string &machineName) {
  placement::Problem problem;
  std::string error;
  {
    nb::gil_scoped_release unlocked;
    error = placement::parseGraph(graph, graphName, problem.graph);
    if (error.empty())
      error = placement::parseMachine(machine, machineName, problem.machine);
  }
  raiseUnlessEmpty(error);
  return {std::make_shared<placement::Problem>(std::move(problem)), graphName,
          machineName};
}

/// A group's number for each operator.
std::vector<int32_t> coplacedGroups(const SharedProblem &problem) {
  std::vector<int32_t> groups;
  std::string error;
  {
    nb::gil_scoped_release unlocked;
    groups = placement::coplacedGroups(*problem.problem, error);
  }
  raiseUnlessEmpty(error);
  return groups;
}

std::string readFile(const std::string &path) {
  std::string text, error;
  {
    nb::gil_scoped_release unlocked;
    error = placement::readTextFile(path, text);
  }
  raiseUnlessEmpty(error);
  return text;
}

/// The machine file of a machine file's path or a short form.
std::string machineText(const std::string &spec) {
  std::string text, error;
  {
    nb::gil_scoped_release unlocked;
    placement::Machine machine;
    error = placement::readMachineSpec(spec, machine);
    if (error.empty())
      error = placement::formatMachine(machine, text);
  }
  raiseUnlessEmpty(error);
  return text;
}

} // namespace

void python::defineProblem(nb::module_ &m) {
  m.def("read_file", &readFile, "path"_a,
        "The text of a file, decompressed when its name ends in '.xz'.");
  m.def("machine_text", &machineText, "spec"_a,
        "The text of a machine file: of `host:N[@SIZE]` or of a path.");
  nb::class_<SharedProblem>(m, "Problem", "A graph and a machine.")
      .def_static("read", &readProblem, "graph"_a, "graph_name"_a, "machine"_a,
                  "machine_name"_a,
                  "From the texts of a graph and a machine file "
                  "(docs/formats.md).")
      .def_ro("graph_name", &SharedProblem::graphName)
      .def_ro("machine_name", &SharedProblem::machineName)
      .def_prop_ro("operators",
                   [](const SharedProblem &self) {
                     std::vector<std::string> names;
                     for (const auto &op : self.problem->graph.ops)
                       names.push_back(op.name);
                     return names;
                   })
      .def_prop_ro("devices",
                   [](const SharedProblem &self) {
                     std::vector<std::string> names;
                     for (const auto &device : self.problem->machine.devices)
                       names.push_back(device.name);
                     return names;
                   })
      .def_prop_ro(
          "memory",
          [](const SharedProblem &self) {
            std::vector<int64_t> bytes;
            for (const auto &device : self.problem->machine.devices)
              bytes.push_back(device.memory);
            return toArray(std::move(bytes));
          },
          nb::rv_policy::automatic)
      .def("coplaced_groups",
           [](const SharedProblem &self) {
             return toArray(coplacedGroups(self));
           })
      .def("__getstate__",
           [](const SharedProblem &self) { return stateOf(self); })
      .def("__setstate__",
           [](SharedProblem &self,
              const std::tuple<std::string, std::string, std::string,
                               std::string> &state) {
             const auto &[graph, graphName, machine, machineName] = state;
             new (&self) SharedProblem(
                 readProblem(graph, graphName, machine, machineName));
           });
}
