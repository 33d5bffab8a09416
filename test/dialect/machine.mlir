// A machine. Numbers have units. Without units they are in bytes, ns or 1/s.
//
// RUN: chimera-opt %s | FileCheck %s
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --mlir-print-op-generic | chimera-opt | FileCheck %s

// CHECK: chimera.machine @daint devices(32) memory(16 GiB) speed("4.5 TFLOP/s") reserved(1 GiB) layer_overhead(300 us) memory_bandwidth("500 GB/s") link <latency = 10 us, per_mib = 116.509 us, receive = 1.5 ms> all_reduce <latency = 20 us>
chimera.machine @daint devices(32) memory(16 GiB) speed("4.5 TFLOP/s")
    all_reduce <latency = 20 us> memory_bandwidth("0.5 TB/s") reserved("1024 MiB")
    layer_overhead(0.3 ms)
    link <receive = 1.5 ms, latency = 10us, bandwidth = "9 GB/s">

// Defaults are not printed. A unit is printed only if it makes a number
// shorter.
// CHECK: chimera.machine @plain devices(1) memory(1000) speed(7){{$}}
chimera.machine @plain devices(1) memory(1000) speed(7)

// CHECK: chimera.machine @odd devices(2) memory(3 MiB) speed("1.001 GFLOP/s") link <latency = 1 ns, per_mib = 1 s>
chimera.machine @odd devices(2) memory(3145728 B) speed("1001e6 FLOP/s") link <latency = 1 ns, per_mib = 1s>

// CHECK: chimera.pipeline @p on @daint stages(2) micro_batches(2) schedule("gpipe") memory_cap(1536 MiB)
chimera.pipeline @p on @daint stages(2) micro_batches(2) schedule("gpipe") memory_cap(1536 MiB)
// CHECK: chimera.pipeline @q stages(2) micro_batches(2) schedule("gpipe") memory_cap(1000) bucket_bytes(25 MiB)
chimera.pipeline @q stages(2) micro_batches(2) schedule("gpipe") memory_cap("1 kB") bucket_bytes(25 MiB)

// With its largest unit, this number would have more digits than 64 bits.
// CHECK: chimera.machine @digits devices(1) memory(1000) speed(10025826000000)
chimera.machine @digits devices(1) memory(1000) speed("10.025826 TFLOP/s")
// CHECK: chimera.machine @measured devices(1) memory(1000) profile("a.json", "b.json")
chimera.machine @measured devices(1) memory(1000) profile("a.json", "b.json")

// CHECK: chimera.machine @gloo devices(1) memory(1000) speed(1) all_reduce <per_mib = 1 ms, send_per_mib = 2 ms> all_reduce_algorithm(doubling)
chimera.machine @gloo devices(1) memory(1000) speed(1) all_reduce_algorithm(doubling) all_reduce <send_per_mib = 2 ms, per_mib = 1 ms>
// CHECK: chimera.machine @blocking devices(1) memory(1000) speed(1) blocking_all_reduce
chimera.machine @blocking devices(1) memory(1000) blocking_all_reduce speed(1)
// CHECK: chimera.machine @nodes devices(16) memory(1000) speed(1) link <latency = 8 us> node_devices(8) node_cores(4) node_link <latency = 3 us> node_all_reduce <latency = 2 us>
chimera.machine @nodes devices(16) memory(1000) speed(1) node_all_reduce <latency = 2 us> node_cores(4) node_link <latency = 3 us> node_devices(8) link <latency = 8 us>
// CHECK: chimera.machine @halves devices(1) memory(1000) speed(1){{$}}
chimera.machine @halves devices(1) memory(1000) speed(1) all_reduce_algorithm(rabenseifner)
