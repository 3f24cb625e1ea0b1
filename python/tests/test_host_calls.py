# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What has no lowering is computed by JAX within the step, and equals `jax.jit`'s."""

import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.experimental import io_callback  # noqa: E402

import needs  # noqa: E402
from baechi.compiling import tools  # noqa: E402
from baechi.importer.common.errors import ImportFailure  # noqa: E402
from baechi.importer.jax.step import import_step  # noqa: E402
from baechi.steps.library_file import StepError  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

jnp, lax = jax.numpy, jax.lax

pytestmark = [needs.tool("baechi-run"), pytest.mark.filterwarnings("ignore:JAX computes")]

X = jax.random.normal(jax.random.key(0), (4, 4))
SPD = X @ X.T + jnp.eye(4)


def spectrum(x):
    return jnp.abs(jnp.sqrt(jnp.fft.fft(x)) * jnp.array([1, 2j, 3, 4 + 1j]))


FUNCTIONS = {
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)),
    "solve": lambda x: jnp.linalg.solve(x + 3 * jnp.eye(4), x[:, 0]),
    "inv": lambda x: jnp.linalg.inv(x + 3 * jnp.eye(4)) * 2,
    "det": lambda x: jnp.linalg.det(x),
    "qr": lambda x: jnp.abs(jnp.linalg.qr(x)[1]),
    "svd": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "eigh": lambda x: jnp.linalg.eigh(x + x.T)[0],
    "triangular": lambda x: jax.scipy.linalg.solve_triangular(x + 3 * jnp.eye(4), x),
    "of nothing": lambda x: jnp.linalg.cholesky(x[:0, :3, None] * jnp.eye(3)),
    "fft": spectrum,
    "rfft": lambda x: jnp.fft.irfft(jnp.fft.rfft(jnp.tanh(x), 67) * 2),  # a prime length
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_their_gradients(name):
    def f(x):
        y = jnp.sin(x)
        return FUNCTIONS[name](y), jax.grad(lambda x: (FUNCTIONS[name](x) ** 2).sum())(y)

    ours, theirs = jit(f)(X), jax.jit(f)(X)
    for a, e in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("machine", ["host:1", "host:2"])
def test_a_training_step(machine):
    def step(w, x):
        def loss(w):
            factor = jnp.linalg.cholesky(w @ w.T + jnp.eye(4))
            hidden = jnp.tanh(x @ factor)
            jax.debug.callback(lambda v: seen.append(float(v)), hidden.sum())
            return (jnp.abs(jnp.fft.rfft(hidden, 67)) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * gradient, value

    seen = []
    ours, theirs = jnp.copy(X), X  # what is donated is no other argument
    compiled, reference = jit(step, machine=machine, donate_argnums=0), jax.jit(step)
    for _ in range(3):
        ours, a = compiled(ours, X)
        theirs, e = reference(theirs, X)
        jax.effects_barrier()
        np.testing.assert_allclose(a, e, rtol=1e-4)
        assert len(seen) == 2 and seen[0] == pytest.approx(seen[1], rel=1e-4)
        seen.clear()
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def test_prints_come_in_order_and_before_the_step_returns(capfd):
    def f(x):
        jax.debug.print("first {}", x[0])
        y = x * 4
        jax.debug.print("second {y}", y=y.sum(), ordered=True)
        io_callback(lambda v: print("third", v), None, y[1], ordered=True)
        return y

    step = jit(f, machine="host:2")
    for start in (0.0, 1.0):
        step(jnp.full(3, start))
        out = capfd.readouterr().out
        assert out == f"first {start}\nsecond {12 * start}\nthird {4 * start}\n"


def test_constants_are_printed_as_by_jax(capfd):
    def f(x):
        jax.debug.print("{}", {"n": 1, "x": x, "t": 2.5})
        return x

    jax.jit(f)(jnp.ones(2))
    jax.effects_barrier()
    theirs = capfd.readouterr().out
    jit(f)(jnp.ones(2))
    assert capfd.readouterr().out == theirs != ""


def test_callbacks_give_values_of_all_types():
    def f(x, n, key):
        kinds = [jax.ShapeDtypeStruct((3,), d) for d in ("float32", "uint32", "bool", "bfloat16")]
        a, b, c, d = jax.pure_callback(
            lambda x, n: (x * 2, n + 1, x > 0, x.astype(jnp.bfloat16)), tuple(kinds), x, n
        )
        same = jax.ShapeDtypeStruct((2,), "uint32")
        data = jax.pure_callback(lambda k: k, same, jax.random.key_data(key))
        return a + 1, b, c, d, data

    numbers = jnp.array([1, 2, 2**32 - 2], "uint32")
    arguments = (jnp.array([-1.0, 2, 3]), numbers, jax.random.key(7))
    assert_close(jit(f)(*arguments), jax.jit(f)(*arguments))


def test_loops_and_branches_with_one_inside():
    def f(x):
        def body(carry, row):
            return jnp.linalg.solve(SPD, carry + row), carry

        last, rows = lax.scan(body, jnp.ones(4), x)
        picked = lax.cond(last.sum() > 0, jnp.linalg.cholesky, lambda a: a * 2, SPD)
        return last, rows, picked, lax.map(lambda row: jnp.abs(jnp.fft.fft(row, 67)), x)

    for a, e in zip(jit(f)(X), jax.jit(f)(X), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def test_errors_of_a_callback_end_the_step_with_their_message():
    def check(v):
        if v < 0:
            raise ValueError(f"negative: {v}")

    def f(x):
        jax.debug.callback(check, x.sum())
        return x * 2

    step = jit(f)
    said = "in operator 1 'debug_callback'.*ValueError: negative: -3.0 .*test_host_calls.py:[0-9]+"
    with pytest.raises(StepError, match=said) as raised:
        step(-jnp.ones(3))
    assert isinstance(raised.value.__cause__, ValueError)  # the user's own, with its traceback
    assert_close(step(jnp.ones(3)), 2 * jnp.ones(3))


def test_errors_of_a_callback_within_a_loop_have_the_users_line():
    """JAX makes a text of the traceback there, which would be cut before it says what is wrong."""

    def check(v):
        if v > 1:
            raise ValueError(f"too large: {v}")
        return v

    def f(x):
        kind = jax.ShapeDtypeStruct((), "float32")
        return lax.scan(lambda c, r: (c + jax.pure_callback(check, kind, r), r), x[0], x)[0]

    step = jit(f)
    assert_close(step(jnp.ones(3)), jnp.float32(4))
    with pytest.raises(StepError, match=r"ValueError: too large: 2.0 \(.*test_host_calls.py:"):
        step(jnp.array([0.0, 2, 3]))


def test_a_callback_cannot_wait_for_its_own_step():
    def f(x):
        jax.debug.callback(lambda v: step(v), x)
        return x * 2

    step = jit(f)
    with pytest.raises(StepError, match="a compiled step is called within 'debug_callback_0'"):
        step(jnp.ones(3))


def test_functions_of_jaxs_own_have_the_line_of_their_call():
    with pytest.warns(UserWarning, match=r"test_host_calls.py:\d+:\d+: lu in 'lu'"):
        jit(jnp.linalg.inv)(jnp.eye(90) + 1)


def test_users_are_told_once():
    def f(x):
        with jax.named_scope("model"):
            return jnp.linalg.svd(x, compute_uv=False)

    step = jit(f)
    with pytest.warns(UserWarning, match="test_host_calls.py:.*svd in 'model/.*about 50 us"):
        step(SPD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(SPD)


def test_complex_results_and_modules_for_others_are_refused():
    with pytest.raises(ImportFailure, match="return its real and imaginary part"):
        jit(lambda x: jnp.fft.fft(x))(jnp.ones(4))
    with pytest.raises(ImportFailure, match="argument 'z' is complex: give its real"):
        jit(lambda z: jnp.abs(z))(jnp.ones(4) + 1j)
    with pytest.raises(ImportFailure, match="has no lowering"):
        import_step(jnp.linalg.eigvalsh, (SPD,))


def test_ahead_of_time_but_in_no_file(tmp_path):
    compiled = jit(jnp.linalg.det).lower(jax.ShapeDtypeStruct((4, 4), "float32")).compile()
    np.testing.assert_allclose(compiled(SPD), jnp.linalg.det(SPD), rtol=1e-5)
    with pytest.raises(ValueError, match="JAX computes a part of 'det' in every step.*lu"):
        compiled.save(tmp_path / "det.step")
    assert not list(tmp_path.iterdir())


def test_baechi_run_has_nobody_to_ask(tmp_path):
    module = tmp_path / "step.mlir"
    module.write_text(import_step(jnp.linalg.det, (SPD,), host=True).text)
    with pytest.raises(tools.CompileError, match="@lu_0 is a host call.*--emit=so"):
        tools.run("baechi-run", module, "--machine=host:1")
