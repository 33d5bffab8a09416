// A run beside its prediction. P1's first forward took 1.5 times as long as
// predicted, so P0 waited for it.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured.json" -o /dev/null | FileCheck %s --check-prefix=TEXT --match-full-lines
// TEXT: p: 1f1b, 2 stages, 2 micro-batches
// TEXT-NEXT: measured: step 3
// TEXT-NEXT: worker  step: predicted  measured  busy: predicted  measured  idle: predicted  measured
// TEXT-NEXT: P0               9.1 ms    9.7 ms           6.1 ms    6.2 ms             3 ms    3.5 ms
// TEXT-NEXT: P1               7.1 ms    7.6 ms           6.1 ms    6.6 ms             3 ms    3.1 ms
// TEXT-NEXT: durations, the largest differences:
// TEXT-NEXT:   F0 of stage 1 on P1: 1.5 ms measured, 1 ms predicted, +50.0 %
// TEXT-NEXT:   B1 of stage 0 on P0: 2.05 ms measured, 2 ms predicted, +2.5 %
// TEXT-NEXT: waits, the largest differences:
// TEXT-NEXT:   P0 waits 500 us longer before B0 of stage 0: 2.5 ms measured, 2 ms predicted
// TEXT-NEXT:   P0 takes 50 us longer after its actions: 150 us measured, 100 us predicted
// TEXT-NEXT: starts, the largest differences:
// TEXT-NEXT:   B0 of stage 0 on P0 starts 500 us later: 4.5 ms measured, 4 ms predicted
// TEXT:      step: 9.7 ms measured, 9.1 ms predicted, +6.6 %

// Times in options may also have a unit of time.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1.5 backward=2 unit=ms measured=%S/../Inputs/measured.json" -o /dev/null | FileCheck %s --check-prefix=GIVEN
// GIVEN: F0 of stage 0 on P0: 1 ms measured, 1.5 ms predicted, -33.3 %

// The picture has two rows for each worker, with the same axis.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured.json format=svg output=%t.svg" -o /dev/null
// RUN: %python -c "import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); t = [x.text for x in r.iter('{http://www.w3.org/2000/svg}title')]; print(sum(' of micro-batch ' in x for x in t), sum('idle' in x for x in t), sum('update' in x for x in t))" %t.svg | FileCheck %s --check-prefix=XML
// XML: 16 4 4
// RUN: FileCheck %s --check-prefix=SVG < %t.svg
// SVG: >step: 9.7 ms measured, 9.1 ms predicted, +6.6 % · measured: step 3<
// SVG: <title>P1, predicted: idle 3 ms of 9.1 ms (33.0 %)</title>
// SVG: <title>P1, measured: idle 3.1 ms of 9.7 ms (32.0 %)</title>
// SVG: <title>backward of micro-batch 1, stage 0, pipeline 0, P0, time in us 7000 to 9000</title>
// SVG: <title>backward of micro-batch 1, stage 0, pipeline 0, P0, time in us 7500 to 9550</title>
// SVG: >F0 of stage 1 on P1: 1.5 ms measured, 1 ms predicted, +50.0 %<

// The trace has two processes. The measured one also has waits for messages.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured.json format=chrome-trace output=%t.json" -o /dev/null
// RUN: %python -c "import collections, json, sys; d = json.load(open(sys.argv[1])); print(sorted(collections.Counter((e['pid'], e['cat']) for e in d['traceEvents'] if e['ph'] == 'X').items())); print(d['otherData']['differences']['durations'][0])" %t.json | FileCheck %s --check-prefix=JSON
// JSON: [((0, 'backward'), 4), ((0, 'forward'), 4), ((0, 'update'), 2), ((1, 'backward'), 4), ((1, 'forward'), 4), ((1, 'message wait'), 2), ((1, 'update'), 2)]
// JSON: {'what': 'F0 of stage 1 on P1: 1.5 ms measured, 1 ms predicted, +50.0 %', 'worker': 1, 'predicted_us': 1000.0, 'measured_us': 1500.0}

// A predicted trace can be read as if it were a measured one.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages format=chrome-trace output=%t.predicted" -o /dev/null
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.predicted" -o /dev/null | FileCheck %s --check-prefix=SAME
// SAME: durations: no differences
// SAME-NEXT: waits: no differences
// SAME-NEXT: starts: no differences
// SAME-NEXT: step: 9.1 ms measured, 9.1 ms predicted, +0.0 %

// If a run had two copies, the slower one is shown, or the one that `copy`
// names.
// RUN: %python -c "import json, sys; d = json.load(open(sys.argv[1])); e = d['traceEvents']; e += [dict(x, pid=1, dur=x['dur'] - (x['name'] == 'update of stage 0')) for x in e if x['ph'] == 'X']; json.dump(d, open(sys.argv[2], 'w'))" %S/../Inputs/measured.json %t.two
// RUN: sed 's/("1f1b")/& data_parallel(2)/' %s > %t.two.mlir
// RUN: chimera-opt %t.two.mlir --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.two" -o /dev/null | FileCheck %s --check-prefix=SLOWEST
// SLOWEST: measured: step 3 of copy 0, the slowest of 2
// RUN: chimera-opt %t.two.mlir --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.two copy=1" -o /dev/null | FileCheck %s --check-prefix=COPY
// COPY: measured: step 3 of copy 1 of 2
// COPY: step: 9.699 ms measured
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b") time_unit(us) {
  chimera.stage 0 cost <forward = 1000, backward = 2000, update = 100>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1000, backward = 2000, update = 100>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}
