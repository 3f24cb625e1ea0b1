# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's own tests of its operators: each is right or refused, none is wrong."""

import pytest

import needs

_REASON = "onnx and torch-mlir are not installed; run scripts/torch-env"
pytest.importorskip("onnx", reason=_REASON)
pytest.importorskip("torch_mlir", reason=_REASON)

import onnx_nodes  # noqa: E402

needs_tools = needs.tool("baechi-run")
# The batches are the parameters of so many tests, which processes share.
_PARTS = 12
# What torch-mlir alone computes otherwise or lacks.
_TAKEN = """
affine_grid_3d_align_corners attention_4d_causal_with_past_and_present attention_4d_gqa_softcap
attention_4d_gqa_causal_nonpad_decode attention_local_window_ext_cache_rank2_mask
rms_normalization_4d_axis2 rotary_embedding_no_position_ids rotary_embedding_with_rotary_dim
resize_upsample_sizes_nearest_not_larger center_crop_pad_crop gridsample_nearest
gridsample_zeros_padding group_normalization_epsilon group_normalization_example gru_bidirectional
gru_reverse l2normalization_axis_0 lstm_reverse lstm_with_peepholes matmul_1d_3d matmul_4d_1d
nllloss_NCd1_ii sce_mean_weight sce_mean_weight_ii_3d simple_rnn_bidirectional simple_rnn_reverse
slice_neg_steps
""".split()
_REFUSED = {
    "det_2d": "Det",
    "gridsample_bicubic": "GridSample: mode 'cubic'",
    "tfidfvectorizer_tf_only_bigrams_skip0": "TfIdfVectorizer: its counts are loops",
    "qlinearmatmul_3D_int8_float32": "QLinearMatMul: only matrices are multiplied",
    "nonzero_example": "NonZero: how",
}


@pytest.fixture(scope="module")
def cases():
    return onnx_nodes.cases()


def outcomes(cases):
    found = {}
    for batch in onnx_nodes.batches(cases):
        found |= onnx_nodes.outcomes(batch)
    return found


@needs_tools
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(_PARTS))
def test_no_node_is_wrong(cases, part):
    for batch in onnx_nodes.batches(cases)[part::_PARTS]:
        found = onnx_nodes.outcomes(batch)
        assert not {name: why for name, (outcome, why) in found.items() if outcome == "wrong"}


@needs_tools
def test_nodes_that_are_written_as_others(cases):
    names = {f"test_{name}" for name in _TAKEN}
    found = outcomes([case for case in cases if case.name in names])
    assert found == dict.fromkeys(names, ("right", ""))


@needs_tools
def test_refused_nodes_have_their_reasons(cases):
    names = {f"test_{name}": why for name, why in _REFUSED.items()}
    found = outcomes([case for case in cases if case.name in names])
    assert found.keys() == names.keys()
    for name, (outcome, why) in found.items():
        assert outcome == "refused" and why.startswith(names[name])
