// If the module comes from standard input, paths start at the current folder.
// RUN: cd %S/.. && chimera-opt --chimera-partition --verify-diagnostics --split-input-file -o /dev/null < %s

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

// expected-error@below {{Inputs/exported/model.json: expected a model that was exported for float64, got one for float32: export it with --compute float64}}
chimera.model @m exported("Inputs/exported")
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(4)
    weight_type(f64)

// -----

// expected-error@below {{Inputs/exported/model.json: expected a model that was exported for bfloat16, got one for float32: export it with --compute bfloat16}}
chimera.model @m exported("Inputs/exported")
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(4)
    activation_type(bf16)

// -----

chimera.model @m exported("Inputs/exported")
// expected-error@below {{expected at most 4 stages, the model's layers with embedding and head, got 5}}
chimera.pipeline @p of @m stages(5) micro_batches(2) schedule("gpipe") micro_batch_size(4)
