# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled step takes and returns, without the function that it was made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from baechi.importer.jax.host_calls import HostCall
from baechi.importer.jax.signature import Signature
from baechi.jax import random_keys
from baechi.jax.calls import type_of


@dataclasses.dataclass(frozen=True)
class Border:
    """Names, types and structures of what a step takes and returns.

    given, returned: random generators of the flat arguments and results; None for what
        is no key.
    values: names of the arguments, in the order of a call; all may be given by name.
    static: names of the static arguments, which a call leaves off, and their values in words.
    donated: positions among `values`.
    host_calls: what JAX computes in every step.
    """

    name: str
    signature: Signature
    given: list[str | None]
    returned: list[str | None]
    values: list[str]
    static: dict[str, str]
    donated: tuple[int, ...]
    host_calls: Sequence[HostCall] = ()

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """A call's flat arguments. Raises TypeError, with the argument's name, for what
        the step was not compiled for."""
        given = self._by_position(args, kwargs)
        leaves: list[Any] = []
        for name, value, tree in zip(
            self.values, given, self.signature.tree.children(), strict=True
        ):
            found, actual = jax.tree.flatten(value)
            if actual != tree:
                raise TypeError(
                    f"argument '{name}' of '{self.name}' was compiled as {_shown(tree)}, "
                    f"not as {_shown(actual)}"
                )
            leaves += found
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            raise TypeError(
                f"'{self.name}' is compiled and runs on devices of its own, not within "
                "jax.jit, jax.grad or jax.vmap"
            )
        generators = [random_keys.kind(leaf) for leaf in leaves]
        leaves = [random_keys.data_of(leaf) for leaf in leaves]
        for i, leaf in enumerate(leaves):
            self._check(i, leaf, generators[i])
        self.check_mode()
        return leaves

    def check_mode(self) -> None:
        """Raises TypeError where JAX would cut what the step returns to 32 bits."""
        if is_wide():
            return
        for name, kind in zip(self.signature.results, self.signature.result_types, strict=True):
            if jax.dtypes.canonicalize_dtype(kind.dtype) != kind.dtype:
                raise TypeError(
                    f"result '{name}' of '{self.name}' is {kind.dtype}: it was compiled in JAX's "
                    "x64 mode; run it in the same: jax.config.update('jax_enable_x64', True)"
                )

    def _by_position(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        takes = f"'{self.name}' was compiled for {', '.join(self.values) or 'no arguments'}"
        for name in kwargs:
            if name in self.static:
                raise TypeError(f"{takes}; '{name}' is static, always {self.static[name]}")
        if len(args) > len(self.values):
            fixed = "".join(f"; '{n}' is static, always {v}" for n, v in self.static.items())
            raise TypeError(f"{takes}, but is called with {len(args)} by position{fixed}")
        found = dict(zip(self.values, args, strict=False))
        for name, value in kwargs.items():
            if name in found:
                raise TypeError(f"argument '{name}' of '{self.name}' is given twice")
            if name not in self.values:
                raise TypeError(f"{takes}, not for '{name}'")
            found[name] = value
        if missing := [name for name in self.values if name not in found]:
            raise TypeError(f"{takes}: '{missing[0]}' is missing")
        return [found[name] for name in self.values]

    def _check(self, index: int, leaf: Any, generator: str | None) -> None:
        argument = self.signature.arguments[index]
        name, expected = argument.name, argument.init
        try:
            shape, dtype, _ = type_of(leaf)
        except TypeError as error:
            raise TypeError(
                f"argument '{name}' of '{self.name}' is no array but {leaf!r}"
            ) from error
        if shape != tuple(expected.shape) or dtype != np.dtype(expected.dtype):
            raise TypeError(
                f"argument '{name}' of '{self.name}' was compiled for "
                f"{_typed(expected.dtype, expected.shape)}, not for {_typed(dtype, shape)}"
            )
        if generator != self.given[index]:
            raise TypeError(
                f"argument '{name}' of '{self.name}' was compiled for {_key(self.given[index])}, "
                f"not for {_key(generator)}"
            )


def is_wide() -> bool:
    """Whether JAX is in its x64 mode."""
    return bool(jax.config.jax_enable_x64)


def _typed(dtype: Any, shape: Any) -> str:
    return f"{np.dtype(dtype)}[{','.join(map(str, shape))}]"


def _key(generator: str | None) -> str:
    return "plain numbers" if generator is None else f"a random key of '{generator}'"


def _shown(tree: Any) -> str:
    text = str(tree).removeprefix("PyTreeDef(").removesuffix(")")
    return text if len(text) <= 300 else f"{text[:300]}..."
