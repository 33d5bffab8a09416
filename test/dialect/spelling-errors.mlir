// A wrong word is an error. The message lists the right words.
//
// RUN: chimera-opt %s --verify-diagnostics --split-input-file -o /dev/null

// The name of a clause has a typing error.
// expected-error@below {{expected one of the clauses optimizer, learning_rate, lr_schedule, warmup, min_lr, decay_steps, lr_steps, beta1, beta2, epsilon, momentum, nesterov, clip_norm, weight_decay, no_decay, no_muon, seed, got "lerning_rate": did you mean learning_rate?}}
chimera.training @t lerning_rate(1e-3)

// -----

// expected-error@below {{expected one of the clauses workers, updates, micro_batch_size, data_parallel, split_backward, recompute, time_unit, link, memory_cap, all_reduce, receive_window, bucket_bytes, weight_type, activation_type, got "wrokers": did you mean workers?}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") wrokers(1)

// -----

// Users may look for some clauses that do not exist yet. The error says so, in
// any op.
// expected-error@below {{clip is no clause: clip_norm(NUMBER) clips by the norm of all gradients}}
chimera.training @t clip(1.0)

// -----

// expected-error@below {{max_grad_norm is no clause: clip_norm(NUMBER) clips by the norm of all gradients}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") max_grad_norm(1.0)

// -----

// expected-error@below {{resume is no clause: chimera-run --resume FOLDER continues from a checkpoint}}
chimera.training @t resume("run.safetensors")

// -----

// expected-error@below {{tensor_parallel is not supported yet: a stage is on one worker}}
chimera.machine @m devices(1) memory(1 GiB) tensor_parallel(2)

// -----

// The word is not similar to any clause, so none is suggested.
// expected-error@below {{weight_type, activation_type, got "zzz"}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") zzz {
}

// -----

// expected-error@below {{expected 'stages', got "stage"}}
chimera.pipeline @p stage(1) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected workers once}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") workers(1) workers(1)

// -----

// expected-error@below {{expected one of the clauses dropout, tied, got "droput": did you mean dropout?}}
chimera.model @m gpt2 layers(1) heads(1) width(1) context(1) vocabulary(1) droput(0.5)

// -----

// expected-error@below {{expected all_reduce to be one of lazy, eager, eager_opt, got "eagre": did you mean eager?}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") all_reduce(eagre)

// -----

// expected-error@below {{expected one of the fields latency, per_mib, send, send_per_mib, receive, receive_per_mib, bandwidth, send_bandwidth, receive_bandwidth, got "latncy": did you mean latency?}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latncy = 1>

// -----

// expected-error@below {{expected latency once}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = 1, latency = 2>

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a field backward}}
  chimera.stage 0 cost <forward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// expected-error@below {{expected a whole number of 64 bits, got 0.5}}
chimera.pipeline @p stages(1) micro_batches(0.5) schedule("gpipe")

// -----

// expected-error@below {{expected a whole number of 64 bits, got 15e-1}}
chimera.pipeline @p stages(1) micro_batches(15e-1) schedule("gpipe")

// -----

// expected-error@below {{expected a whole number of 64 bits, got 1e19}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") receive_window(1e19)

// -----

// expected-error@below {{expected a whole number of 64 bits, got 40GB}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") receive_window(40GB)

// -----

// expected-error@below {{expected a number below 1.8e308, got 1e999}}
chimera.training @t learning_rate(1e999)

// -----

// expected-error@below {{expected a number such as 1e-3 or 0.5}}
chimera.training @t learning_rate(fast)

// -----

// The errors of MLIR's lexer come before ours.
// expected-error@below {{expected three consecutive dots for an ellipsis}}
// expected-error@below {{expected a digit before the point: write 0.5}}
chimera.training @t learning_rate(.5)

// -----

// expected-error@below {{expected quotes around fine-tuned-doubling}}
chimera.pipeline @p stages(1) micro_batches(1) schedule(chimera, {concatenation = fine-tuned-doubling})

// -----

// expected-error@below {{expected pipelines once}}
chimera.pipeline @p stages(1) micro_batches(1) schedule(chimera, {pipelines = 2, pipelines = 4})

// -----

// expected-error@below {{expected a word}}
chimera.pipeline @p stages(1) micro_batches(1) schedule([])

// -----

// A missing model is reported at the op that refers to it.
// expected-error@below {{expected a chimera.model @small, found none}}
chimera.pipeline @p of @small stages(1) micro_batches(1) schedule("gpipe")

// -----

// A whole number cannot begin with a point either.
// expected-error@below {{expected three consecutive dots for an ellipsis}}
// expected-error@below {{expected a whole number of 64 bits, got .5}}
chimera.pipeline @p stages(.5) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected three consecutive dots for an ellipsis}}
// expected-error@below {{expected a digit before the point: write 0.5}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = .5>

// -----

// expected-error@below {{expected a number such as 1e-3 or 0.5, got +5}}
chimera.training @t learning_rate(+5)

// -----

// expected-error@below {{expected a number such as 1e-3 or 0.5, got nan}}
chimera.training @t learning_rate(nan)

// -----

// expected-error@below {{expected 0 or a number above 4.9e-324, got 1e-400}}
chimera.training @t learning_rate(1e-400)

// -----

// expected-error@below {{expected all_reduce to be one of lazy, eager, eager_opt, got "eager-opt": did you mean eager_opt?}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") all_reduce(eager-opt)

// -----

// expected-error@below {{expected stages once}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") stages(2)

// -----

// expected-error@below {{expected a list of stages such as [0, 2], or all, got "none"}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(none)

// -----

// expected-error@below {{expected a whole number of 64 bits, got 0.5}}
chimera.pipeline @p stages(4) micro_batches(4) schedule(chimera, {pipelines = 0.5})

// -----

// expected-error@below {{expected pipelines of type i64, got 'i32'}}
chimera.pipeline @p stages(4) micro_batches(4) schedule(chimera, {pipelines = 4 : i32})

// -----

// Clauses are not separated by commas, and have no "=".
// expected-error@below {{expected a blank between clauses, got a comma}}
chimera.pipeline @p stages(3), micro_batches(4) schedule("1f1b")

// -----

// expected-error@below {{expected a blank between clauses, got a comma}}
chimera.pipeline @p stages(3) micro_batches(4) schedule("1f1b"), workers(3)

// -----

// expected-error@below {{expected a blank between clauses, got a comma}}
chimera.model @m gpt2, layers(1) heads(1) width(1) context(1) vocabulary(1)

// -----

// expected-error@below {{expected stages(VALUE), got stages=}}
chimera.pipeline @p stages=3 micro_batches(4) schedule("1f1b")

// -----

// expected-error@below {{expected schedule(VALUE), got schedule=}}
chimera.pipeline @p stages(3) micro_batches(4) schedule="1f1b"

// -----

// expected-error@below {{expected link <FIELD = VALUE>, got link=}}
chimera.pipeline @p stages(3) micro_batches(4) schedule("1f1b") link=<latency = 1>

// -----

// expected-error@below {{expected split_backward, got split_backward=}}
chimera.pipeline @p stages(3) micro_batches(4) schedule("1f1b") split_backward=true
