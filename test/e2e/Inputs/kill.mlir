// A model that trains in almost no time, for kill.py.
chimera.model @small gpt2 layers(4) heads(2) width(64) context(32)
    vocabulary(256)
chimera.training @training learning_rate(1.0e-3)
chimera.pipeline @train of @small with @training stages(4) micro_batches(4)
    schedule("chimera") micro_batch_size(2)
