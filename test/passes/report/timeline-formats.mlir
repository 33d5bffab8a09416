// Each format of the timeline has two pipelines in one document.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=format=text -o /dev/null | FileCheck %s --check-prefix=TEXT
// TEXT: look: chimera, 4 stages, 4 micro-batches
// TEXT-NEXT: slot 0 1 2
// TEXT: uneven: 1f1b, 2 stages, 2 micro-batches
// TEXT-NEXT: t  0  1  2  3  4  5{{$}}

// The costs of the stages are used, and messages take time.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages p2p=1" -o /dev/null | FileCheck %s --check-prefix=STAGES
// STAGES: uneven: 1f1b, 2 stages, 2 micro-batches
// STAGES-NEXT: t 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20{{$}}
// STAGES-NEXT: P0 F0 = F1 = . . . . . . . B0 = = . . . . B1 = ={{$}}
// STAGES-NEXT: P1 . . . F0 B0 = = = = = F1 B1 = = = = = . . . .{{$}}
// STAGES-NEXT: makespan 21 (forward 1 to 2, backward 3 to 6, p2p 1)
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=uniform forward=2" -o /dev/null | FileCheck %s --check-prefix=UNIFORM
// UNIFORM: makespan {{[0-9]+}} (forward 2, backward 4, p2p 0)

// The text has the unit of its times. Long times are in a larger unit.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=20000 unit=us" -o /dev/null | FileCheck %s --check-prefix=UNIT
// UNIT: uneven: 1f1b, 2 stages, 2 micro-batches
// UNIT-NEXT: t ms 0 20 40 60 80 100 120 140 160{{$}}
// UNIT-NEXT: P0 F0 F1 . . B0 = . B1 ={{$}}
// UNIT-NEXT: P1 . F0 B0 = F1 B1 = . .{{$}}
// UNIT-NEXT: (a column is 20 ms)
// UNIT-NEXT: makespan 180 ms (forward 20 ms, backward 40 ms, p2p 0 us)
// UNIT-NEXT: of the makespan; idle per worker: 60 60 ms{{$}}
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=20000 backward=45000 unit=us" -o /dev/null | FileCheck %s --check-prefix=ROUNDED
// ROUNDED: (a column is 20 ms; starts and ends are rounded to columns)
// RUN: sed 's/("1f1b")/& time_unit(ns)/' %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline=costs=stages -o /dev/null | FileCheck %s --check-prefix=OWN
// OWN: makespan 19 ns (forward 1 ns to 2 ns, backward 3 ns to 6 ns, p2p 0 ns)

// Wide grids are broken into blocks: at the given width, at the terminal's
// width or, if the output is not a terminal, at 160 characters.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=width=20 -o /dev/null | FileCheck %s --check-prefix=FOLDED
// FOLDED: look: chimera, 4 stages, 4 micro-batches
// FOLDED-NEXT: slot 0 1 2 3 4{{$}}
// FOLDED-NEXT: P0 F0 . F1 f2 b2{{$}}
// FOLDED-NEXT: P1 . F0 f2 F1 f3{{$}}
// FOLDED-NEXT: P2 . f2 F0 f3 F1{{$}}
// FOLDED-NEXT: P3 f2 . f3 F0 B0{{$}}
// FOLDED-EMPTY:
// FOLDED-NEXT: slot 5 6 7 8 9{{$}}
// FOLDED-NEXT: P0 f3 b3 B0 . B1{{$}}
// FOLDED: P3 F1 B1 b2 . b3{{$}}
// FOLDED-NEXT: (small letters: the pipeline whose activations go up the workers)
// FOLDED-NEXT: makespan 10
// RUN: %python %S/../Inputs/terminal.py 26 chimera-opt %s --chimera-to-scheduled --chimera-print-timeline -o /dev/null | FileCheck %s --check-prefix=TERMINAL
// TERMINAL: slot 0 1 2 3 4 5 6{{$}}
// TERMINAL: slot 7 8 9{{$}}
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=10" -o /dev/null | FileCheck %s --check-prefix=LINES
// LINES: t 0 1 2 {{.*}} 37 38{{$}}
// LINES: t 39 40 {{.*}} 77{{$}}

// A picture is XML, has a labelled box for every action, and is the same each
// time.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="format=svg output=%t.svg" -o /dev/null
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=format=svg -o /dev/null > %t.again
// RUN: cmp %t.svg %t.again
// RUN: %python -c "import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); t = [x.text for x in r.iter('{http://www.w3.org/2000/svg}title')]; print(r.tag, sum(' of micro-batch ' in x for x in t), sum('idle' in x for x in t))" %t.svg | FileCheck %s --check-prefix=XML
// XML: {http://www.w3.org/2000/svg}svg 40 6
// RUN: FileCheck %s --check-prefix=SVG < %t.svg
// SVG: look: chimera, 4 stages, 4 micro-batches
// SVG: makespan 10 (one slot each) · bubble 20.0 % of the makespan
// SVG: <title>forward of micro-batch 0, stage 0, pipeline 0 (down), P0, slot 0</title>
// SVG: <title>backward of micro-batch 3, stage 0, pipeline 1 (up), P3, slot 9</title>
// SVG: uneven: 1f1b, 2 stages, 2 micro-batches

// A trace is JSON. It has one complete event per action, one arrow per message,
// and the bytes of each worker.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="format=chrome-trace" -o /dev/null > %t.json
// RUN: %python -c "import json, sys; d = json.load(open(sys.argv[1])); x = [e for e in d['traceEvents'] if e['ph'] == 'X']; print(len(x), {e['args']['worker'] == e['tid'] for e in x}, sorted({k for e in x for k in e['args']}), max(e['ts'] + e['dur'] for e in x))" %t.json | FileCheck %s --check-prefix=JSON
// JSON: 40 {True} ['kind', 'micro_batch', 'pipeline', 'stage', 'worker'] 10
// RUN: %python -c "import collections, json, sys; e = json.load(open(sys.argv[1]))['traceEvents']; print(sorted(collections.Counter(x['ph'] for x in e).items()), len({x['id'] for x in e if x['ph'] == 's'}), sorted({(x['pid'], x['name']) for x in e if x['ph'] == 'C'})[-1])" %t.json | FileCheck %s --check-prefix=EVENTS
// EVENTS: ('X', 40), ('f', 28), ('s', 28)] 28 (1, 'bytes of P1')
// RUN: FileCheck %s --check-prefix=TRACE < %t.json
// TRACE: "look":"one slot is shown as 1 us","uneven":"one unit of time is shown as 1 us"
// TRACE: {"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"look: chimera, 4 stages, 4 micro-batches"}}
// TRACE: {"name":"thread_name","ph":"M","pid":0,"tid":3,"args":{"name":"P3"}}
// TRACE: {"name":"backward 3","cat":"backward","ph":"X","ts":9,"dur":1,"pid":0,"tid":3,"args":{"worker":3,"kind":"backward","pipeline":1,"stage":0,"micro_batch":3}}

// The times of a trace are in microseconds, so 500 ns are 0.5.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="format=chrome-trace forward=500 unit=ns" -o /dev/null | FileCheck %s --check-prefix=NS
// NS: "look":"costs are in ns"
// NS: "name":"backward 2","cat":"backward","ph":"X","ts":2.0,"dur":1.0
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="format=chrome-trace forward=500 unit=us" -o /dev/null | FileCheck %s --check-prefix=US
// US: "look":"costs are in us"
// US: "name":"backward 2","cat":"backward","ph":"X","ts":2000,"dur":1000
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="format=svg costs=stages" -o /dev/null | FileCheck %s --check-prefix=NONE
// NONE: class="axis"{{.*}}>time in slot</text>
// NONE: class="axis"{{.*}}>time</text>
// RUN: sed 's/("1f1b")/& time_unit(ns)/' %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline="format=svg costs=stages" -o /dev/null | FileCheck %s --check-prefix=AXIS
// AXIS: class="axis"{{.*}}>time in ns</text>

// The help text lists the formats.
// RUN: chimera-opt --help | FileCheck %s --check-prefix=HELP
// HELP: --chimera-print-timeline
// HELP: Form of the timeline: text (the grid of the Chimera paper), svg (a picture), html (a page for a browser: zoom, pan and look at actions), chrome-trace (JSON for
chimera.pipeline @look stages(4) micro_batches(4) schedule("chimera")
chimera.pipeline @uneven stages(2) micro_batches(2) schedule("1f1b") {
  chimera.stage 0 cost <forward = 2, backward = 3>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 6>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}
