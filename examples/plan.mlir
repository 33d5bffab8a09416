// How does a GPT-2 of 64 layers train fastest on four nodes of eight devices, 512
// samples a step?
//
//   chimera-plan examples/plan.mlir --batch 512 --svg plan.svg -o plan.mlir
//   chimera-compile plan.mlir -o plan.chimera
chimera.machine @cluster devices(32) memory(40 GiB) speed("50 TFLOP/s")
    reserved(4 GiB) layer_overhead(50 us) memory_bandwidth("1.2 TB/s")
    link <latency = 10 us, bandwidth = "10 GB/s">
    all_reduce <latency = 20 us, bandwidth = "8 GB/s">
    node_devices(8) node_link <latency = 5 us, bandwidth = "200 GB/s">
chimera.model @gpt2 gpt2 layers(64) heads(20) width(1280) context(1024)
    vocabulary(50257)
