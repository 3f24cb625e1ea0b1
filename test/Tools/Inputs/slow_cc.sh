#!/bin/sh
# A compiler that tells the one that called it to end, and takes its time.
kill -"$ENDS_WITH" "$PPID"
sleep 0.2
exec cc "$@"
