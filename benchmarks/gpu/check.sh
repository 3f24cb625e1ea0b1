# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=bash
#
# The second half of run.sh: what needs the GPU, and only what prepare packed.

passed=0 failed=0 left_out=0
began=$SECONDS
budget=${BAECHI_GPU_SECONDS:-560}

# part NAME SECONDS COMMAND...: runs a command that is ended after so many seconds, or when all
# time is up. What it says goes to a file, of which the record has the end: a full pipe holds
# nobody up, and what a killed one had said is there.
part() {
  local name=$1 limit=$2 left file status lines
  shift 2
  left=$((budget - (SECONDS - began)))
  printf '\n== %s\n' "$name"
  if [ "$left" -lt 5 ]; then
    echo "left out: the time is up (BAECHI_GPU_SECONDS=$budget)"
    left_out=$((left_out + 1))
    return
  fi
  [ "$limit" -gt "$left" ] && limit=$left
  [ "$limit" -gt "${BAECHI_GPU_PART_SECONDS:-$limit}" ] && limit=$BAECHI_GPU_PART_SECONDS
  file=$logs/$(tr -c 'a-z0-9\n' _ <<<"${name,,}").txt
  local start=$SECONDS
  timeout -k 5 "$limit" "$@" >"$file" 2>&1 </dev/null
  status=$?
  lines=$(wc -l <"$file")
  [ "$lines" -gt 150 ] && echo "($((lines - 150)) lines before: $(basename "$file"))"
  tail -n 150 "$file"
  if [ "$status" = 0 ]; then
    passed=$((passed + 1))
    printf 'passed in %d s\n' $((SECONDS - start))
  else
    failed=$((failed + 1))
    case $status in
    124 | 137) echo "failed: ended after $limit s" ;;
    *) echo "failed: exit status $status" ;;
    esac
  fi
}

skipped() { printf '\n== %s: %s, skipped\n' "$1" "$2"; }

facts() {
  printf 'date       %s\ncommit     %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(cat "$out/commit")"
  printf 'processor  %s, %s of them\n' \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
  for tool in ncu nsys compute-sanitizer mpirun; do
    printf '%-10s %s\n' "$tool" "$(command -v "$tool" || echo none)"
  done
  "$python" benchmarks/gpu/libraries.py
  nvidia-smi 2>/dev/null || echo "nvidia-smi is not here"
}

# A process is killed: the other one says so and ends within a minute.
ends_with_an_error() {
  local said
  said=$(timeout 60 "$@" 2>&1)
  [ $? != 124 ] && grep "rank 1 was lost: its process has ended" <<<"$said"
}

# Links, then kernels and steps: what a plan for this GPU is made of.
measure() {
  local run=$tools/baechi-run model math
  "$run" --query-machine="$out/machine.json" --machine=cuda:2@1GiB || return 1
  for model in "${models[@]}"; do
    for math in fp32 tf32 bf16; do
      printf '\n-- %s in %s\n' "$model" "$math"
      "$run" "$(ls test/fixtures/"$model".mlir*)" --machine=cuda:1@1GiB \
        --cuda-math="$math" --profile="$out/profile.json" --steps=50 \
        --json="$out/report_${model}_$math.json" || return 1
    done
  done
  "$python" benchmarks/gpu/predictions.py "$out"/report_*.json
}

# The kernels of a few steps, by their durations on the GPU.
kernels() {
  BAECHI_CUDA_GRAPHS=$1 ncu --metrics gpu__time_duration.sum --csv --clock-control none \
    --target-processes all --launch-count 400 \
    "$python" benchmarks/gpu/steps.py "$out" --only="$2" --steps=4 --graphs="$1"
}

# Of the driver's tests those that mpirun starts.
processes() {
  local mpi=(mpirun --allow-run-as-root --oversubscribe -n 2) tests=("$out/RuntimeCudaTests" --gtest_brief=1)
  export BAECHI_MPI_LIBRARY=$PWD/$out/libBaechiMpi.so
  part "two processes" 60 "${mpi[@]}" "${tests[@]}" --gtest_filter=CudaMpiTest.ARing
  part "two processes without NCCL" 60 env BAECHI_NCCL=0 "${mpi[@]}" "${tests[@]}" \
    --gtest_filter=CudaMpiTest.ARing
  part "messages between processes" 60 "${mpi[@]}" "${tests[@]}" --gtest_filter=CudaMpiTest.Bandwidth
  export -f ends_with_an_error
  part "a killed process" 70 bash -c 'ends_with_an_error "$@"' - "${mpi[@]}" "${tests[@]}" \
    --gtest_filter=CudaMpiTest.AKilledProcess
}

check() {
  facts
  local tests=("$out/RuntimeCudaTests" --gtest_brief=1) steps=("$python" benchmarks/gpu/steps.py "$out") model tool
  local math first=("$out/${smallest[0]}"__*_1_1GiB.so)
  part "one program alone" 60 "${steps[@]}" --only="$(basename "${first[0]}" .so)" --steps=5
  part "the driver's tests" 180 "${tests[@]}"
  part "training steps" 150 "${steps[@]}"
  part "messages beside plain copies" 60 "${tests[@]}" --gtest_filter=CudaPeers.Bandwidth
  if command -v ncu >/dev/null; then
    export -f kernels
    export out python
    for graphs in 0 1; do
      part "kernels, graphs $graphs" 40 bash -c 'kernels "$@"' - "$graphs" "$(basename "${first[0]}" .so)"
    done
  else
    skipped kernels "ncu is not installed"
  fi
  if command -v compute-sanitizer >/dev/null; then
    # Whose memory the caller's is, is asked of the driver, which calls that an error where it
    # does not know it: errors of kernels are looked for, not those.
    local quiet=(--report-api-errors no)
    for tool in memcheck racecheck; do
      [ "$tool" = racecheck ] && quiet=()
      for model in "${smallest[@]}"; do
        part "$tool, $model" 40 compute-sanitizer --tool "$tool" "${quiet[@]}" --error-exitcode 9 \
          "${steps[@]}" --steps=2 --only="$(basename "$out/$model"__*_1_1GiB.so .so)"
      done
    done
  else
    skipped compute-sanitizer "it is not installed"
  fi
  if compgen -G "$out/frameworks/*.so" >/dev/null; then
    for math in fp32 tf32 bf16; do
      part "steps beside PyTorch's and JAX's, $math" 130 "$python" benchmarks/gpu/frameworks.py "$out/frameworks" \
        --math=$math --rounds=3
    done
  else
    skipped "steps beside PyTorch's and JAX's" "they are not prepared"
  fi
  if command -v mpirun >/dev/null && [ -e "$out/libBaechiMpi.so" ]; then
    processes
  else
    skipped "two processes" "there is no mpirun, or no MPI in the build"
  fi
  if [ -x "$tools/baechi-run" ] && [ -z "${BAECHI_GPU_DRY:-}" ]; then
    export -f measure
    export out python tools
    part "links, kernels and steps, measured" 300 bash -c "models=(${models[*]}); measure"
  else
    skipped "links, kernels and steps, measured" "baechi-run is not built here"
  fi
  printf '\n%d passed, %d failed, %d left out\n' "$passed" "$failed" "$left_out"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

recorded() {
  # The newer of the two.
  if [ -e "$pack" ] && { [ ! -e "$out/commit" ] || [ "$pack" -nt "$out/commit" ]; }; then
    tar -C build -xJf "$pack" && touch "$out/commit" || exit 1
  fi
  if ! [ -e "$out/commit" ]; then
    echo "run.sh: neither $out nor $pack is there: run 'benchmarks/gpu/run.sh prepare' first" >&2
    exit 1
  fi
  export BAECHI_FAKE_CUDA=$PWD/$out/libBaechiFakeCuda.so
  export BAECHI_CUDA_LIBRARY=${BAECHI_CUDA_LIBRARY:-libcuda.so.1}
  [ "$BAECHI_CUDA_LIBRARY" = fake ] && BAECHI_CUDA_LIBRARY=$BAECHI_FAKE_CUDA
  # Where NVIDIA's libraries are looked for, by programs that are not Python's, too.
  export VIRTUAL_ENV=${VIRTUAL_ENV:-$("$python" -c 'import sys; print(sys.prefix)')}
  export PYTHONUNBUFFERED=1
  if ! "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$BAECHI_CUDA_LIBRARY" 2>/dev/null; then
    echo "run.sh: $BAECHI_CUDA_LIBRARY cannot be loaded: there is no NVIDIA driver on this machine" >&2
    exit 1
  fi
  local record
  record=benchmarks/gpu/records/$(date -u +%Y-%m-%d_%H%M%S).txt
  logs=${record%.txt}
  mkdir -p "$logs"
  # The record grows while it runs: what is killed has left it behind.
  : >"$record"
  check >>"$record" 2>&1 &
  local checking=$!
  tail -n +1 -f --pid=$checking "$record"
  wait $checking
  local status=$?
  printf 'goals: %s reached, %s missed, %s not compared\n' "$(grep -c '^goal: .*: reached' "$record")" \
    "$(grep -c '^goal: .*: missed' "$record")" "$(grep -c '^goal: .*: not compared' "$record")" | tee -a "$record"
  if [ -n "${OUT:-}" ] && [ -d "$OUT" ]; then
    cp "$record" "$OUT/record.txt"
    tar -C "$(dirname "$logs")" -czf "$OUT/parts.tar.gz" "$(basename "$logs")"
  fi
  return "$status"
}
