// If the module comes from standard input, paths start at the current folder.
// RUN: cd %S && chimera-opt --chimera-partition --verify-diagnostics --split-input-file -o /dev/null < %s

// expected-error@below {{Inputs/nothing/model.json: cannot open: No such file or directory}}
chimera.model @m exported("Inputs/nothing")
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(4)

// -----

// expected-error@below {{Inputs/exported/model.json: expected the folder of a package, got a file: name its folder, Inputs/exported}}
chimera.model @m exported("Inputs/exported/model.json")
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(4)

// -----

chimera.model @m exported("Inputs/exported")
// expected-error@below {{expected 1 to 1048576 samples in a micro-batch, got 1048577}}
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(1048577)

// -----

chimera.model @m exported("Inputs/exported")
// expected-error@below {{expected the type that the model was exported with, float32, got float64 for weights and float64 for activations}}
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(4)
    weight_type(f64)

// -----

chimera.model @m exported("Inputs/exported")
// expected-error@below {{bfloat16 is not supported yet for exported models: expected float32, the type that the model was exported with, got bfloat16 for activations}}
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(4)
    activation_type(bf16)

// -----

chimera.model @m exported("Inputs/exported")
// expected-error@below {{expected at most 4 stages, the model's layers with embedding and head, got 5}}
chimera.pipeline @p of @m stages(5) micro_batches(2) schedule("gpipe") micro_batch_size(4)
