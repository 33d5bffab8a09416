#!/bin/sh
# Exits with 1 (interesting) if an action is on another worker than its stage.
chimera-opt --chimera-verify-scheduled "$1" -o /dev/null 2>&1 |
  grep -q "micro-batch 3 .*worker" && exit 1
exit 0
