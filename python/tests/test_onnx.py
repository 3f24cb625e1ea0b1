# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models are imported and infer as ONNX's own reference does."""

import io
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import needs

_REASON = "onnx and torch-mlir are not installed; run scripts/torch-env"
onnx = pytest.importorskip("onnx", reason=_REASON)
pytest.importorskip("torch_mlir", reason=_REASON)

from onnx import helper, parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import baechi.onnx  # noqa: E402
from baechi.importer.common.errors import ImportFailure, UnsupportedOperations  # noqa: E402

needs_tools = needs.tool("baechi-run")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def model(text, **weights):
    """A model in ONNX's text, with arrays as initializers."""
    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]>\n{text}')
    for name, value in weights.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return made


def random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


PERCEPTRON = """
net (float[batch, 8] x) => (float[batch, 4] y) {
  shape = Shape(x)
  rows = Gather<axis = 0>(shape, zero)
  flat = Unsqueeze(rows, zeros)
  all = Concat<axis = 0>(flat, minus)
  same = Reshape(x, all)
  h = Gemm(same, w1, b1)
  r = Relu(h)
  o = Gemm(r, w2, b2)
  y = Softmax(o)
}
"""


def perceptron():
    return model(
        PERCEPTRON,
        w1=random(8, 16),
        b1=random(16),
        w2=random(16, 4),
        b2=random(4),
        zero=np.array(0, np.int64),
        zeros=np.array([0], np.int64),
        minus=np.array([-1], np.int64),
    )


def compile(made, **options):
    return baechi.onnx.compile(made, **{"costs": "roofline", "budget": "0", **options})


@needs_tools
@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_a_perceptron_with_folded_shapes(machine):
    made, x = perceptron(), random(3, 8)
    compiled = compile(made, machine=machine, sizes={"batch": 3})
    (expected,) = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(compiled(x=x + 1).sum(1), np.ones(3), rtol=1e-5)
    assert compiled.inputs == ["x"] and compiled.outputs == ["y"]
    assert "w1" in compiled.placement and "predicted" in compiled.report()


@needs_tools
def test_halves_with_small_constants():
    made = model(
        "net (float16[3, 8] x) => (float16[3, 4] y) "
        "{ a = MatMul(x, w) b = Add(a, c) y = Mul(b, s) }",
        w=random(8, 4).astype(np.float16),
        c=random(4).astype(np.float16),
        s=np.array(0.5, np.float16),
    )
    x = random(3, 8).astype(np.float16)
    (expected,) = ReferenceEvaluator(made).run(None, {"x": x})
    found = compile(made)(x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)


@needs_tools
def test_calls_that_are_wrong():
    compiled = compile(perceptron(), sizes={"batch": 3})
    for call, message in (
        (lambda: compiled(), "input 'x' is missing"),
        (lambda: compiled(random(3, 8), random(3, 8)), "has 1 inputs, got 2"),
        (lambda: compiled(random(3, 8), x=random(3, 8)), "given twice"),
        (lambda: compiled(z=random(3, 8)), "no input 'z'; its inputs: x"),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ValueError, match=r"shape \(2, 8\), expected \(3, 8\)"):
        compiled(random(2, 8))


def test_weights_are_arguments_and_shapes_are_folded():
    imported = baechi.onnx.import_model(perceptron(), {"batch": 3})
    assert set(imported.weights) == {"w1", "b1", "w2", "b2"}
    assert [argument.name for argument in imported.arguments][0] == "x"
    assert "dense_resource" not in imported.text and "tensor<?" not in imported.text


@needs_tools
def test_types_that_would_lose_digits_are_refused():
    compiled = compile(perceptron(), sizes={"batch": 3})
    with pytest.raises(TypeError, match=r"'x' is float64, expected float32: give x.astype"):
        compiled(random(3, 8).astype(np.float64))
    x = random(3, 8)
    np.testing.assert_array_equal(compiled(x.tolist()), compiled(x))
    np.testing.assert_array_equal(compiled(x.astype(np.float16)), compiled(np.float16(x) + x * 0))


def test_sizes_of_dimensions_that_are_not_there():
    with pytest.raises(ImportFailure, match="no input has a dimension 'bach'.*have none: 'batch'"):
        baechi.onnx.import_model(perceptron(), {"batch": 3, "bach": 3})


OPERATORS = """
net (float[4, 6] x, float[4, 6] p, int64[4, 6] n, uint32[4, 6] u) => (
  float[4, 6] a, float[4, 6] b, float[4, 6] c, float[4, 6] d, float[4, 2] e, int64[4, 2] f,
  int64[2, 6] g, int64[2, 6] h, uint32[4, 6] i, float[4, 6] j, float[6, 4] k, float[4, 6] l) {
  a = Reciprocal(p)
  b = Softsign(x)
  c = CumSum(x, one)
  d = CumSum<reverse = 1, exclusive = 1>(x, one)
  e, f = TopK(x, two)
  g, h = TopK<largest = 0, axis = 0>(n, two)
  i = BitShift<direction = "LEFT">(u, u)
  j = ReverseSequence(p, lengths)
  t = Transpose(p)
  k = ReverseSequence<batch_axis = 0, time_axis = 1>(t, lengths)
  l = MeanVarianceNormalization<axes = [1]>(p)
}
"""


@needs_tools
def test_operators_that_torch_mlir_lacks():
    lengths = np.array([1, 4, 2, 3, 1, 4])
    made = model(OPERATORS, one=np.array(1), two=np.array([2]), lengths=lengths)
    x = random(4, 6)
    x[1] = -np.inf  # equal ones, in their order
    given = {
        "x": x,
        "p": np.abs(random(4, 6)) + 1,
        "n": np.random.default_rng(0).integers(-3, 3, (4, 6)),
        "u": np.full((4, 6), 3, np.uint32),
    }
    expected = ReferenceEvaluator(made).run(None, given)
    for actual, right in zip(compile(made)(**given), expected, strict=True):
        assert actual.dtype == right.dtype
        np.testing.assert_allclose(actual, right, rtol=1e-5, atol=1e-6)


@needs_tools
@pytest.mark.parametrize(
    "mode", ["", '<blocksize = 2, mode = "DCR">', '<blocksize = 2, mode = "CRD">']
)
@pytest.mark.parametrize("channels", [4, 8, 12])
def test_depth_to_space_cuts_channels_by_its_mode(mode, channels):
    mode = mode or "<blocksize = 2>"
    depth = channels // 4
    text = f"net (float[2, {channels}, 3, 5] x) => (float[2, {depth}, 6, 10] y) "
    made = model(text + f"{{ y = DepthToSpace{mode}(x) }}")
    x = random(2, channels, 3, 5)
    (expected,) = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_array_equal(compile(made)(x), expected)


OUTSIDE = """
net (float[4, 6] x, int64[3] i, int64[3, 6] j, int64[3, 1] k, int64[4] n) => (
  float[3, 6] a, float[3, 6] b, float[3, 6] c, int64[3] d, float[4, 6] e) {
  a = Gather(x, i)
  b = GatherElements(x, j)
  c = GatherND(x, k)
  d = Gather(n, i)
  e = ScatterND(x, k, a)
}
"""


@needs_tools
def test_indices_that_are_out_of_range():
    """NaN, or the nearest element; a scatter changes no row but the first and the last."""
    x, i, n = random(4, 6), np.array([-1, 4, -5]), np.arange(4) * 10
    j, k = np.tile(i.reshape(3, 1), (1, 6)), i.reshape(3, 1)
    *found, numbers, scattered = compile(model(OUTSIDE))(x=x, i=i, j=j, k=k, n=n)
    for rows in found:
        np.testing.assert_array_equal(rows[0], x[3])
        assert np.isnan(rows[1:]).all()
    assert numbers.tolist() == [30, 30, 0]
    np.testing.assert_array_equal(scattered[1:3], x[1:3])
    assert np.isnan(scattered[3]).all()


def test_nodes_whose_sizes_depend_on_values():
    made = model(
        """
net (float[4, 6] x, bool[4] c) => (float[N, 6] y, int64[2, M] z) {
  y = Compress<axis = 0>(x, c)
  z = NonZero(x)
}
"""
    )
    with pytest.raises(UnsupportedOperations) as caught:
        baechi.onnx.import_model(made)
    message = str(caught.value)
    assert message.count("depends on values, and sizes are fixed: use Where instead") == 2
    assert "Compress in 'y/Compress'" in message and "NonZero in 'z/NonZero'" in message


@pytest.mark.parametrize(
    "size, expected",
    [
        (-2, "size -2 of 'batch' is no number of 1 or more$"),
        (0, "size 0 of 'batch' is no .*, and a tensor without elements is not supported"),
        (2.5, "size 2.5 of 'batch' is no number"),
    ],
)
def test_sizes_below_one_are_refused(size, expected):
    with pytest.raises(ImportFailure, match=expected):
        baechi.onnx.import_model(perceptron(), {"batch": size})


@needs_tools
@pytest.mark.parametrize("largest, places", [(1, [1, 4, 2, 5]), (0, [1, 4, 0, 3])])
def test_largest_elements_with_nans_are_different_elements(largest, places):
    made = model(
        "net (float[6] x) => (float[4] v, int64[4] i) "
        f"{{ v, i = TopK<largest = {largest}>(x, k) }}",
        k=np.array([4], np.int64),
    )
    x = np.array([1, np.nan, 3, 2, np.nan, 3], np.float32)
    values, found = compile(made)(x)
    assert found.tolist() == places
    np.testing.assert_array_equal(values, x[places])


def test_sizes_that_are_missing():
    with pytest.raises(ImportFailure, match=r"'batch' of 'x'; give them as sizes=\{'batch': 8\}"):
        baechi.onnx.import_model(perceptron())


def test_all_unsupported_nodes_are_reported_at_once(tmp_path):
    made = model(
        """
net (float[4, 4] x, string[4] s) => (float[4, 4] y, float[4, 4] z) {
  a = Relu(x)
  y = Det2(a)
  z = Celu2(x)
}
"""
    )
    del made.graph.input[1]
    for i, node in enumerate(made.graph.node):
        node.name = f"/block/node{i}"
    made.graph.node[1].op_type, made.graph.node[2].op_type = "Inverse", "Unknown"
    for node in list(made.graph.node)[1:]:
        node.domain = "com.example"
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(UnsupportedOperations) as caught:
        baechi.onnx.import_model(made)
    message = str(caught.value)
    assert "Inverse in 'block/node1'" in message and "Unknown in 'block/node2'" in message
    assert "docs/onnx.md" in message and "node0" not in message


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(ImportFailure, match="no such file"):
        baechi.onnx.import_model(tmp_path / "missing.onnx")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(ImportFailure, match="not a valid ONNX model"):
        baechi.onnx.import_model(broken)


def test_the_command(tmp_path):
    file, output = tmp_path / "net.onnx", tmp_path / "net.mlir"
    onnx.save(perceptron(), file)

    def run(*arguments):
        command = [sys.executable, "-m", "baechi.importer", file, "-o", output, *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "python")

    done = run("--set", "batch=2")
    assert done.returncode == 0, done.stderr
    assert "5 arguments (4 weights), 1 results" in done.stderr
    assert "module @net" in output.read_text()
    for arguments, message in (
        ((), "have no size: 'batch' of 'x'"),
        (("--set", "batch=two"), "expected a size"),
        (("--preset", "tiny"), "not for ONNX models"),
    ):
        done = run(*arguments)
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr


def exported(module, *inputs):
    import torch

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), inputs, file, dynamo=False)
    return onnx.load_from_string(file.getvalue())


def torch_models():
    import torch

    import torch_support as support
    from baechi.models import torch as models

    transformer, resnet = models.load("transformer"), models.load("resnet")
    return {
        "convolutions": (support.Convolutions(), support.images()[0]),
        "recurrent": (support.Recurrent(), torch.randn(4, 5, 6)),
        "words": (support.Words(), support.tokens()[0]),
        "transformer": (
            transformer.Transformer(transformer.PRESETS["tiny"]),
            torch.randint(0, 20, (2, 8)),
        ),
        "resnet": (resnet.ResNet(resnet.PRESETS["tiny"]), torch.randn(2, 3, 15, 15)),
    }


@needs_tools
@pytest.mark.parametrize("name", ["convolutions", "recurrent", "words", "transformer", "resnet"])
def test_what_pytorch_exports(name):
    torch = pytest.importorskip("torch", reason=_REASON, exc_type=ImportError)
    torch.manual_seed(0)
    module, x = torch_models()[name]
    compiled = compile(exported(module, x), machine="host:2")
    with torch.no_grad():
        expected = module(x).numpy()
    error = np.abs(compiled(x.numpy()) - expected).max()
    assert error <= 1e-4 * np.abs(expected).max()
