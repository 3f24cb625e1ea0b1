# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of operations, from JAX's."""

import pytest

from baechi.importer.common.locations import clean_name


@pytest.mark.parametrize(
    "paths, name",
    [
        (["jit(step)/decoder/l0/add"], "decoder/l0/add"),
        (["jit(step)/jvp(decoder)/l0/dot_general"], "decoder/l0/dot_general"),
        (["jit(step)/transpose(jvp(decoder))/l0/add_any"], "backward/decoder/l0/add_any"),
        (["jit(step)/transpose(jvp(a/b))/c/mul"], "backward/a/b/c/mul"),
        (["jit(step)/jvp()/mul"], "mul"),
        (["jit(step)/transpose(jvp())/jit(relu)", "select_n"], "backward/select_n"),
        (["jit(step)/jvp(enc)/jit(_take)", "gather"], "enc/gather"),
        (["jit(step)/jvp(loop)/while/body/closed_call", "tanh"], "loop/while/body/tanh"),
        (["jit(step)/vmap(heads)/add"], "heads/add"),
        (["jit(step)/jvp(enc)/jit", "jit:"], "enc"),
        ([], ""),
    ],
)
def test_clean_name(paths, name):
    assert clean_name(tuple(paths)) == name
