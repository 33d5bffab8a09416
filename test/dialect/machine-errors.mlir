// Errors in machines, and in numbers with units.
//
// RUN: chimera-opt %s --split-input-file --verify-diagnostics

// expected-error@below {{expected 'memory', got "speed": memory comes before speed}}
chimera.machine @m devices(1) speed(1)

// -----

// expected-error@below {{expected bytes, such as 4096 or 16 GiB, got 16 Gib (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)}}
chimera.machine @m devices(1) memory(16 Gib) speed(1)

// -----

// The memory is not a whole number of bytes.
// expected-error@below {{expected bytes, such as 4096 or 16 GiB, got 0.5 (units: }}
chimera.machine @m devices(1) memory(0.5) speed(1)

// -----

// The number of bytes needs more than 64 bits.
// expected-error@below {{expected bytes, such as 4096 or 16 GiB, got 1e10 GiB (units: }}
chimera.machine @m devices(1) memory(1e10 GiB) speed(1)

// -----

// expected-error@below {{expected speed to be}}
chimera.machine @m devices(1) memory(1) speed("0 TFLOP/s")

// -----

// expected-error@below {{expected operations a second, such as "4.5 TFLOP/s", got 3 GB/s}}
chimera.machine @m devices(1) memory(1) speed("3 GB/s")

// -----

// expected-error@below {{expected bytes a second, such as "9 GB/s", in quotes as the unit has a slash}}
chimera.machine @m devices(1) memory(1) speed(1) link <bandwidth = 9 GB/s>

// -----

// expected-error@below {{expected reserved to be less than the memory of 2 GiB, got 2 GiB}}
chimera.machine @m devices(1) memory(2 GiB) speed(1) reserved(2 GiB)

// -----

// expected-error@below {{expected either bandwidth (above 0) or per_mib, got both}}
chimera.machine @m devices(1) memory(1) speed(1) link <per_mib = 1 us, bandwidth = "1 GB/s">

// -----

// expected-error@below {{expected either receive_bandwidth (above 0) or receive_per_mib, got both}}
chimera.machine @m devices(1) memory(1) speed(1) link <receive_per_mib = 1 us, receive_bandwidth = "1 GB/s">

// -----

// expected-error@below {{expected either send_bandwidth (above 0) or send_per_mib}}
chimera.machine @m devices(1) memory(1) speed(1) link <send_bandwidth = "0 GB/s">

// -----

// expected-error@below {{expected times of at least 0, got latency -1000}}
chimera.machine @m devices(1) memory(1) speed(1) link <latency = -1 us>

// -----

// expected-error@below {{expected a time, such as 40 us, got 4 minutes (units: ns, us, ms, s)}}
chimera.machine @m devices(1) memory(1) speed(1) link <latency = 4 minutes>

// -----

// expected-error@below {{expected one of the fields latency, per_mib, send, send_per_mib, receive, receive_per_mib, bandwidth, send_bandwidth, receive_bandwidth, got "latencies": did you mean latency?}}
chimera.machine @m devices(1) memory(1) speed(1) link <latencies = 1>

// -----

// expected-error@below {{expected node_devices of at most the 4 devices, got 8}}
chimera.machine @m devices(4) memory(1) speed(1) node_devices(8)

// -----

// expected-error@below {{expected node_devices to be}}
chimera.machine @m devices(4) memory(1) speed(1) node_devices(0)

// -----

// expected-error@below {{expected node_devices, the number of devices in a node, with node_link}}
chimera.machine @m devices(4) memory(1) speed(1) node_link <latency = 1 us>

// -----

// expected-error@below {{expected node_devices, the number of devices in a node, with node_all_reduce}}
chimera.machine @m devices(4) memory(1) speed(1) node_all_reduce <latency = 1 us>

// -----

// expected-error@below {{expected node_devices, the number of devices that share the cores of a node, with node_cores}}
chimera.machine @m devices(4) memory(1) speed(1) node_cores(2)

// -----

// expected-error@below {{expected a chimera.machine @daint, found none}}
chimera.pipeline @p on @daint stages(2) micro_batches(2) schedule("gpipe")
