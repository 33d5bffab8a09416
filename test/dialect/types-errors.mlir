// Every type and attribute with an invalid number.
//
// RUN: chimera-opt %s --verify-diagnostics --split-input-file -o /dev/null --allow-unregistered-dialect

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.tokens<0>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got -1}}
"t"() {t = !chimera.labels<-1>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.activation<0>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.gradient<0>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.stash<0>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.weight_stash<0>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.loss<0>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.weights<0>} : () -> ()

// -----

// expected-error@below {{expected a positive number of bytes, got 0}}
"t"() {t = !chimera.weight_gradient<0>} : () -> ()

// -----

// SGD has no optimizer state.
"t"() {t = !chimera.optimizer_state<0>} : () -> ()

// -----

// expected-error@below {{expected no negative number of bytes, got -1}}
"t"() {t = !chimera.optimizer_state<-1>} : () -> ()

// -----

// expected-error@below {{integer value too large}}
// expected-error@below {{failed to parse Chimera_Weights parameter 'bytes'}}
"t"() {t = !chimera.weights<99999999999999999999>} : () -> ()

// -----

// expected-error@below {{expected a type with a size to arrive, got 'i32'}}
"t"() {t = !chimera.arriving<i32>} : () -> ()

// -----

// expected-error@below {{expected a type with a size to arrive, got '!chimera.sending'}}
"t"() {t = !chimera.arriving<!chimera.sending>} : () -> ()

// -----

// expected-error@below {{expected positive costs, got forward 0 and backward 1}}
"t"() {t = #chimera.cost<forward = 0, backward = 1>} : () -> ()

// -----

// expected-error@below {{expected positive costs, got forward 1 and backward -2}}
"t"() {t = #chimera.cost<forward = 1, backward = -2>} : () -> ()

// -----

// expected-error@below {{expected costs of at least 0, got input_gradient -1 and weight_gradient 1}}
"t"() {t = #chimera.cost<forward = 1, backward = 1, input_gradient = -1, weight_gradient = 1>} : () -> ()

// -----

// expected-error@below {{expected costs of at least 0, got input_gradient 0 and weight_gradient -1}}
"t"() {t = #chimera.cost<forward = 1, backward = 1, weight_gradient = -1>} : () -> ()

// -----

// expected-error@below {{expected a cost of at least 0, got recompute -1}}
"t"() {t = #chimera.cost<forward = 1, backward = 1, recompute = -1>} : () -> ()

// -----

// expected-error@below {{expected a cost of at least 0, got update -1}}
"t"() {t = #chimera.cost<forward = 1, backward = 1, update = -1>} : () -> ()

// -----

// expected-error@below {{expected positive sizes, and an optimizer state of at least 0, got weights 0, optimizer 1, stash 1 and boundary 1}}
"t"() {t = #chimera.bytes<weights = 0, optimizer = 1, stash = 1, boundary = 1>} : () -> ()

// -----

// expected-error@below {{expected positive sizes, and an optimizer state of at least 0, got weights 1, optimizer -1, stash 1 and boundary 1}}
"t"() {t = #chimera.bytes<weights = 1, optimizer = -1, stash = 1, boundary = 1>} : () -> ()

// -----

// expected-error@below {{expected positive sizes, and an optimizer state of at least 0, got weights 1, optimizer 1, stash 0 and boundary 1}}
"t"() {t = #chimera.bytes<weights = 1, optimizer = 1, stash = 0, boundary = 1>} : () -> ()

// -----

// expected-error@below {{expected positive sizes, and an optimizer state of at least 0, got weights 1, optimizer 1, stash 1 and boundary -1}}
"t"() {t = #chimera.bytes<weights = 1, optimizer = 1, stash = 1, boundary = -1>} : () -> ()

// -----

// expected-error@below {{expected a size of at least 0, got weight_stash -1}}
"t"() {t = #chimera.bytes<weights = 1, optimizer = 1, stash = 1, boundary = 1, weight_stash = -1>} : () -> ()
