// The times of messages come from the description if the stages' own times are
// used. Times in options take precedence.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=DESCRIBED
// DESCRIBED: p2p 3
// DESCRIBED-NEXT: and for bytes 16384 for each 1048576 bytes
// DESCRIBED-NEXT: send, occupies its worker 1
// DESCRIBED-NEXT: receive, occupies its worker 0
// DESCRIBED-NEXT: and for bytes 32768 for each 1048576 bytes
// DESCRIBED-NEXT: memory caps per worker 100000 B, 100000 B

// The makespan has a forward of 2 and a backward of 3 on each worker, and two
// messages of 64 bytes, which take 1 + 3 + 1 + 2 each.
// DESCRIBED-NEXT: receive window 1
// DESCRIBED-NEXT: its bytes per worker 64 B, 64 B
// DESCRIBED-NEXT: makespan with it and smaller ones 1 = 24
// DESCRIBED-NEXT: makespan with stream-per-device 24
// DESCRIBED-NEXT: step (mean of many) 24{{$}}
// DESCRIBED: makespan 24{{$}}
// DESCRIBED-NEXT: load of the busiest worker 5
// DESCRIBED-NEXT: idle per worker 19 19
// DESCRIBED-NEXT: part used by messages 3 3
// DESCRIBED: lower bounds of the makespan LB1 = 8, LB2 = 24, LB3 = 24, LB4 = 1, LB5 = 1
// DESCRIBED-NOT: formula
// DESCRIBED: gap

// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages p2p=0 p2p-per-mib=0 send=0 receive=5 receive-per-mib=0" -o /dev/null | FileCheck %s --check-prefix=BOTH
// BOTH: p2p 0
// BOTH-NEXT: receive, occupies its worker 5
// BOTH-NEXT: memory caps
// BOTH: makespan 20{{$}}

// If options give the times of actions, messages take no time by default.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=forward=10 -o /dev/null | FileCheck %s --check-prefix=OTHER
// OTHER: p2p 0
// OTHER-NEXT: memory caps
// OTHER: makespan 60{{$}}
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="forward=10 p2p=1 p2p-per-mib=16384 send=2 send-per-mib=16384 receive=3 receive-per-mib=16385" -o /dev/null | FileCheck %s --check-prefix=GIVEN
// GIVEN: p2p 1
// GIVEN: makespan 80{{$}}

// The timeline also shows the times of messages.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=costs=stages -o /dev/null | FileCheck %s --check-prefix=GRID
// GRID: (forward 2, backward 3, p2p 3 and 16384 for each 1048576 bytes, send 1, receive 0 and 32768 for each 1048576 bytes)
chimera.pipeline @there stages(2) micro_batches(1) schedule("gpipe")
    link <latency = 3, per_mib = 16384, send = 1, receive_per_mib = 32768>
    memory_cap(100000) {
  chimera.stage 0 cost <forward = 2, backward = 3>
      bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 2, backward = 3>
      bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}

// If the description gives a window, the report has its cost. With one receive
// at a time, the second message travels only after the first one is received.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefixes=WINDOW
// WINDOW: pipeline two
// WINDOW: receive window 2
// WINDOW-NEXT: its bytes per worker 128 B, 128 B
// WINDOW-NEXT: makespan with it and smaller ones 1 = {{[0-9]+}}, 2 = {{[0-9]+}}
// WINDOW-NEXT: makespan with stream-per-device 36
chimera.pipeline @two stages(2) micro_batches(4) schedule("gpipe") link <latency = 4> receive_window(2)
