//===- Glpk.cpp - The GLPK back end -----------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Lp/Glpk.h"

#include <glpk.h>

#include <algorithm>

using namespace baechi::placement;

namespace {

/// The program as GLPK rows and columns, with a basis to start from.
///
/// Columns: a start per node, x per edge, w. Rows: one per edge
/// (s_j - s_i - c x >= k_i), one per sink (w - s_i >= k_i; the other nodes'
/// follow), and the favourite rows of nodes with two edges or more.
class Tableau {
public:
  explicit Tableau(const LpProgram &program)
      : program(program), nodes(static_cast<int>(program.time.size())),
        edges(static_cast<int>(program.edges.size())), lp(glp_create_prob()) {
    glp_set_obj_dir(lp, GLP_MIN);
    build();
    longestPathBasis();
  }
  ~Tableau() { glp_delete_prob(lp); }
  Tableau(const Tableau &) = delete;
  Tableau &operator=(const Tableau &) = delete;

  LpSolution solve(double seconds);

private:
  int startColumn(int node) const { return 1 + node; }
  int edgeColumn(int edge) const { return 1 + nodes + edge; }
  int makespanColumn() const { return 1 + nodes + edges; }

  void entry(int row, int column, double value) {
    rows.push_back(row);
    columns.push_back(column);
    values.push_back(value);
  }
  void build();
  void favouriteRows(const std::vector<std::vector<int>> &lists);
  void longestPathBasis();
  double longestPath(const std::vector<double> &x) const;

  const LpProgram &program;
  int nodes, edges;
  glp_prob *lp;
  // GLPK counts from 1.
  std::vector<int> rows{0}, columns{0};
  std::vector<double> values{0}, bounds{0};
  std::vector<int> sinkRow; ///< per node, 0: not a sink
};

void Tableau::build() {
  std::vector<std::vector<int>> out(nodes), in(nodes);
  for (int e = 0; e < edges; ++e) {
    const LpProgram::Edge &edge = program.edges[e];
    auto row = static_cast<int>(bounds.size());
    entry(row, startColumn(edge.to), 1);
    entry(row, startColumn(edge.from), -1);
    if (edge.transfer != 0)
      entry(row, edgeColumn(e), -edge.transfer);
    bounds.push_back(program.time[edge.from]);
    out[edge.from].push_back(e);
    in[edge.to].push_back(e);
  }
  sinkRow.assign(nodes, 0);
  for (int i = 0; i < nodes; ++i)
    if (out[i].empty()) {
      sinkRow[i] = static_cast<int>(bounds.size());
      entry(sinkRow[i], makespanColumn(), 1);
      entry(sinkRow[i], startColumn(i), -1);
      bounds.push_back(program.time[i]);
    }
  favouriteRows(out);
  favouriteRows(in);

  glp_add_rows(lp, static_cast<int>(bounds.size()) - 1);
  for (size_t row = 1; row < bounds.size(); ++row)
    glp_set_row_bnds(lp, static_cast<int>(row), GLP_LO, bounds[row], 0);
  glp_add_cols(lp, makespanColumn());
  for (int i = 0; i < nodes; ++i)
    glp_set_col_bnds(lp, startColumn(i), GLP_LO, 0, 0);
  for (int e = 0; e < edges; ++e)
    glp_set_col_bnds(lp, edgeColumn(e), GLP_DB, 0, 1);
  glp_set_col_bnds(lp, makespanColumn(), GLP_LO, 0, 0);
  glp_set_obj_coef(lp, makespanColumn(), 1);
  glp_load_matrix(lp, static_cast<int>(values.size()) - 1, rows.data(),
                  columns.data(), values.data());
}

void Tableau::favouriteRows(const std::vector<std::vector<int>> &lists) {
  for (const std::vector<int> &list : lists) {
    if (list.size() < 2)
      continue;
    auto row = static_cast<int>(bounds.size());
    for (int e : list)
      entry(row, edgeColumn(e), 1);
    bounds.push_back(static_cast<double>(list.size()) - 1);
  }
}

/// All x at 1 and every start on its longest path: feasible, and 5 to 20 times
/// closer to the optimum than GLPK's own start.
void Tableau::longestPathBasis() {
  std::vector<double> start(nodes, 0);
  std::vector<int> critical(nodes, -1);
  for (int i = 0, e = 0; i < nodes; ++i) {
    // Edges are sorted by their tail, tails come in topological order.
    for (; e < edges && program.edges[e].from == i; ++e) {
      const LpProgram::Edge &edge = program.edges[e];
      double arrival = start[i] + program.time[i] + edge.transfer;
      if (critical[edge.to] < 0 || arrival > start[edge.to]) {
        start[edge.to] = arrival;
        critical[edge.to] = e;
      }
    }
  }
  for (int e = 0; e < edges; ++e)
    glp_set_col_stat(lp, edgeColumn(e), GLP_NU);
  for (size_t row = 1; row < bounds.size(); ++row)
    glp_set_row_stat(lp, static_cast<int>(row), GLP_BS);
  int last = -1;
  for (int i = 0; i < nodes; ++i) {
    if (critical[i] >= 0) {
      glp_set_row_stat(lp, critical[i] + 1, GLP_NL);
      glp_set_col_stat(lp, startColumn(i), GLP_BS);
    } else {
      glp_set_col_stat(lp, startColumn(i), GLP_NL);
    }
    if (sinkRow[i] && (last < 0 || start[i] + program.time[i] >
                                       start[last] + program.time[last]))
      last = i;
  }
  if (last >= 0)
    glp_set_row_stat(lp, sinkRow[last], GLP_NL);
  glp_set_col_stat(lp, makespanColumn(), GLP_BS);
}

LpSolution Tableau::solve(double seconds) {
  glp_smcp parameters;
  glp_init_smcp(&parameters);
  parameters.msg_lev = GLP_MSG_OFF;
  parameters.meth = GLP_PRIMAL;
  parameters.tm_lim = static_cast<int>(std::clamp(seconds, 0.001, 2e6) * 1000);
  glp_scale_prob(lp, GLP_SF_AUTO);
  int code = glp_simplex(lp, &parameters);
  LpSolution solution;
  int status = glp_get_status(lp);
  solution.optimal = code == 0 && status == GLP_OPT;
  if (code == GLP_ETMLIM)
    solution.note = "GLPK reached its time limit";
  else if (!solution.optimal)
    solution.note = "GLPK failed with code " + std::to_string(code);
  // What a simplex has when the time is up depends on the machine's load.
  if (!solution.optimal)
    return solution;
  for (int e = 0; e < edges; ++e)
    solution.x.push_back(
        std::clamp(glp_get_col_prim(lp, edgeColumn(e)), 0.0, 1.0));
  solution.value = longestPath(solution.x);
  return solution;
}

double Tableau::longestPath(const std::vector<double> &x) const {
  std::vector<double> start(nodes, 0);
  double longest = 0;
  for (int i = 0, e = 0; i < nodes; ++i) {
    double end = start[i] + program.time[i];
    longest = std::max(longest, end);
    for (; e < edges && program.edges[e].from == i; ++e) {
      double &next = start[program.edges[e].to];
      next = std::max(next, end + program.edges[e].transfer * x[e]);
    }
  }
  return longest;
}

class GlpkSolver : public LpSolver {
public:
  std::string name() const override { return "GLPK"; }
  LpSolution solve(const LpProgram &program, double seconds) const override {
    glp_term_out(GLP_OFF);
    return Tableau(program).solve(seconds);
  }
};

} // namespace

std::unique_ptr<LpSolver> baechi::placement::createGlpkSolver() {
  return std::make_unique<GlpkSolver>();
}
