# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=bash
#
# The first half of run.sh: what needs MLIR and ptxas, into one file.

# What the pack may have: a machine's copy of the clone has its own limit.
most_bytes=$((48 << 20))

kind=cuda device=cuda
[ -n "${BAECHI_GPU_DRY:-}" ] && kind=host device=cpu

# Host code for what every server with a GPU has, not for what this machine has more.
target=${BAECHI_GPU_TARGET:-$([ "$(uname -m)" = x86_64 ] && echo x86-64-v3)}
emits=(--costs=roofline --emit=so ${target:+--host-target="$target"})

prepare() {
  if [ -z "${BAECHI_TOOLS:-}" ]; then
    scripts/build release baechi-run RuntimeCudaTests || return 1
  fi
  rm -rf "$out" && mkdir -p "$out"
  # Where the build has MPI.
  cp "$tools/../lib/libBaechiMpi.so" "$out/" 2>/dev/null
  git describe --always --dirty --abbrev=40 >"$out/commit"
  cp "$tools/RuntimeCudaTests" "$tools/../lib/libBaechiFakeCuda.so" "$out/" || return 1
  printf '{"format": "baechi-machine", "version": 1, "devices": [
  {"name": "cuda0", "kind": "%s", "memory": 1073741824},
  {"name": "host0", "kind": "host", "memory": 1073741824}],
 "link_default": {"latency_ns": 10000, "bytes_per_us": 20000}, "link_model": "duplex"}\n' "$kind" >"$out/mixed.json"
  # For a machine with one GPU; where there are two the program is refused.
  printf '{"format": "baechi-machine", "version": 1, "devices": [
  {"name": "%s0", "kind": "%s", "memory": 1073741824},
  {"name": "%s1", "kind": "%s", "memory": 1073741824}],
 "link_default": {"latency_ns": 2000, "bytes_per_us": 20000, "lends": true}, "link_model": "duplex"}\n' \
    "$kind" "$kind" "$kind" "$kind" >"$out/lends.json"
  local model file
  for model in "${models[@]}"; do
    file=$(ls test/fixtures/"$model".mlir*)
    programs "$model" "$file" && limited "$model" "$file" || return 1
  done
  model=${models[0]}
  others "$model" "$(ls test/fixtures/"$model".mlir*)" || return 1
  if [ "${BAECHI_GPU_FRAMEWORKS:-1}" = 0 ]; then
    echo "run.sh: no comparison with frameworks is prepared, as BAECHI_GPU_FRAMEWORKS=0 asks" >&2
  elif "$python" -c 'import jax' 2>/dev/null; then
    "$python" benchmarks/gpu/frameworks.py prepare "$out/frameworks" --bin="$tools" --device="$device" \
      --target="$target" || return 1
  else
    echo "run.sh: JAX is not installed: no comparison with frameworks is prepared" >&2
  fi
  packed
}

# The placer's own result, so that every device has something to do.
programs() {
  local machine name
  for machine in "$kind:1@1GiB" "$kind:2@1GiB" "$kind:4@1GiB" "$out/mixed.json"; do
    name=$(basename "$machine" .json)
    name=${1}__${name//[:@]/_}
    "$tools/baechi-run" "$2" --machine="$machine" "${emits[@]}" --placer=mtopo --budget=0 \
      --output="$out/$name.so" || return 1
  done
}

# What a model needs at its peak on one device without a limit.
peak() {
  "$tools/baechi-run" "$1" --machine=host:1 --costs=roofline --steps=1 --json="$out/one.json" >/dev/null &&
    "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["devices"][0]["peak_bytes"])' "$out/one.json"
}

# fitted MODEL FILE BYTES LABEL MACHINE: for the largest step of 5 % below BYTES that one device is
# refused for and MACHINE, with SIZE in it, is not.
fitted() {
  local run=$tools/baechi-run percent size
  for percent in {90..40..-5}; do
    size=$(($3 * percent / 100))
    "$run" "$2" --machine="$kind:1@$size" "${emits[@]}" --output="$out/refused.so" \
      2>/dev/null >/dev/null && continue
    "$run" "$2" --machine="${5/SIZE/$size}" "${emits[@]}" \
      --output="$out/${1}__${kind}_${4}_${percent}_percent.so" 2>/dev/null && return
  done
  echo "run.sh: no limit was found that one device is refused for and $5 is not: $1" >&2
  return 1
}

limited() {
  local bytes devices
  bytes=$(peak "$2") || return 1
  for devices in 2 4; do
    fitted "$1" "$2" "$bytes" "$devices" "$kind:$devices@SIZE" || return 1
  done
}

# Plans of other kinds: replicas, operators in pieces, tensors that devices of one GPU lend each
# other, or that wait in the host's memory.
# What is for host devices alone stands in docs/benchmarks-gpu.md.
others() {
  local bytes run=("$tools/baechi-run" "$2" --machine="$kind:2@1GiB" "${emits[@]}")
  "${run[@]}" --replicas=2 --output="$out/${1}__${kind}_2_replicas.so" &&
    "${run[@]}" --splits=forced:2 --output="$out/${1}__${kind}_2_pieces.so" &&
    "$tools/baechi-run" "$2" --machine="$out/lends.json" "${emits[@]}" --placer=mtopo --budget=0 \
      --output="$out/${1}__${kind}_2_lent.so" &&
    bytes=$(peak "$2") &&
    fitted "$1" "$2" "$bytes" pool "$kind:1@SIZE+pool:1GiB"
}

packed() {
  rm -f "$out"/refused.* "$out/one.json"
  find "$out" -name '*.h' -delete
  # The same files give the same pack.
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='1970-01-01' -C build -cf - gpu |
    xz -T2 -6 >"$pack" || return 1
  local bytes
  bytes=$(stat -c %s "$pack")
  printf '%s: %d MiB packed, %d MiB unpacked\n' "$pack" $((bytes >> 20)) $(($(du -sk "$out" | cut -f1) >> 10))
  if [ "$bytes" -gt "$most_bytes" ]; then
    echo "run.sh: the pack has more than $((most_bytes >> 20)) MiB: prepare fewer models" >&2
    return 1
  fi
}
