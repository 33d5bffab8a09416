// A machine. Numbers have units. Without units they are in bytes, ns or 1/s.
//
// RUN: chimera-opt %s | FileCheck %s
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --mlir-print-op-generic | chimera-opt | FileCheck %s

// CHECK: chimera.machine @daint devices(32) memory(16 GiB) speed("4.5 TFLOP/s") reserved(1 GiB) layer_overhead(300 us) memory_bandwidth("500 GB/s") link <latency = 10 us, bandwidth = "9 GB/s", receive = 1.5 ms> all_reduce <latency = 20 us>
chimera.machine @daint devices(32) memory(16 GiB) speed("4.5 TFLOP/s")
    all_reduce <latency = 20 us> memory_bandwidth("0.5 TB/s") reserved("1024 MiB")
    layer_overhead(0.3 ms)
    link <receive = 1.5 ms, latency = 10us, bandwidth = "9 GB/s">

// Defaults are not printed.
// CHECK: chimera.machine @plain devices(1) memory(1001) speed(7){{$}}
chimera.machine @plain devices(1) memory(1001) speed(7)

// A number is printed in the unit that needs the fewest digits, a rate as a
// rate, and a time as a time. A number of bytes has no unit if no unit needs
// fewer digits.
// CHECK: chimera.machine @units devices(1) memory(40 GB) speed("312.5 TFLOP/s") reserved(1.5 GiB) layer_overhead(1234.567 us) memory_bandwidth("10 GiB/s") link <per_mib = 83.887 us, send_bandwidth = "12.34 GB/s", receive = 5 ns, receive_bandwidth = "900 GiB/s"> all_reduce <bandwidth = "1.001 GB/s">
chimera.machine @units devices(1) memory(40 GB) speed("312.5 TFLOP/s")
    reserved(1536 MiB) layer_overhead(1234567 ns) memory_bandwidth("10 GiB/s")
    link <per_mib = 83887 ns, send_bandwidth = "12.34 GB/s", receive = 5 ns,
          receive_bandwidth = "900 GiB/s">
    all_reduce <bandwidth = 1001e6>
// CHECK: chimera.machine @odd_bytes devices(1) memory(3304282) speed(7) link <bandwidth = 12345>
chimera.machine @odd_bytes devices(1) memory(3304282) speed(7)
    link <bandwidth = 12345>

// CHECK: chimera.machine @odd devices(2) memory(3 MiB) speed("1.001 GFLOP/s") link <latency = 1 ns, per_mib = 1 s>
chimera.machine @odd devices(2) memory(3145728 B) speed("1001e6 FLOP/s") link <latency = 1 ns, per_mib = 1s>

// CHECK: chimera.pipeline @p on @daint stages(2) micro_batches(2) schedule("gpipe") memory_cap(1.5 GiB)
chimera.pipeline @p on @daint stages(2) micro_batches(2) schedule("gpipe") memory_cap(1536 MiB)
// CHECK: chimera.pipeline @q stages(2) micro_batches(2) schedule("gpipe") memory_cap(1 kB) bucket_bytes(25 MiB)
chimera.pipeline @q stages(2) micro_batches(2) schedule("gpipe") memory_cap("1 kB") bucket_bytes(25 MiB)

// With its largest unit, this number would have more digits than 64 bits.
// CHECK: chimera.machine @digits devices(1) memory(1 kB) speed("10025.826 GFLOP/s")
chimera.machine @digits devices(1) memory(1000) speed("10.025826 TFLOP/s")
// CHECK: chimera.machine @measured devices(1) memory(1 kB) profile("a.json", "b.json")
chimera.machine @measured devices(1) memory(1000) profile("a.json", "b.json")

// CHECK: chimera.machine @gloo devices(1) memory(1 kB) speed(1) all_reduce <per_mib = 1 ms, send_per_mib = 2 ms> all_reduce_algorithm(doubling)
chimera.machine @gloo devices(1) memory(1000) speed(1) all_reduce_algorithm(doubling) all_reduce <send_per_mib = 2 ms, per_mib = 1 ms>
// CHECK: chimera.machine @blocking devices(1) memory(1 kB) speed(1) blocking_all_reduce
chimera.machine @blocking devices(1) memory(1000) blocking_all_reduce speed(1)
// CHECK: chimera.machine @nodes devices(16) memory(1 kB) speed(1) link <latency = 8 us> node_devices(8) node_cores(4) node_link <latency = 3 us> node_all_reduce <latency = 2 us>
chimera.machine @nodes devices(16) memory(1000) speed(1) node_all_reduce <latency = 2 us> node_cores(4) node_link <latency = 3 us> node_devices(8) link <latency = 8 us>
// CHECK: chimera.machine @halves devices(1) memory(1 kB) speed(1){{$}}
chimera.machine @halves devices(1) memory(1000) speed(1) all_reduce_algorithm(rabenseifner)
