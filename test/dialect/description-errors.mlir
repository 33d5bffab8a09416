// RUN: chimera-opt %s --verify-diagnostics --split-input-file -o /dev/null

// There are more stages than a program file can number.
// expected-error@below {{expected stages to be a whole number from 1 to 65535}}
chimera.pipeline @p stages(65536) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected stages to be a whole number}}
chimera.pipeline @p stages(0) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected micro_batches to be a whole number from 1 to 2147483647}}
chimera.pipeline @p stages(1) micro_batches(2147483648) schedule("gpipe")

// -----

// expected-error@below {{expected micro_batch_size to be a whole number}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") micro_batch_size(0)

// -----

// expected-error@below {{expected data_parallel to be a whole number from 1 to 2147483647, got -1}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") data_parallel(-1)

// -----

// The step is too large for a program file.
// expected-error@below {{expected at most 4194304 actions, got 8589672450: 2 for each of 65535 stages and 65535 micro-batches}}
chimera.pipeline @p stages(65535) micro_batches(65535) schedule("gpipe")

// -----

// expected-error@below {{expected times of at least 0, got latency -1}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = -1>

// -----

// expected-error@below {{expected times of at least 0, got per_mib -1}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <per_mib = -1>

// -----

// expected-error@below {{expected times of at least 0, got send -1}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <send = -1>

// -----

// expected-error@below {{expected times of at least 0, got send_per_mib -1}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <send_per_mib = -1>

// -----

// expected-error@below {{expected times of at least 0, got receive -1}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <receive = -1>

// -----

// expected-error@below {{expected times of at least 0, got receive_per_mib -1}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <receive_per_mib = -1>

// -----

// expected-error@below {{expected memory_cap to be a whole number of at least 0}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") memory_cap(-1)

// -----

// expected-error@below {{expected weight_type to be one of f32, f64, bf16, got "f16"}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") weight_type(f16)

// -----

// expected-error@below {{expected activation_type to be equal to weight_type, or bf16 with f32, got f32 with bf16}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") weight_type(bf16) activation_type(f32)

// -----

// expected-error@below {{expected activation_type to be equal to weight_type, or bf16 with f32, got bf16 with f64}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") activation_type(bf16) weight_type(f64)

// -----

// expected-error@below {{expected activation_type to be equal to weight_type, or bf16 with f32, got f64 with f32}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") activation_type(f64)

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
    // expected-error@below {{expected a copy of at least 0 and less than the weights' 4 bytes, got 4}}
    bytes <weights = 4, optimizer = 1, stash = 1, boundary = 1, copy = 4>
}

// -----

// expected-error@below {{expected a whole number of 64 bits, got 99999999999999999999}}
chimera.pipeline @p stages(1) micro_batches(99999999999999999999) schedule("gpipe")

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a chimera.stage, chimera.direction, chimera.order, chimera.step with its chimera.prologue and chimera.epilogue, or chimera.worker in a pipeline}}
  chimera.model @m gpt2 layers(1) heads(1) width(1) context(1) vocabulary(1)
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-note@below {{here is another}}
  chimera.step { chimera.yield }
  // expected-error@below {{expected one step in a pipeline}}
  chimera.step { chimera.yield }
}

// -----

// expected-error@below {{region should have no arguments}}
"chimera.pipeline"() ({
^bb0(%x: i32):
}) {sym_name = "p", stages = 1 : i64, micro_batches = 1 : i64, schedule = "gpipe"} : () -> ()

// -----

// expected-error@below {{expects region #0 to have 0 or 1 blocks}}
"chimera.pipeline"() ({
^bb0:
  chimera.step { chimera.yield }
^bb1:
}) {sym_name = "p", stages = 1 : i64, micro_batches = 1 : i64, schedule = "gpipe"} : () -> ()

// -----

// expected-error@below {{expected layers to be a whole number}}
chimera.model @m gpt2 layers(0) heads(1) width(1) context(1) vocabulary(1)

// -----

// expected-error@below {{expected heads to be a whole number}}
chimera.model @m gpt2 layers(1) heads(0) width(1) context(1) vocabulary(1)

// -----

// expected-error@below {{expected width to be a whole number}}
chimera.model @m gpt2 layers(1) heads(1) width(-1) context(1) vocabulary(1)

// -----

// expected-error@below {{attribute 'context_length' failed to satisfy constraint}}
chimera.model @m gpt2 layers(1) heads(1) width(1) context(0) vocabulary(1)

// -----

// expected-error@below {{expected vocabulary to be a whole number}}
chimera.model @m gpt2 layers(1) heads(1) width(1) context(1) vocabulary(2147483648)

// -----

// expected-error@below {{expects parent op 'chimera.pipeline'}}
chimera.stage 0 cost <forward = 1, backward = 1>
    bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'index' failed to satisfy constraint: a whole number of at least 0}}
  chimera.stage -1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'first' failed to satisfy constraint}}
  chimera.stage 0 layers(-1, 2) cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected layers [first, last) with first < last, got [2, 2)}}
  chimera.stage 0 layers(2, 2) cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// Only the generic form can write one end of the layers without the other.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected both ends of the layers or none}}
  "chimera.stage"() {index = 0 : i32, first = 1 : i32,
      cost = #chimera.cost<forward = 1, backward = 1>,
      bytes = #chimera.bytes<weights = 1, optimizer = 1, stash = 1, boundary = 1>}
      : () -> ()
}

// -----

// expected-error@below {{expects parent op 'chimera.pipeline'}}
chimera.direction 0 down on [0] micro_batches [0]

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected string or keyword containing one of the following enum values for attribute 'way' [down, up]}}
  chimera.direction 0 left on [0] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'index' failed to satisfy constraint}}
  chimera.direction -1 down on [0] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected workers of at least 0, got -1}}
  chimera.direction 0 down on [-1] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(3) schedule("gpipe") {
  // expected-error@below {{expected ascending micro-batches, got 1 at position 2}}
  chimera.direction 0 down on [0] micro_batches [0, 1, 1]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected ascending micro-batches, got -1 at position 0}}
  chimera.direction 0 down on [0] micro_batches [-1]
}

// -----

chimera.pipeline @p stages(1) micro_batches(4) schedule("gpipe") {
  // expected-error@below {{expected forwards that cover 4 micro-batches, got 3}}
  chimera.direction 0 down on [0] micro_batches [0, 1, 2, 3] forwards [2, 1]
}

// -----

chimera.pipeline @p stages(1) micro_batches(4) schedule("gpipe") {
  // expected-error@below {{expected forwards that cover 4 micro-batches, got one of 3 after the first 2}}
  chimera.direction 0 down on [0] micro_batches [0, 1, 2, 3] forwards [2, 3]
}

// -----

chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  // expected-error@below {{expected forwards that cover 2 micro-batches, got one of 0 after the first 0}}
  chimera.direction 0 down on [0] micro_batches [0, 1] forwards [0, 2]
}

// -----

chimera.pipeline @p stages(1) micro_batches(3) schedule("gpipe") {
  // expected-error@below {{expected consecutive micro-batches in a forward, got 0, 2}}
  chimera.direction 0 down on [0] micro_batches [0, 2] forwards [2]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'backward_parts' failed to satisfy constraint: a whole number from 1 to 255}}
  chimera.direction 0 down on [0] micro_batches [0] backward_parts 0
}

// -----

// expected-error@below {{expected at least one stage to recompute, or all}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") recompute([])

// -----

// expected-error@below {{expected recomputed stages below 2, got 2}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") recompute([0, 2])

// -----

// expected-error@below {{expected recomputed stages below 2, got -1}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") recompute([-1])

// -----

// expected-error@below {{expected ascending recomputed stages, got 1 after 1}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") recompute([1, 1])

// -----

// expected-error@below {{expected recomputed stages with recompute_fused, got none}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") attributes {recompute_fused}

// -----

// expected-error@below {{expected learning_rate of at least 0, got -1.0}}
chimera.training @t learning_rate(-1.0)

// -----

// expected-error@below {{expected learning_rate of at least 0, got }}
chimera.training @t learning_rate(0x7FF8000000000000)

// -----

// expected-error@below {{expected weight_decay of at least 0, got }}
chimera.training @t weight_decay(0x7FF0000000000000)

// -----

// expected-error@below {{expected beta1 in [0, 1), got 1.0}}
chimera.training @t beta1(1.0)

// -----

// expected-error@below {{expected beta2 in [0, 1), got -5.0}}
chimera.training @t beta2(-0.5)

// -----

// expected-error@below {{expected epsilon of at least 0, got -1.0}}
chimera.training @t epsilon(-1.0e-8)

// -----

// expected-error@below {{expected buckets of at least 8 bytes, got 7}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") bucket_bytes(7)

// -----

// expected-error@below {{expected '('}}
chimera.model @m exported

// -----

// expected-error@below {{expected string}}
chimera.model @m exported(somewhere)

// -----

// The package of an exported model states the sizes of the model.
// expected-error@below {{expected no layers of an exported model: its package has it}}
"chimera.model"() <{sym_name = "m", architecture = "exported", package = "p", layers = 4 : i64}> : () -> ()

// -----

// expected-error@below {{expected neither dropout nor tied of an exported model: its package has them}}
"chimera.model"() <{sym_name = "m", architecture = "exported", package = "p", tied}> : () -> ()

// -----

// expected-error@below {{expected the folder of an exported model}}
"chimera.model"() <{sym_name = "m", architecture = "exported"}> : () -> ()

// -----

// expected-error@below {{expected no package of a model that is not exported}}
"chimera.model"() <{sym_name = "m", architecture = "gpt2", package = "p"}> : () -> ()

// -----

// expected-error@below {{expected heads of a model}}
"chimera.model"() <{sym_name = "m", architecture = "gpt2", layers = 4 : i64}> : () -> ()

// -----

// expected-error@below {{expected no beta2 with optimizer(sgd), which does not use it}}
chimera.training @t optimizer(sgd) beta2(0.9)

// -----

// expected-error@below {{expected optimizer to be one of adamw, sgd, muon, got "adam"}}
chimera.training @t optimizer(adam)

// -----

// expected-error@below {{expected a momentum with optimizer(muon), such as momentum(0.95), got none}}
chimera.training @t optimizer(muon)

// -----

// expected-error@below {{expected no no_muon with optimizer(sgd), which does not use it}}
chimera.training @t optimizer(sgd) no_muon("*router*")

// -----

// expected-error@below {{expected no momentum with optimizer(adamw), which does not use it}}
chimera.training @t momentum(0.9)

// -----

// expected-error@below {{expected momentum in [0, 1), got 1.0}}
chimera.training @t optimizer(sgd) momentum(1.0)

// -----

// expected-error@below {{expected clip_norm above 0, got 0.0}}
chimera.training @t clip_norm(0.0)

// -----

// expected-error@below {{expected clip_norm above 0, got -1.0}}
chimera.training @t optimizer(sgd) clip_norm(-1)

// -----

// expected-error@below {{expected a momentum with nesterov, got none}}
chimera.training @t optimizer(sgd) nesterov

// -----

// expected-error@below {{expected no nesterov with optimizer(adamw), which does not use it}}
chimera.training @t nesterov

// -----

// The clauses of the learning rate.
// expected-error@below {{expected lr_schedule to be one of constant, linear, cosine, wsd, got "cosin": did you mean cosine?}}
chimera.training @t lr_schedule(cosin)

// -----

// expected-error@below {{expected warmup to be a whole number from 0 to 1099511627776, got -1}}
chimera.training @t warmup(-1)

// -----

// expected-error@below {{expected min_lr of at least 0, got -1.0}}
chimera.training @t lr_schedule(cosine) min_lr(-1.0)

// -----

// expected-error@below {{expected min_lr to be at most the learning_rate of 1.000000e-03, got 1.000000e-02}}
chimera.training @t lr_schedule(cosine) min_lr(1.0e-2)

// -----

// expected-error@below {{expected no min_lr with lr_schedule(constant), which does not use it}}
chimera.training @t min_lr(1.0e-4)

// -----

// expected-error@below {{expected no lr_steps with lr_schedule(constant), which does not use it}}
chimera.training @t lr_steps(10)

// -----

// expected-error@below {{expected no decay_steps with lr_schedule(linear), which does not use it}}
chimera.training @t lr_schedule(linear) decay_steps(10)

// -----

// expected-error@below {{expected decay_steps with lr_schedule(wsd), got none: the number of last steps in which the rate falls}}
chimera.training @t lr_schedule(wsd)

// -----

// expected-error@below {{expected lr_steps of at least 30, the steps of warmup and decay_steps, got 29}}
chimera.training @t lr_schedule(wsd) warmup(10) decay_steps(20) lr_steps(29)

// -----

// expected-error@below {{expected lr_steps of at least 10, the steps of warmup, got 9}}
chimera.training @t lr_schedule(linear) warmup(10) lr_steps(9)

// -----

// expected-error@below {{expected a chimera.training @t, found none}}
chimera.pipeline @p with @t stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{learning_rate is a clause of chimera.training, which a pipeline names with `with @NAME`}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") learning_rate(1e-3)

// -----

// expected-error@below {{activation_type is a clause of chimera.pipeline}}
chimera.training @t activation_type(bf16)

// -----

// expected-error@below {{expected 'micro_batches', got "workers": micro_batches comes before workers}}
chimera.pipeline @p stages(2) workers(2) micro_batches(2) schedule("gpipe")

// -----

chimera.training @t
// expected-error@below {{expected 'stages', got "with": with comes before on}}
chimera.pipeline @p on @m with @t stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected 'stages', got "of": of comes before with}}
chimera.pipeline @p with @t of @m stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected on once}}
chimera.pipeline @p on @m on @m stages(2) micro_batches(2) schedule("gpipe")

// -----

// expected-error@below {{expected on before stages}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") on @m
