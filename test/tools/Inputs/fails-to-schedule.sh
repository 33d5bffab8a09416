#!/bin/sh
# Interesting (1) is a module whose pipelines cannot be scheduled because of an
# unknown scheme; any other module, or any other error, is not (0).
chimera-opt --chimera-to-scheduled "$1" -o /dev/null 2>&1 |
  grep -q "expected one of the schedules" && exit 1
exit 0
