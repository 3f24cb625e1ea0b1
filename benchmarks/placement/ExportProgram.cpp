//===- ExportProgram.cpp - m-SCT's program for other solvers ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// export-program GRAPH MACHINE [--mps=FILE]: solves the linear program of
/// favourite children (LpSolver.h) with the native solver, prints what came out
/// as JSON, and writes the program for others. scripts/compare-highs runs it.
///
//===----------------------------------------------------------------------===//

#include "Lp/Favourites.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Lp/NativeSolver.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>

using namespace baechi::placement;

namespace {

/// Free MPS in microseconds, the unit that solvers' absolute tolerances are
/// made for. Columns: w, a start s a node, x an edge; rows: r an edge (s_to -
/// s_from - c x >= k), e a node without edges out (w - s >= k; the others'
/// follow), o and i a node whose favourite is one of several.
class MpsWriter {
public:
  explicit MpsWriter(const LpProgram &program) : program(program) {
    out.resize(program.time.size());
    in.resize(program.time.size());
    for (size_t e = 0; e < program.edges.size(); ++e) {
      out[program.edges[e].from].push_back(e);
      in[program.edges[e].to].push_back(e);
    }
  }

  std::string write() {
    add("NAME favourites\nROWS\n N cost\n");
    for (size_t e = 0; e < program.edges.size(); ++e)
      add(" G r{}\n", e);
    for (size_t n = 0; n < program.time.size(); ++n)
      for (char kind : {'e', 'o', 'i'})
        if (has(kind, n))
          add(" G {}{}\n", kind, n);
    writeColumns();
    writeSides();
    return std::move(text);
  }

private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(text), format,
                   std::forward<Args>(args)...);
  }
  static double microseconds(double ns) { return ns / 1000; }
  bool has(char row, size_t node) const {
    if (row == 'e')
      return out[node].empty();
    return (row == 'o' ? out : in)[node].size() > 1;
  }
  void writeColumns();
  void writeSides();

  const LpProgram &program;
  std::vector<std::vector<size_t>> out, in; ///< edges per node
  std::string text;
};

void MpsWriter::writeColumns() {
  add("COLUMNS\n w cost 1\n");
  for (size_t n = 0; n < program.time.size(); ++n)
    if (has('e', n))
      add(" w e{} 1\n", n);
  for (size_t n = 0; n < program.time.size(); ++n) {
    for (size_t e : out[n])
      add(" s{} r{} -1\n", n, e);
    for (size_t e : in[n])
      add(" s{} r{} 1\n", n, e);
    if (has('e', n))
      add(" s{} e{} -1\n", n, n);
  }
  for (size_t e = 0; e < program.edges.size(); ++e) {
    const LpProgram::Edge &edge = program.edges[e];
    if (edge.transfer != 0)
      add(" x{} r{} {}\n", e, e, -microseconds(edge.transfer));
    if (auto n = static_cast<size_t>(edge.from); has('o', n))
      add(" x{} o{} 1\n", e, n);
    if (auto n = static_cast<size_t>(edge.to); has('i', n))
      add(" x{} i{} 1\n", e, n);
  }
}

void MpsWriter::writeSides() {
  add("RHS\n");
  for (size_t e = 0; e < program.edges.size(); ++e)
    add(" rhs r{} {}\n", e, microseconds(program.time[program.edges[e].from]));
  for (size_t n = 0; n < program.time.size(); ++n) {
    if (has('e', n))
      add(" rhs e{} {}\n", n, microseconds(program.time[n]));
    if (has('o', n))
      add(" rhs o{} {}\n", n, out[n].size() - 1);
    if (has('i', n))
      add(" rhs i{} {}\n", n, in[n].size() - 1);
  }
  add("BOUNDS\n");
  for (size_t e = 0; e < program.edges.size(); ++e)
    if (const LpProgram::Edge &edge = program.edges[e];
        edge.transfer != 0 || has('o', edge.from) || has('i', edge.to))
      add(" UP bound x{} 1\n", e);
  add("ENDATA\n");
}

std::string run(const std::string &graph, const std::string &machine,
                const std::string &mps, int32_t repeats) {
  Problem problem;
  if (std::string error = readGraph(graph, problem.graph); !error.empty())
    return error;
  if (std::string error = readMachineSpec(machine, problem.machine);
      !error.empty())
    return error;
  if (auto errors = check(problem); !errors.empty())
    return errors.front();
  LpProgram program = lp::favouriteProgram(Model(problem));
  if (!mps.empty())
    if (std::string error = writeTextFile(mps, MpsWriter(program).write());
        !error.empty())
      return error;
  LpSolution solution;
  std::vector<double> seconds;
  for (int32_t k = 0; k < repeats; ++k) {
    std::clock_t begin = std::clock();
    solution = createNativeSolver()->solve(program, 0);
    seconds.push_back(static_cast<double>(std::clock() - begin) /
                      CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print("{{\"nodes\": {}, \"edges\": {}, \"value_us\": {}, "
             "\"bound_us\": {}, \"optimal\": {}, \"cpu_seconds\": {}}}\n",
             program.time.size(), program.edges.size(), solution.value / 1000,
             solution.bound / 1000, solution.optimal,
             seconds[seconds.size() / 2]);
  return "";
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Solves m-SCT's linear program, and writes it as MPS.",
               "export-program");
  std::string graph, machine, mps;
  int32_t repeats = 1;
  app.add_option("GRAPH", graph, "graph file")->required();
  app.add_option("MACHINE", machine, "machine file or host:2")->required();
  app.add_option("--mps", mps, "file to write the program to");
  app.add_option("--repeats", repeats, "times to solve; the median is printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (std::string error = run(graph, machine, mps, repeats); !error.empty()) {
    fmt::print(stderr, "export-program: {}\n", error);
    return 1;
  }
  return 0;
}
