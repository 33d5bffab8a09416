// Receive windows of 1 to 4 need 7872, 10048, 9728 and 9216 bytes: a larger
// window may leave smaller gaps between messages of several sizes. Windows 2 to
// 4 are equally fast. Only window 4 fits into the cap, although without a cap a
// smaller window is chosen.
//
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s
// CHECK: chimera.worker 0 {{.*}} arena 5952 stashes

chimera.pipeline @p stages(4) micro_batches(4) schedule("gems")
    link <latency = 9> memory_cap(9500) {
  chimera.stage 0 cost <forward = 3, backward = 1>
      bytes <weights = 512, optimizer = 64, stash = 64, boundary = 1024>
  chimera.stage 1 cost <forward = 2, backward = 2>
      bytes <weights = 64, optimizer = 64, stash = 64, boundary = 320>
  chimera.stage 2 cost <forward = 2, backward = 4>
      bytes <weights = 2048, optimizer = 64, stash = 640, boundary = 192>
  chimera.stage 3 cost <forward = 2, backward = 3>
      bytes <weights = 512, optimizer = 64, stash = 64, boundary = 1024>
}
