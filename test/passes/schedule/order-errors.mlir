// Wrong orders. The error is at the word that is wrong.
//
// RUN: not chimera-opt %s --chimera-to-scheduled --split-input-file -o /dev/null 2>&1 | FileCheck %s

// Q1 is not a word of the notation.
// CHECK: offset :9:29: error: 'chimera.order' op expected a word such as F0, B0, I0, W0, R0, 2F0 (stage 2), F0-1 (a range), B0.1 (a part), F1+B0 (a pair), W0+W1 (joined), .3 (idle slots) or |, got Q1
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 Q1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// Words are not separated by commas.
// CHECK: 'chimera.order' op expected a word such as {{.*}} or |, got F0,: blanks separate words, write no commas
chimera.pipeline @p stages(1) micro_batches(1) {
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0, B0"
}

// -----

// A micro-batch that does not exist.
// CHECK: offset :7:29: error: 'chimera.order' op expected a micro-batch below 2, got 2
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B2"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The stage is on another worker.
// CHECK: offset :7:26: error: 'chimera.order' op expected a stage that worker 0 has (0), got 1
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 1B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The worker has several stages, so F1 needs the number of its stage.
// CHECK: offset :7:32: error: 'chimera.order' op expected a stage before F1, one of 0, 2, because worker 0 has several
chimera.pipeline @p stages(4) micro_batches(2) workers(2) {
  chimera.direction 0 down on [0, 1, 0, 1] micro_batches [0, 1]
  chimera.order 0 "0F0 0F1 2F0 F1"
  chimera.order 1 "1F0"
}

// -----

// A forward has other micro-batches than the direction says.
// CHECK: offset :7:20: error: 'chimera.order' op expected F0-1, because this forward of the direction has these micro-batches
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1] forwards [2]
  chimera.order 0 "F0 F1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The order has a part of a backward that is not cut.
// CHECK: offset :7:26: error: 'chimera.order' op expected B0, because each backward of the direction has one part
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0.1 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The order has sections, although the step ends with a flush.
// CHECK: offset :7:23: error: 'chimera.order' op expected no |, as a flush ends the step
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 | F1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The order has no sections, although steps overlap.
// CHECK: offset :7:31: error: 'chimera.order' op expected a prologue, a step and an epilogue, with | between them, as steps overlap
chimera.pipeline @p stages(2) micro_batches(2) updates(each_step) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// An action is in the order twice.
// CHECK: offset :7:29: error: 'chimera.order' op worker 0: forward of stage 0, micro-batch 1 is in the order twice
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 F1 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// An action is missing.
// CHECK: offset :7:19: error: 'chimera.order' op backward of stage 0, micro-batch 0 is missing
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// A backward comes before its forward. The deadlock that follows from it is not
// reported.
// CHECK: offset :9:23: error: 'chimera.order' op worker 0: backward of stage 0, micro-batch 1 must come after the forward that it depends on
// CHECK-NOT: deadlock
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 B1 F1 B0"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The order has the same backward both whole and split.
// CHECK: offset :7:26: error: 'chimera.order' op worker 0: unknown action backward of stage 0, micro-batch 0: this backward is split, so write I (its input gradient) here, and W (its weight gradient) here or later (zero-bubble papers write B and W: chimera-show --zero-bubble-notation reads a file of them)
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 I0 W0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// A weight gradient comes before its input gradient.
// CHECK: offset :7:26: error: 'chimera.order' op worker 0: weight_gradient of stage 0, micro-batch 0 must come after the input_gradient that it depends on
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 W0 I0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// Two workers wait for each other, and a third one waits for them. A note has
// the position of each awaited action.
// CHECK: offset :14:23: error: 'chimera.order' op deadlock: worker 0 cannot run backward of stage 0, micro-batch 0, because it waits for backward of stage 1, micro-batch 0, which worker 1 cannot run before forward of stage 1, micro-batch 1
// CHECK: offset :15:26: note: backward of stage 1, micro-batch 0 is here
// CHECK: offset :15:23: error: 'chimera.order' op deadlock: worker 1 cannot run forward of stage 1, micro-batch 1, because it waits for forward of stage 0, micro-batch 1, which worker 0 cannot run before backward of stage 0, micro-batch 0
// CHECK-NEXT: order 1
// CHECK-NEXT: ^
// CHECK-NEXT: {{.*}}offset :15:23: note: 1 more worker waits for these workers
// CHECK-NEXT: {{.*}}offset :14:26: note: forward of stage 0, micro-batch 1 is here
chimera.pipeline @p stages(3) micro_batches(2) {
  chimera.direction 0 down on [0, 1, 2] micro_batches [0, 1]
  chimera.order 0 "F0 B0 F1 B1"
  chimera.order 1 "F0 F1 B0 B1"
  chimera.order 2 "F0 B0 F1 B1"
}

// -----

// The order has a recompute for a stage that is not recomputed.
// CHECK: offset :7:23: error: 'chimera.order' op worker 0: unknown action recompute of stage 0, micro-batch 0: this stage is not recomputed
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 R0 F1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The slot of an action is not after the slots of its inputs.
// CHECK: offset :9:20: error: 'chimera.order' op forward of stage 1, micro-batch 0 in slot 0 depends on forward of stage 0, micro-batch 0, which is not in an earlier slot, but in slot 0
// CHECK: offset :9:20: note: to run every action as early as its order allows, delete the slot of one action of the step, or every . of all orders
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 . B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// There is no order for a worker.
// CHECK: offset :5:1: error: 'chimera.pipeline' op expected a chimera.order for each of 2 workers, got none for worker 1: without workers(NUMBER) each stage has a worker of its own
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B1"
}

// -----

// There are two orders for a worker.
// CHECK: offset :10:19: error: 'chimera.order' op expected one order for worker 1
// CHECK: offset :9:19: note: here is another
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// There is an order for a worker that does not exist.
// CHECK: offset :9:19: error: 'chimera.order' op expected a worker below 2, got 2
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
  chimera.order 2 "F0"
}

// -----

// Both the order and the pipeline say which backwards are split.
// CHECK: offset :5:1: error: 'chimera.pipeline' op expected no split_backward with an order, which says which backwards are split
chimera.pipeline @p stages(2) micro_batches(2) split_backward {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

// -----

// The pipeline has an order but no placement.
// CHECK: offset :5:1: error: 'chimera.pipeline' op expected a chimera.direction for each pipeline, as no schedule is named
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.order 0 "F0"
}

// -----

// The pipeline has a placement but no order.
// CHECK: offset :5:1: error: 'chimera.pipeline' op expected a chimera.order for each worker, as no schedule is named
chimera.pipeline @p stages(2) micro_batches(2) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
}

// -----

// The pipeline has neither a placement nor an order.
// CHECK: offset :5:1: error: 'chimera.pipeline' op expected schedule(NAME), or a chimera.direction for each pipeline and a chimera.order for each worker
chimera.pipeline @p stages(2) micro_batches(2)

// -----

// The updates clause contradicts the schedule.
// CHECK: offset :5:1: error: 'chimera.pipeline' op expected updates(flush), as schedule "1f1b" updates weights, or no updates clause, got each_step
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b") updates(each_step)

// -----

// The step has fewer micro-batches than the first stage has in flight.
// CHECK: 'chimera.pipeline' op expected at least 3 micro-batches in a step, because the first stage runs that many forwards ahead, got 1
chimera.pipeline @p stages(4) micro_batches(1) updates(each_micro_batch) {
  chimera.direction 0 down on [0, 1, 2, 3] micro_batches [0]
  chimera.order 0 "F0 | F1 B0 | B0"
  chimera.order 1 "F0 | F1 B0 | B0"
  chimera.order 2 "F0 | F1 B0 | B0"
  chimera.order 3 "| F0 B0 | F0 B0"
}

// -----

// A stage runs more forwards before the body than are allowed.
// CHECK: 'chimera.order' op worker 0: expected exactly 0 forwards of stage 0 before the body, one for each later stage, got forward of stage 0, micro-batch 0 before it
chimera.pipeline @p stages(1) micro_batches(1) updates(each_step) {
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 | B0 F1 | B0"
}

// -----

// If steps overlap, each worker must have a stage.
// CHECK: 'chimera.pipeline' op expected a stage on each worker if steps overlap, got none on worker 0
chimera.pipeline @p stages(2) micro_batches(2) workers(2) updates(each_step) {
  chimera.direction 0 down on [1, 1] micro_batches [0, 1]
  chimera.order 0 "| |"
  chimera.order 1 "0F0 | 1F0 0F1 1B0 0B0 0F2 1F1 1B1 0B1 | 1F0 0F1 1B0 0B0 1F1 1B1 0B1"
}

// -----

// If steps overlap, no recompute may be left out.
// CHECK: 'chimera.order' op expected every recompute directly before its backward if steps overlap: backward of stage 0, micro-batch 0 of the second step here
chimera.pipeline @p stages(2) micro_batches(1) updates(each_step) recompute(all) {
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.order 0 "F0 | B0 F1 | R0 B0"
  chimera.order 1 "| F0 B0 | F0 B0"
}

// -----

// The sum of the idle slots is too large.
// CHECK: 'chimera.order' op expected less than 2^31 slots
chimera.pipeline @p stages(1) micro_batches(1) {
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 ".2147483647 .2147483647 F0 B0"
}

// -----

// The pipeline has both the name of a schedule and an order.
// CHECK: 'chimera.direction' op expected a pipeline with stages only, or with directions and orders but no schedule(NAME): this one is partitioned already, or has both
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
}

// -----

// The number of a stage is too large.
// CHECK: 'chimera.order' op expected numbers below 2^31, got 0F99999999999999999999
chimera.pipeline @p stages(1) micro_batches(1) {
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "0F99999999999999999999 B0"
}

// -----

// The epilogue lacks B1. Its micro-batches are numbered as in their own step.
// CHECK: 'chimera.order' op backward of stage 0, micro-batch 1 of the second step is missing
chimera.pipeline @p stages(2) micro_batches(2) updates(each_step) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 | F1 B0 F2 B1 | F1 B0"
  chimera.order 1 "| F0 B0 F1 B1 | F0 B0 F1 B1"
}
