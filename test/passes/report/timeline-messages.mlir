// If sends and receives occupy workers, every format of the timeline shows it.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1 send=1 receive=2" -o /dev/null | FileCheck %s --check-prefix=TEXT --match-full-lines
// TEXT: p: 1f1b, 2 stages, 2 micro-batches
// TEXT-NEXT: t    0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28
// TEXT-NEXT: P0   F0 =  >  F1 =  >  .  .  .  .  .  .  .  .  <  <  B0 =  =  =  .  .  .  <  <  B1 =  =  =
// TEXT-NEXT: P1   .  .  .  .  <  <  F0 =  B0 =  =  =  >  <  <  F1 =  B1 =  =  =  >  .  .  .  .  .  .  .
// TEXT-NEXT: makespan 29 (forward 2, backward 4, p2p 1, send 1, receive 2)
// TEXT-NEXT: bubble 58.6 % of the makespan; idle per worker: 17 17
// TEXT-NEXT: peak activations per worker: 2 1
// TEXT-NEXT: messages (> send, < receive) occupy workers for 6 6 of their idle time

// The picture has a box for each send and receive, an entry in the legend, and
// their share of a worker's idle time.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1 send=1 receive=2 format=svg output=%t.svg" -o /dev/null
// RUN: %python -c "import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); print(sum(x.get('class') == 'message' for x in r.iter('{http://www.w3.org/2000/svg}rect')))" %t.svg | FileCheck %s --check-prefix=BOXES
// BOXES: {{^}}9{{$}}
// RUN: FileCheck %s --check-prefix=SVG < %t.svg
// SVG: >send or receive</text>
// SVG: <title>P0: idle 17 of 29 (58.6 %), of it for messages 6, peak activations 2</title>
// SVG: <title>send activation 0 to P1, P0, time 2 to 3</title><rect class="message"
// SVG: <title>receive gradient 0 from P1, P0, time 14 to 16</title>

// The trace has an event for each send and receive, in a category of its own.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1 send=1 receive=2 unit=us format=chrome-trace output=%t.json" -o /dev/null
// RUN: FileCheck %s --check-prefix=TRACE < %t.json
// TRACE: {"name":"send activation 0 to P1","cat":"message time","ph":"X","ts":2,"dur":1,"pid":0,"tid":0}
// TRACE: {"name":"receive activation 0 from P0","cat":"message time","ph":"X","ts":4,"dur":2,"pid":0,"tid":1}

// The trace can be read as if it were measured. Only the prediction has boxes:
// a run cannot tell which part of a receive is a wait.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1 send=1 receive=2 unit=us measured=%t.json" -o /dev/null | FileCheck %s --check-prefix=SAME
// SAME: waits: no differences
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1 send=1 receive=2 unit=us measured=%t.json format=svg" -o /dev/null | FileCheck %s --check-prefix=BESIDE
// BESIDE: >send or receive, predicted</text>
// BESIDE-COUNT-8: <title>{{send|receive}} {{.*}}<rect class="message"
// BESIDE-NOT: <rect class="message"

// If only sends occupy workers, only sends are shown. If neither do, and in
// slots, messages are not shown.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 send=1" -o /dev/null | FileCheck %s --check-prefix=SEND --implicit-check-not="<"
// SEND: P0 F0 = > F1 = >
// SEND: messages (> send, {{.}} receive) occupy workers for 2 2 of their idle time
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1" -o /dev/null | FileCheck %s --check-prefix=NONE --implicit-check-not=messages
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1 format=svg" -o /dev/null | FileCheck %s --check-prefix=NONE --implicit-check-not="send" --implicit-check-not="for messages"
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 p2p=1 format=chrome-trace" -o /dev/null | FileCheck %s --check-prefix=NONE --implicit-check-not="message time"
// NONE: p: 1f1b
// RUN: sed 's/1f1b/chimera/' %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline -o /dev/null | FileCheck %s --check-prefix=SLOTS --implicit-check-not=messages
// SLOTS: slot
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
