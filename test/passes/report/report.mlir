// A report has sizes, times, bubbles, memory and bounds, and formulas that
// hold.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="forward=1" -o /dev/null | FileCheck %s --check-prefix=TABLE
// RUN: chimera-opt %s --chimera-to-allocated --chimera-report="format=table forward=1" -o /dev/null | FileCheck %s --check-prefixes=TABLE,ALLOCATED
// TABLE: pipeline d4
// TABLE-NEXT: schedule chimera
// TABLE-NEXT: options pipelines = 2, concatenation = direct
// TABLE-NEXT: workers (D) 4
// TABLE-NEXT: stages (S) 4
// TABLE-NEXT: micro-batches (N) 8
// TABLE-NEXT: data-parallel width (W) 3
// TABLE-NEXT: micro-batch size (B) 1
// TABLE-NEXT: pipelines (p) 2
// TABLE-NEXT: unit of time none
// TABLE-NEXT: forward (f) 1
// TABLE-NEXT: backward (b) 2
// TABLE-NEXT: p2p 0
// TABLE-NEXT: receive window 1
// TABLE-NEXT: its bytes per worker 64 B, 128 B, 128 B, 64 B
// TABLE-NEXT: makespan with stream-per-device 30
// TABLE-NEXT: step (mean of many) 30
// TABLE-NEXT: for each sample 1.25
// TABLE-NEXT: makespan 30
// TABLE-NEXT: load of the busiest worker 24
// TABLE-NEXT: idle per worker 6 6 6 6
// TABLE-NEXT: bubble (makespan less load) 6
// TABLE-NEXT: ratio over all workers 20.0 %
// TABLE-NEXT: ratio, by formula 20.0 %
// TABLE-NEXT: formula (K+1)(D-2)/(3N+(K+1)(D-2))
// TABLE-NEXT: conditions D even, N = KD, p = 2, b = 2f
// TABLE-NEXT: source found by simulation
// TABLE-NEXT: bubble inside a worker's span 6
// TABLE-NEXT: ratio, simulated 20.0 %
// TABLE-NEXT: peak activations per worker 3 4 4 3
// TABLE-NEXT: interval, simulated 3 4
// TABLE-NEXT: interval, by formula 3 4
// TABLE-NEXT: formula D-D/p+1 to D (D even, D divides N, b >= f; Li and Hoefler, SC'21, Table 3)
// TABLE-NEXT: resident bytes per worker 384 B, 384 B, 384 B, 384 B
// TABLE-NEXT: peak bytes per worker 768 B, 896 B, 896 B, 768 B
// ALLOCATED-NEXT: allocated bytes per worker 1344 B, 1088 B, 1088 B, 1344 B
// TABLE-NEXT: lower bounds of the makespan LB1 = 24, LB2 = 27, LB3 = 12
// TABLE-NEXT: the highest LB2: T >= {{.*}} (always; before the first of Q comes its head, after the last its tail, and none of Q overlap)
// TABLE-NEXT: gap to the highest 11.1 %
// TABLE: pipeline split
// TABLE-NEXT: schedule 1f1b
// TABLE-NOT: formula
// TABLE: weight gradient 1

// With messages that take time, the formulas no longer hold.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages p2p=1" -o /dev/null | FileCheck %s --check-prefix=P2P
// P2P: unit of time slot
// P2P-NEXT: forward (f) 1
// P2P: p2p 1
// P2P-NOT: formula

// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="format=json output=%t.json" -o /dev/null
// RUN: %python -c "import json, sys; a, b, *_ = json.load(open(sys.argv[1])); print(a['makespan'], a['bubble_ratio'] == a['bubble_ratio_formula'], a['bubble_formula_source'], a['bounds'], a['peak_activations_interval'], b['backward'], b['input_gradient'], b['bubble_formula'])" %t.json | FileCheck %s --check-prefix=JSON
// JSON: 18 True Li and Hoefler, SC'21, Table 2 {'LB1': 16, 'LB2': 18, 'LB3': 8} [3, 4] None 1 None

// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="format=csv" -o /dev/null > %t.csv
// RUN: %python -c "import csv, sys; a, b, *_ = csv.DictReader(open(sys.argv[1])); print(a['name'], a['options'], a['idle'], a['backward'], b['name'], [b['backward']], b['width'])" %t.csv | FileCheck %s --check-prefix=CSV
// CSV: d4 pipelines = 2, concatenation = direct 2 2 2 2 1 split [''] 1
chimera.pipeline @d4 stages(4) micro_batches(8) schedule("chimera") data_parallel(3)
chimera.pipeline @split stages(2) micro_batches(2) schedule("1f1b") split_backward

// The note names a simpler schedule that does the same.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report -o /dev/null | FileCheck %s --check-prefix=NOTE
// NOTE: pipeline whole
// NOTE: options pipelines = 4, concatenation = direct
// NOTE: note with as many pipelines as stages every worker holds the whole model: plain data parallelism does the same without messages
chimera.pipeline @whole stages(4) micro_batches(4) schedule("chimera", {pipelines = 4})

// If steps overlap, the report has the times of two steps and of a steady step.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="forward=1 p2p=1" -o /dev/null | FileCheck %s --check-prefix=STEADY
// STEADY: pipeline endless
// STEADY: overlapping steps, shown 2{{$}}
// STEADY-NEXT: step (mean of many) 18{{$}}
// STEADY: makespan 49{{$}}
// STEADY: steady state: bubble of a step 33.3 %
// STEADY-NOT: formula
// STEADY: versions of weights, by stage 4 3 2 1{{$}}
// STEADY: note gradients are applied to newer weights than those that they were computed from: on the first stage to weights that are 3 updates newer
// RUN: chimera-opt %s --chimera-to-allocated --chimera-report=forward=1 -o /dev/null | FileCheck %s --check-prefix=ENDLESS
// ENDLESS: pipeline endless
// ENDLESS: step (mean of many) 12{{$}}
// ENDLESS: steady state: bubble of a step 0.0 %
// ENDLESS-NEXT: ratio, by formula 0.0 %
chimera.pipeline @endless stages(4) micro_batches(4) schedule("pipedream")
