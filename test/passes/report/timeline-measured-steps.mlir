// A run whose steps overlap, beside its prediction. Both show the body: the
// part that each worker repeats once per step. The trace has the last two
// bodies of each worker, with micro-batches 0 to 3, and the end of the run. In
// the last body, P1's first forward took 1.5 times as long, so P0 waited for
// it.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured-steps.json" -o /dev/null | FileCheck %s --check-prefix=TEXT --match-full-lines
// TEXT: p: pipedream-2bw, 2 stages, 2 micro-batches
// TEXT-NEXT: measured: the body that each worker repeats, in steps 5 and 6
// TEXT-NEXT: worker  step: predicted  measured  busy: predicted  measured  idle: predicted  measured
// TEXT-NEXT: P0               6.1 ms    6.6 ms           6.1 ms    6.1 ms             0 us    500 us
// TEXT-NEXT: P1               6.1 ms    6.6 ms           6.1 ms    6.6 ms             0 us      0 us
// TEXT-NEXT: durations, the largest differences:
// TEXT-NEXT:   F0 of stage 1 on P1: 1.5 ms measured, 1 ms predicted, +50.0 %
// TEXT-NEXT: waits, the largest differences:
// TEXT-NEXT:   P0 waits 500 us longer before B0 of stage 0: 500 us measured, 0 us predicted
// TEXT-NEXT: starts, the largest differences:
// TEXT-NEXT:   B0 of stage 0 on P0 starts 500 us later: 3.5 ms measured, 3 ms predicted
// TEXT:      step: 6.6 ms measured, 6.1 ms predicted, +8.2 %

// The row of each worker starts when its previous body has ended. Updates are
// between actions, and no all-reduce overlaps with actions.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured-steps.json format=svg" -o /dev/null | FileCheck %s --check-prefix=SVG --implicit-check-not="all-reduce under way"
// SVG: >step: 6.6 ms measured, 6.1 ms predicted, +8.2 % · measured: the body that each worker repeats, in<
// SVG: >steps 5 and 6<
// SVG: >update</text>
// SVG: <title>P0, measured: idle 500 us of 6.6 ms (7.6 %)</title><rect class="bubble" x="106.98"
// SVG: <title>P1, measured: idle 0 us of 6.6 ms (0.0 %)</title><rect class="bubble" x="0"
// SVG: <title>update of stage 0, P0, time in us 8500 to 8600</title>

// A message has an arrow only if both of its ends are in the body. Bytes are
// not shown, because workers also hold values of earlier bodies.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured-steps.json format=chrome-trace output=%t.json" -o /dev/null
// RUN: %python -c "import collections, json, sys; d = json.load(open(sys.argv[1])); print(sorted(collections.Counter((e['pid'], e['ph'], e['cat']) for e in d['traceEvents'] if e['ph'] != 'M').items()))" %t.json | FileCheck %s --check-prefix=JSON
// JSON: [((0, 'X', 'backward'), 4), ((0, 'X', 'forward'), 4), ((0, 'X', 'update'), 2), ((0, 'f', 'message'), 3), ((0, 's', 'message'), 3), ((1, 'X', 'backward'), 4), ((1, 'X', 'forward'), 4), ((1, 'X', 'message wait'), 1), ((1, 'X', 'update'), 2), ((1, 'f', 'message'), 3), ((1, 's', 'message'), 3)]

// A trace of two steps has only one body. So it lacks the end of the body
// before, at which the step starts.
// RUN: %python -c "import json, sys; d = json.load(open(sys.argv[1])); d['traceEvents'] = [e for e in d['traceEvents'] if e.get('args', {}).get('step') != 2]; json.dump(d, open(sys.argv[2], 'w'))" %S/../Inputs/measured-steps.json %t.two
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.two" 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: chimera-print-timeline: {{.*}}.two: expected micro-batches of 3 steps or more, as a run of 3 steps has with --trace-steps 2, got those of 2

// The traced pipeline had another number of micro-batches.
// RUN: sed 's/micro_batches(2)/micro_batches(3)/' %s | not chimera-opt --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured-steps.json" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: measured-steps.json: expected micro_batch 3 to 5 in step 1, got 2 for "forward 2"

// The predicted times must have a unit of time, as with a flush.
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 measured=%S/../Inputs/measured-steps.json" 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: 'chimera.pipeline' op expected a prediction in seconds for measured, got unit none: name a machine

// If steps overlap, grids also show updates and waits for all-reduces between
// actions, once per micro-batch or once per step.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 update=1" -o /dev/null | FileCheck %s --check-prefix=STEP --match-full-lines
// STEP: P0   F0 F1 .  .  B0 =  F2 B1 =  U0 F3 B2 =  .  B3 =  U0
// STEP-NEXT: P1   .  F0 B0 =  F1 B1 =  U1 F2 B2 =  F3 B3 =  U1 .  .
// RUN: sed 's/("pipedream-2bw")/("pipedream") data_parallel(2)/' %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline="forward=1 update=1 p2p=1" -o /dev/null | FileCheck %s --check-prefix=EACH
// EACH: P1 . . F0 B0 = A1 = U1 F1 B1 = A1 = U1
chimera.pipeline @p stages(2) micro_batches(2) schedule("pipedream-2bw") time_unit(us) {
  chimera.stage 0 cost <forward = 1000, backward = 2000, update = 100>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1000, backward = 2000, update = 100>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}
