// A small GPT-2 on four workers under Chimera's bidirectional schedule: two
// copies of the model, one laid down the workers and one up.
chimera.model @small gpt2 layers(4) heads(4) width(128) context(128)
    vocabulary(256)
chimera.training @adamw learning_rate(2.0e-3)
chimera.pipeline @train of @small with @adamw stages(4) micro_batches(4)
    schedule("chimera") micro_batch_size(8)
