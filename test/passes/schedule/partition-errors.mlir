// RUN: chimera-opt %s --chimera-partition --verify-diagnostics --split-input-file -o /dev/null

// expected-error@below {{expected one of the schedules chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, pipedream-2bw, got "chimaera"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimaera")

// -----

// expected-error@below {{schedule "chimera" (any D >= 2, S = D, any N >= 1): expected at least 2 workers for two directions, got 1: use gpipe or 1f1b}}
chimera.pipeline @p stages(1) micro_batches(3) schedule("chimera")

// -----

// expected-error@below {{expected a chimera.model @missing, found none}}
chimera.pipeline @p of @missing stages(2) micro_batches(2) schedule("gpipe")

// -----

// There is a symbol of this name, but it is no model.
// expected-error@below {{expected a chimera.model @p, found none}}
chimera.pipeline @p of @p stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected architecture 'gpt2' or 'exported', got 'bert'}}
chimera.model @m bert layers(4) heads(4) width(64) context(16) vocabulary(256)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected a width divisible by the number of heads, got width 64 and 3 heads}}
chimera.model @m gpt2 layers(4) heads(3) width(64) context(16) vocabulary(256)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected dropout in [0, 1), got 1.0}}
chimera.model @m gpt2 layers(4) heads(4) width(64) context(16) vocabulary(256) dropout(1.0)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected vocabulary between 1 and 1048576, got 2147483647}}
chimera.model @m gpt2 layers(4) heads(4) width(64) context(16) vocabulary(2147483647)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected time_unit to be one of none, slot, flop, s, ms, us, ns, got "hours"}}
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") time_unit(hours) {
  chimera.stage 0 cost <forward = 7, backward = 9>
      bytes <weights = 4, optimizer = 5, stash = 6, boundary = 7>
}

// -----

// The pipeline gives no costs, so they are not in nanoseconds.
// expected-error@below {{expected time_unit(slot) or no time_unit, got ns: the pipeline gives no costs of stages, so they are computed}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") time_unit(ns)

// -----

chimera.model @m gpt2 layers(4) heads(4) width(64) context(16) vocabulary(256)
// expected-error@below {{expected time_unit(flop) or no time_unit, got slot: the pipeline gives no costs of stages, so they are computed}}
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") time_unit(slot)

// -----

// The number of actions is known only after backwards are cut into parts.
// expected-error@below {{expected at most 4194304 actions, got 5000000: 5 for each of 1000 stages and 1000 micro-batches}}
chimera.pipeline @p stages(1000) micro_batches(1000) schedule("chimera", {concatenation = "halving"}) split_backward

// -----

// expected-error@below {{expected at most 4194304 actions, got 4840000: 4 for each of 1100 stages and 1100 micro-batches}}
chimera.pipeline @p stages(1100) micro_batches(1100) schedule("pipedream")

// -----

// expected-error@below {{expected at most 65535 micro-batches whose losses one worker makes, got 65536 on worker 1}}
chimera.pipeline @p stages(2) micro_batches(65536) schedule("1f1b")

// -----

// expected-error@below {{expected at most 65535 micro-batches whose losses one worker makes, got 500000 on worker 0}}
chimera.pipeline @p stages(2) micro_batches(1000000) schedule("gems")

// -----

// The embedding and the head are also layers.
chimera.model @m gpt2 layers(4) heads(4) width(64) context(16) vocabulary(256)
// expected-error@below {{expected at most 6 stages, the model's layers with embedding and head, got 7}}
chimera.pipeline @p of @m stages(7) micro_batches(2) schedule("gpipe")

// -----

chimera.model @m gpt2 layers(16382) heads(1) width(1) context(1) vocabulary(1)
// expected-error@below {{expected at most 67108864 layers times stages, got 163840000}}
chimera.pipeline @p of @m stages(10000) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{kind 1: expected numbers of operations below 2^61}}
chimera.model @m gpt2 layers(2) heads(1) width(1048576) context(1048576) vocabulary(1048576)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(2147483647)

// -----

// The pipeline gives only one of its two stages.
// expected-error@below {{expected 2 stages: run chimera-partition first (--chimera-to-scheduled does), or give all}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// expected-error@below {{expected 2 stages: run chimera-partition first (--chimera-to-scheduled does), or give all}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") {
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  // expected-error@below {{expected an index below 1}}
  chimera.stage 2147483647 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  // expected-note@below {{here first}}
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  // expected-error@below {{expected an index that no other op has, got }}
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// The times of this step add up to more than the simulator allows.
// expected-error@below {{expected times that sum to less than 2^62 over the step}}
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 4611686018427387904, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// The pipeline is already partitioned.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  // expected-error@below {{expected a pipeline with stages only}}
  chimera.direction 0 down on [0] micro_batches [0, 1]
}

// -----

chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  // expected-error@below {{expected a pipeline with stages only}}
  chimera.step { chimera.yield }
}

// -----

// If stages are given, they must have all layers of the model, in order.
chimera.model @m gpt2 layers(2) heads(1) width(8) context(4) vocabulary(9)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 layers(0, 2) cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  // expected-error@below {{expected layers from 2 on, the first layer that no earlier stage has}}
  chimera.stage 1 layers(3, 4) cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

chimera.model @m gpt2 layers(2) heads(1) width(8) context(4) vocabulary(9)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") {
  // expected-error@below {{expected layers from 0 on, the first layer that no earlier stage has}}
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 layers(0, 4) cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

chimera.model @m gpt2 layers(2) heads(1) width(8) context(4) vocabulary(9)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 layers(0, 2) cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  // expected-error@below {{expected layers up to 4, the number of the model's layers with embedding and head, got 3}}
  chimera.stage 1 layers(2, 3) cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// Half of a micro-batch must have a whole number of samples.
chimera.model @gpt gpt2 layers(2) heads(1) width(2) context(2) vocabulary(4)
// expected-error@below {{expected a micro_batch_size that is a multiple of 2, the parts of a backward, got 3}}
chimera.pipeline @p of @gpt stages(4) micro_batches(4)
    schedule("chimera", {concatenation = "halving"}) micro_batch_size(3)

// -----

// Half of a gradient would not have a whole number of bytes.
chimera.pipeline @p stages(2) micro_batches(4)
    schedule("chimera", {concatenation = "halving"}) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 2>
  // expected-error@below {{expected a boundary that is a multiple of 2, the parts of a backward, got 3}}
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 3>
}

// -----

// Half of a backward would take half a unit of time.
// expected-error@below {{parts}}
chimera.pipeline @p stages(2) micro_batches(4)
    schedule("chimera", {concatenation = "halving"}) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 2>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 2>
}

// -----

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(8) tied
// expected-error@below {{expected a schedule with a flush for a tied model, got updates(each_micro_batch): without one, first and last stage update their copies of the embedding at different times}}
chimera.pipeline @p of @m stages(2) micro_batches(4) schedule("pipedream")

// -----

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(8) tied
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 layers(0, 3) cost <forward = 1, backward = 2>
      bytes <weights = 2144, optimizer = 4288, stash = 1, boundary = 64>
  // expected-error@below {{expected 160 bytes of weights for this model, got 192}}
  chimera.stage 1 layers(3, 4) cost <forward = 1, backward = 2>
      bytes <weights = 192, optimizer = 384, stash = 1, boundary = 64>
}

// -----

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(8) tied
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") {
  // expected-error@below {{expected 64 bytes of boundary for this model, got 32}}
  chimera.stage 0 layers(0, 3) cost <forward = 1, backward = 2>
      bytes <weights = 2144, optimizer = 4288, stash = 1, boundary = 32>
  chimera.stage 1 layers(3, 4) cost <forward = 1, backward = 2>
      bytes <weights = 160, optimizer = 320, stash = 1, boundary = 64>
}

// -----

chimera.training @t clip_norm(1.0)
// expected-error@below {{expected a schedule with a flush for clip_norm, got updates(each_step): without one, a stage updates its weights before the gradients of the other stages are known}}
chimera.pipeline @p with @t stages(2) micro_batches(4) schedule("pipedream-2bw")
