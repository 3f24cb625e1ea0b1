# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports a JAX training step as linalg on tensors. See docs/import.md.

`baechi.importer.jax.step.import_step` is the function, `python -m baechi.importer`
the command. This file imports nothing: the command's help and the initial
values work without JAX.
"""
