# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sourced by scripts that run several checks one after the other, each to its end whatever
# the others did: `run NAME COMMAND...` for each, then `report_parts`.

passed=0 failures=()

# run NAME COMMAND...: one part, timed; fails as it does, the others still run.
run() {
  local name=$1 TIMEFORMAT="-- $1: %0R s, %0U s of processors"
  shift
  printf '\n== %s\n' "$name"
  if time "$@"; then
    passed=$((passed + 1))
  else
    failures+=("$name")
    return 1
  fi
}

# begin NAME COMMAND...: one part beside those that follow, for `end NAME`, which waits for it
# and shows what it wrote.
begin() {
  local name=$1
  shift
  begun_log=$(mktemp)
  ( TIMEFORMAT="-- $name (beside others): %0R s, %0U s of processors"
    time "$@" ) >"$begun_log" 2>&1 &
  begun=$!
}
end() {
  local status=0
  printf '\n== %s\n' "$1"
  wait "$begun" || status=$?
  cat "$begun_log"
  rm "$begun_log"
  if [ "$status" = 0 ]; then
    passed=$((passed + 1))
  else
    failures+=("$1")
  fi
}

# Names what failed, and fails if anything did.
report_parts() {
  local name
  printf '\n'
  for name in "${failures[@]}"; do
    echo "FAILED: $name"
  done
  echo "parts: $passed passed, ${#failures[@]} failed"
  [ ${#failures[@]} = 0 ]
}
