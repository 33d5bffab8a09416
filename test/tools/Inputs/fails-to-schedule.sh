#!/bin/sh
# Exits with 1 (interesting) if the module's pipelines cannot be scheduled
# because of an unknown scheme; with 0 for any other module or error.
chimera-opt --chimera-to-scheduled "$1" -o /dev/null 2>&1 |
  grep -q "expected one of the schedules" && exit 1
exit 0
