# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches and sequences of ONNX graphs, compared with NumPy: ONNX's reference stacks
what loops collect otherwise than ONNX says, and lacks scans in other directions."""

import numpy as np
import pytest

import needs

_REASON = "onnx and torch-mlir are not installed; run scripts/torch-env"
onnx = pytest.importorskip("onnx", reason=_REASON)
pytest.importorskip("torch_mlir", reason=_REASON)

import baechi.onnx  # noqa: E402
from baechi.importer.common.errors import ImportFailure, UnsupportedOperations  # noqa: E402
from onnx_support import compare, compile, model, random  # noqa: E402

needs_tools = needs.tool("baechi-run")

LOOP = """
net (float[3, 4] x) => (float[3, 4] y, float[5, 3, 4] all, float[7] z) {
  y, all = Loop(five, true, x)<body = turn (int64 i, bool c, float[3, 4] s) =>
      (bool d, float[3, 4] t, float[3, 4] o) {
    d = Identity(c)
    real = Cast<to = 1>(i)
    m = MatMul(s, w)
    a = Add(m, real)
    t = Tanh(a)
    o = Mul(t, inner)
  }>
  flat = ReduceSum<keepdims = 0>(x, rows)
  z = Loop(, true, flat)<body = grow (int64 n, bool e, float[k] u) => (bool g, float[l] v) {
    next = Add(n, two)
    g = Less(next, four)
    v = Concat<axis = 0>(u, last)
  }>
}
"""


@needs_tools
def test_loops_whose_turns_are_known():
    """By their number, or by a condition on it; a value may grow."""
    inner, w, last = np.float32(0.5), random(4, 4) / 2, np.float32([7])
    made = model(18, LOOP, five=5, true=True, w=w, rows=[0], two=2, four=4, last=last)
    body = made.graph.node[0].attribute[0].g
    body.initializer.append(onnx.numpy_helper.from_array(inner, "inner"))
    s = x = random(3, 4)
    collected = []
    for i in range(5):
        s = np.tanh(s @ w + np.float32(i))
        collected.append(s * inner)
    grown = np.concatenate([x.sum(0), [7, 7, 7]]).astype(np.float32)
    compare(made, [s, np.stack(collected), grown], x=x)


SCAN = """
net (float[3, 6] x, float[2, 6] y) => (float[3] last, float[2, 6] sums, float[3, 6] back) {
  last, sums, back = Scan(zeros, x, y)<num_scan_inputs = 2, scan_input_axes = [1, 1],
      scan_input_directions = [1, 0], scan_output_axes = [1, -1],
      scan_output_directions = [0, 1],
      body = turn (float[3] s, float[3] e, float[2] f) => (float[3] t, float[2] a, float[3] b) {
    h = Mul(s, half)
    t = Add(h, e)
    a = Add(f, f)
    b = Sub(t, e)
  }>
}
"""


@needs_tools
def test_scans_along_axes_in_both_directions():
    made = model(18, SCAN, zeros=np.zeros(3, np.float32), half=np.float32(0.5))
    x, y, s = random(3, 6), random(2, 6), np.zeros(3, np.float32)
    sums, back = [], []
    for k in range(6):
        e = x[:, 5 - k]
        s = s / 2 + e
        sums.append(y[:, k] * 2)
        back.append(s - e)
    compare(made, [s, np.stack(sums, 1), np.stack(back[::-1], 1)], x=x, y=y)


BRANCHES = """
net (float[2, 8, 3, 3] x, float[4] v, float[4] w, bool c, bool o) => (
  float[2, 2, 6, 6] y, float[4] z, float[8] s, float[4] u) {
  y = If(c)<then_branch = a () => (float[2, 2, 6, 6] p) {
    p = DepthToSpace<blocksize = 2, mode = "CRD">(x)
  }, else_branch = b () => (float[2, 2, 6, 6] q) {
    n = Neg(x)
    q = DepthToSpace<blocksize = 2>(n)
  }>
  z = If(c)<then_branch = d () => (float[4] p1) {
    p1 = Max(v, w)
  }, else_branch = e () => (float[4] q1) {
    q1 = If(true)<then_branch = f () => (float[4] p2) {
      k = Add(w, big)
      p2 = Min(v, k)
    }, else_branch = g () => (float[4] q2) { q2 = Identity(v) }>
  }>
  s = If(c)<then_branch = h () => (float[8] p3) {
    form = Shape(v)
    two = Add(form, form)
    p3 = Expand(one, two)
  }, else_branch = i () => (float[8] q3) { q3 = Concat<axis = 0>(v, w) }>
  u = If(c)<then_branch = j () => (float[4] p4) {
    m = Max(v, big)
    p4 = If(o)<then_branch = l () => (float[4] p5) { p5 = Max(m, w) },
        else_branch = r () => (float[4] q5) {
      size = Shape(m)
      q5 = Expand(one, size)
    }>
  }, else_branch = t () => (float[4] q4) { q4 = Add(big, big) }>
}
"""


@needs_tools
@pytest.mark.parametrize("condition, other", [(False, True), (True, False), (True, True)])
def test_nodes_in_branches_are_what_onnx_says(condition, other):
    made = model(18, BRANCHES, true=True, big=np.float32([0.5, 1, 2, 3]), one=np.float32([1]))
    v, w = np.float32([np.nan, 1, -2, 3]), np.float32([0, np.nan, 1, 2])
    given = {
        "x": random(2, 8, 3, 3),
        "v": v,
        "w": w,
        "c": np.array(condition),
        "o": np.array(other),
    }
    compare(made, **given)


SEQUENCES = """
net (float[5, 4] x) => (
  float[2, 4] a, float[5, 4] b, int64 n, float[4, 3] c, float[3, 4] d, float[1, 4] e) {
  s = SplitToSequence<axis = 0>(x, two)
  a = SequenceAt(s, one)
  b = ConcatFromSequence<axis = 0>(s)
  lines = SplitToSequence<axis = 0, keepdims = 0>(x)
  less = SequenceErase(lines, minus)
  less2 = SequenceErase(less)
  n = SequenceLength(less2)
  c = ConcatFromSequence<axis = 1, new_axis = 1>(less2)
  empty = SequenceEmpty()
  full = Loop(three, true, empty)<body = turn (int64 i, bool g, seq(float[4]) q) =>
      (bool h, seq(float[4]) r) {
    h = Identity(g)
    item = Gather(x, i)
    twice = Add(item, item)
    r = SequenceInsert(q, twice, zero)
  }>
  d = ConcatFromSequence<axis = 0, new_axis = 1>(full)
  pair = SequenceConstruct(x, x)
  last = SequenceMap(s)<body = each (float[k, 4] o) => (float[k, 4] u) { u = Neg(o) }>
  e = SequenceAt(last, minus)
}
"""


@needs_tools
def test_sequences_are_the_tensors_in_them():
    made = model(18, SEQUENCES, two=2, one=1, minus=-1, three=3, true=True, zero=0)
    x = random(5, 4)
    expected = [x[2:4], x, np.array(3), x[:3].T, 2 * x[2::-1], -x[4:]]
    compare(made, expected, x=x)


TURNS = "how often its body runs must be known before, at most 128 times"
REFUSED = {
    "many": (
        "net (float[2] x) => (float[2] y) { y = Loop(n, , x)<body = b (int64 i, bool c, "
        "float[2] s) => (bool d, float[2] t) { d = Identity(c) t = Add(s, x) }> }",
        f"Loop in 'y/Loop': {TURNS}",
    ),
    "values": (
        "net (float[2] x, float m) => (float[2] y) { y = Loop(, t, x)"
        "<body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t2) "
        "{ t2 = Add(s, x) k = ReduceSum<keepdims = 0>(t2) d = Less(k, m) }> }",
        f"Loop in 'y/Loop': {TURNS}",
    ),
    "long": (
        "net (float[200, 2] x) => (float[2] y) { y = Scan(z, x)<num_scan_inputs = 1, "
        "body = b (float[2] s, float[2] e) => (float[2] u) { u = Add(s, e) }> }",
        f"Scan in 'y/Scan': {TURNS}",
    ),
    "place": (
        "net (float[4, 2] x, int64 i) => (float[1, 2] y) "
        "{ s = SplitToSequence<axis = 0>(x) y = SequenceAt(s, i) }",
        "SequenceAt in 'y/SequenceAt': which tensors are in the sequence must be known before",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_depends_on_values_is_refused(case):
    text, message = REFUSED[case]
    made = model(18, text, n=200, t=True, z=np.zeros(2, np.float32))
    with pytest.raises(UnsupportedOperations) as caught:
        baechi.onnx.import_model(made)
    assert message in str(caught.value)


def test_refused_nodes_of_branches_have_their_reasons():
    made = model(
        18,
        "net (float[4] x, bool c) => (float[4] y) { y = If(c)<then_branch = a () => (float[4] p) "
        "{ k = NonZero(x) p = Neg(x) }, else_branch = b () => (float[4] q) { q = Abs(x) }> }",
    )
    with pytest.raises(UnsupportedOperations, match="NonZero in 'k/NonZero': how large its"):
        baechi.onnx.import_model(made)


def test_sequences_that_go_in_or_out_are_refused():
    made = model(18, "net (float[4] x) => (seq(float[4]) y) { y = SequenceConstruct(x, x) }")
    with pytest.raises(ImportFailure, match="'y' is no tensor .sequence., and only tensors go in"):
        compile(made)
