// Which of these trains a GPT-2 of 350M parameters fastest on eight devices, 64
// samples a step?
//
//   chimera-show examples/compare.mlir --compare
chimera.machine @cluster devices(8) memory(40 GiB) speed("50 TFLOP/s")
    reserved(4 GiB) memory_bandwidth("1.2 TB/s")
    link <latency = 10 us, bandwidth = "10 GB/s">
    all_reduce <latency = 20 us, bandwidth = "8 GB/s">
chimera.model @gpt2 gpt2 layers(24) heads(16) width(1024) context(1024)
    vocabulary(50257) tied

chimera.pipeline @both_ways of @gpt2 on @cluster stages(4) micro_batches(8)
    schedule("chimera", {concatenation = "best"}) data_parallel(2)
    micro_batch_size(4) all_reduce(eager_opt)
chimera.pipeline @one_way of @gpt2 on @cluster stages(4) micro_batches(8)
    schedule("1f1b") data_parallel(2) micro_batch_size(4)
chimera.pipeline @deeper of @gpt2 on @cluster stages(8) micro_batches(16)
    schedule("1f1b") micro_batch_size(4)
chimera.pipeline @looped of @gpt2 on @cluster stages(16) micro_batches(16)
    schedule("interleaved-1f1b") workers(8) micro_batch_size(4)
chimera.pipeline @split of @gpt2 on @cluster stages(16) micro_batches(16)
    schedule("zb-v") workers(8) micro_batch_size(4)
