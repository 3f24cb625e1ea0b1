#!/usr/bin/env bash
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   benchmarks/gpu/run.sh            all checks that need a GPU
#   benchmarks/gpu/run.sh prepare    only what needs MLIR and ptxas, into build/gpu.tar.xz
#   benchmarks/gpu/run.sh check      only what needs the GPU
#
# prepare builds the driver's tests and compiles the tiny models for one, two and four
# logical devices of one GPU, and for a GPU beside a host device, as shared objects; every
# model also for two and four logical devices of three quarters of the memory that it
# needs on one, which one device is refused for; the first model also in replicas, in pieces,
# with tensors that two devices of one GPU lend each other and with a pool in the host's memory
# beside one device; and the small presets for the comparison with PyTorch and JAX. All of it is one file, build/gpu.tar.xz, of less than 48 MiB:
# arguments are made again from their seeds. The programs' host code is for BAECHI_GPU_TARGET
# (LLVM's name; x86-64-v3); a processor without that says what it lacks.
#
# check needs this clone and that file, an NVIDIA driver, cuBLASLt (Python's or the
# toolkit's is found), and a Python with NumPy: neither MLIR nor a compiler nor mpirun.
# What else there is it uses: PyTorch, JAX, ncu, compute-sanitizer, mpirun, and baechi-run
# where this clone has built it. Facts come first, then one tiny program alone, the driver's
# tests, all programs, kernels one by one, compute-sanitizer, and what takes long. Each part
# has a time limit and writes to a file, so that none holds up the others; all together end
# after BAECHI_GPU_SECONDS (default 560), and what does not fit is said to be left out;
# no part gets more than BAECHI_GPU_PART_SECONDS.
# A part passes when it ran and its results are right; lines that begin with "goal:" say
# which figures were reached. The last lines count both. The record is
# benchmarks/gpu/records/DATE.txt, beside the parts' files, and in $OUT where that is set.
#
#   BAECHI_GPU_DRY=1 benchmarks/gpu/run.sh prepare
#
# compiles for host devices instead of GPUs, so that check can be tried with the fake
# driver (BAECHI_CUDA_LIBRARY=fake): it shows that the parts work, not that a GPU does.
# BAECHI_GPU_MODELS="mlp_tiny" takes fewer models, BAECHI_GPU_FRAMEWORKS=0 no frameworks.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=build/gpu
pack=build/gpu.tar.xz
read -ra models <<<"${BAECHI_GPU_MODELS:-mlp_tiny transformer_tiny gnmt_tiny lstm_tiny convnet_tiny moe_tiny}"
# The smallest ones, which compute-sanitizer and the profiler have done with in time.
smallest=("${models[@]:0:1}" "${models[@]:3:2}")
python=.venv/bin/python
[ -x "$python" ] || python=python3
tools=${BAECHI_TOOLS:-build/release/bin}

case ${1:-all} in
prepare) source benchmarks/gpu/prepare.sh && prepare ;;
check) source benchmarks/gpu/check.sh && recorded ;;
all)
  source benchmarks/gpu/prepare.sh && prepare || exit 1
  source benchmarks/gpu/check.sh && recorded
  ;;
*)
  echo "run.sh: unknown part '$1'; known: prepare, check" >&2
  exit 1
  ;;
esac
