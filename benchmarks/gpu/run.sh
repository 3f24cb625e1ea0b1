#!/usr/bin/env bash
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   benchmarks/gpu/run.sh            all checks that need a GPU
#   benchmarks/gpu/run.sh prepare    only what needs MLIR and ptxas, into build/gpu
#   benchmarks/gpu/run.sh check      only what needs the GPU
#
# prepare builds the driver's tests and compiles the tiny models for one, two and
# four logical devices of one GPU, and for a GPU beside a host device, as shared
# objects. check needs neither MLIR nor a compiler, but an NVIDIA driver, cuBLASLt
# and a Python with numpy and ml_dtypes: the folder may be prepared elsewhere, on a processor that has
# no more instructions than this one (the objects name what they need). It
# runs the driver's tests on the GPU, trains the models and compares the losses
# with JAX's, and both again under compute-sanitizer where that is installed. It
# shows the median step with CUDA graphs and without, and how fast messages between
# two devices are (on two GPUs where there are two). Where there is an mpirun, two
# processes exchange messages, too: by NCCL where there are two GPUs, else through
# host memory; and baechi-run trains a model on them, if it has been built here.
# Every model is also compiled for two and four logical devices of three quarters of
# the memory that it needs on one, which one device is refused for.
# Where this clone has built baechi-run, it also measures the GPU's links, and the
# models' kernels and steps with each math of products, into build/gpu/profile.json
# and build/gpu/report_*.json, and shows predicted beside measured steps. Last come
# steps beside PyTorch's and JAX's (frameworks.py), as far as these are installed.
# A part passes when it ran and its results are right; lines that begin with "goal:"
# say which figures were reached. The last lines count both. All that check says goes to
# benchmarks/gpu/records/DATE.txt, too, below the date, the commit and the device.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=build/gpu
models=(mlp_tiny transformer_tiny gnmt_tiny lstm_tiny convnet_tiny moe_tiny)
python=.venv/bin/python
[ -x "$python" ] || python=python3

prepare() {
  scripts/build release baechi-run RuntimeCudaTests || return 1
  mkdir -p "$out"
  # Where the build has MPI.
  cp build/release/lib/libBaechiMpi.so "$out/" 2>/dev/null
  git describe --always --dirty --abbrev=40 >"$out/commit"
  cp build/release/bin/RuntimeCudaTests "$out/"
  cp build/release/lib/libBaechiFakeCuda.so "$out/" 2>/dev/null ||
    cp build/release/unittests/Runtime/libBaechiFakeCuda.so "$out/" || return 1
  printf '{"format": "baechi-machine", "version": 1, "devices": [
  {"name": "cuda0", "kind": "cuda", "memory": 1073741824},
  {"name": "host0", "kind": "host", "memory": 1073741824}],
 "link_default": {"latency_ns": 10000, "bytes_per_us": 20000}, "link_model": "duplex"}\n' >"$out/mixed.json"
  local model file machine name
  for model in "${models[@]}"; do
    file=$(ls test/fixtures/"$model".mlir*)
    for machine in cuda:1@1GiB cuda:2@1GiB cuda:4@1GiB "$out/mixed.json"; do
      name=$(basename "$machine" .json)
      name=${model}__${name//[:@]/_}
      # The placer's own result, so that every device has something to do.
      build/release/bin/baechi-run "$file" --machine="$machine" --costs=roofline \
        --placer=mtopo --budget=0 --emit=so --output="$out/$name.so" || return 1
    done
    limited "$model" "$file" || return 1
  done
  "$python" benchmarks/gpu/frameworks.py prepare "$out/frameworks"
}

# The largest step of 5 % below what one device needs at its peak that one is refused
# for and two or four hold.
limited() {
  local model=$1 file=$2 run=build/release/bin/baechi-run bytes percent devices
  "$run" "$file" --machine=host:1 --costs=roofline --steps=1 --json="$out/one.json" >/dev/null || return 1
  bytes=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["devices"][0]["peak_bytes"])' \
    "$out/one.json") || return 1
  for devices in 2 4; do
    for percent in 90 85 80 75 70 65; do
      local size=$((bytes * percent / 100))
      "$run" "$file" --machine="cuda:1@$size" --costs=roofline --emit=so --output="$out/refused.so" \
        2>/dev/null >/dev/null && continue
      "$run" "$file" --machine="cuda:$devices@$size" --costs=roofline --emit=so \
        --output="$out/${model}__cuda_${devices}_${percent}_percent.so" 2>/dev/null && continue 2
    done
    echo "run.sh: no limit was found that $devices devices hold and one does not: $model" >&2
    return 1
  done
}

# Links, then kernels and steps: what a plan for this GPU is made of.
measure() {
  local run=build/release/bin/baechi-run model math
  "$run" --query-machine="$out/machine.json" --machine=cuda:2@1GiB || return 1
  for model in "${models[@]}"; do
    for math in fp32 tf32 bf16; do
      printf '\n-- %s in %s\n' "$model" "$math"
      "$run" "$(ls test/fixtures/"$model".mlir*)" --machine=cuda:1@1GiB \
        --cuda-math="$math" --profile="$out/profile.json" --steps=50 \
        --json="$out/report_${model}_$math.json" || return 1
    done
  done
  "$python" benchmarks/gpu/predictions.py "$out"/report_*.json || return 1
  if "$python" -c 'import jax' 2>/dev/null; then
    "$python" -m baechi.experiments table4 --execute=cuda:2 --output="$out/experiments"
  else
    printf '\n-- experiments: JAX is not installed, skipped\n'
  fi
}

passed=0 failed=0
part() {
  printf '\n== %s\n' "$1"
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# A process is killed: the other one says so and ends within a minute.
ends_with_an_error() {
  local said
  said=$(timeout 60 "$@" 2>&1)
  [ $? != 124 ] && grep "rank 1 was lost: its process has ended" <<<"$said"
}

check() {
  export BAECHI_CUDA_LIBRARY=${BAECHI_CUDA_LIBRARY:-libcuda.so.1}
  if ! [ -d "$out" ]; then
    echo "run.sh: $out is not there: run 'benchmarks/gpu/run.sh prepare' first" >&2
    exit 1
  fi
  if ! "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$BAECHI_CUDA_LIBRARY" 2>/dev/null; then
    echo "run.sh: $BAECHI_CUDA_LIBRARY cannot be loaded: there is no NVIDIA driver on this machine" >&2
    exit 1
  fi
  printf 'date    %s\ncommit  %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
    "$(git describe --always --dirty --abbrev=40 2>/dev/null || cat "$out/commit")"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv 2>/dev/null
  export LD_LIBRARY_PATH=$PWD/$out:${LD_LIBRARY_PATH:-}
  part "the driver's tests" "$out/RuntimeCudaTests" --gtest_brief=1
  part "messages beside plain copies" "$out/RuntimeCudaTests" --gtest_brief=1 \
    --gtest_filter=CudaPeers.Bandwidth
  if [ -x build/release/bin/baechi-run ]; then
    part "links, kernels and steps, measured" measure
  else
    printf '\n== links, kernels and steps: baechi-run is not built here, skipped\n'
  fi
  part "training steps" "$python" benchmarks/gpu/steps.py "$out"
  if compgen -G "$out/frameworks/*.so" >/dev/null; then
    part "steps beside PyTorch's and JAX's" "$python" benchmarks/gpu/frameworks.py "$out/frameworks"
  fi
  local processes=(mpirun --allow-run-as-root --oversubscribe -n 2)
  if command -v mpirun >/dev/null && [ -e "$out/libBaechiMpi.so" ]; then
    export BAECHI_MPI_LIBRARY=$PWD/$out/libBaechiMpi.so
    part "two processes" "${processes[@]}" "$out/RuntimeCudaTests" --gtest_brief=1 \
      --gtest_filter=CudaMpiTest.ARing
    part "two processes without NCCL" env BAECHI_NCCL=0 "${processes[@]}" \
      "$out/RuntimeCudaTests" --gtest_brief=1 --gtest_filter=CudaMpiTest.ARing
    part "messages between processes" "${processes[@]}" \
      "$out/RuntimeCudaTests" --gtest_brief=1 --gtest_filter=CudaMpiTest.Bandwidth
    part "a killed process" ends_with_an_error "${processes[@]}" \
      "$out/RuntimeCudaTests" --gtest_brief=1 --gtest_filter=CudaMpiTest.AKilledProcess
    if [ -x build/release/bin/baechi-run ]; then
      part "a model in two processes" "${processes[@]}" build/release/bin/baechi-run \
        test/fixtures/mlp_tiny.mlir --machine=cuda:2@1GiB --costs=roofline \
        --placer=mtopo --budget=0 --steps=5
    fi
  else
    printf '\n== two processes: there is no mpirun, or no MPI in the build, skipped\n'
  fi
  local tool
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck synccheck; do
      part "$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$python" benchmarks/gpu/steps.py "$out" --steps=2
    done
  else
    printf '\n== compute-sanitizer: not installed, skipped\n'
  fi
  printf '\n%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}

recorded() {
  local record
  record=benchmarks/gpu/records/$(date -u +%Y-%m-%d_%H%M%S).txt
  mkdir -p "$(dirname "$record")"
  (check) 2>&1 | tee "$record"
  local status=${PIPESTATUS[0]}
  printf 'goals: %s reached, %s missed, %s not compared\n' "$(grep -c '^goal: .*: reached' "$record")" \
    "$(grep -c '^goal: .*: missed' "$record")" "$(grep -c '^goal: .*: not compared' "$record")" | tee -a "$record"
  # One that began without a GPU says nothing.
  grep -q '^date ' "$record" || rm "$record"
  return "$status"
}

case ${1:-all} in
prepare) prepare ;;
check) recorded ;;
all) prepare && recorded ;;
*)
  echo "run.sh: unknown part '$1'; known: prepare, check" >&2
  exit 1
  ;;
esac
