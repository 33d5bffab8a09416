// For each cap, the chosen receive window is the largest one that fits and is
// faster than all smaller ones. Without a cap, the window is 7. Each window
// needs one message of 64 bytes more than the previous one. The middle stage
// needs the most.
//
// RUN: sed 's|CAP|5312|' %s | chimera-opt --chimera-to-allocated | FileCheck %s -DARENA=4800
// RUN: sed 's|CAP|5376|' %s | chimera-opt --chimera-to-allocated | FileCheck %s -DARENA=4864
// RUN: sed 's|CAP|5440|' %s | chimera-opt --chimera-to-allocated | FileCheck %s -DARENA=4928
// RUN: sed 's|CAP|5504|' %s | chimera-opt --chimera-to-allocated | FileCheck %s -DARENA=4992
// RUN: sed 's|CAP|5568|' %s | chimera-opt --chimera-to-allocated | FileCheck %s -DARENA=5056
// RUN: sed 's|CAP|5632|' %s | chimera-opt --chimera-to-allocated | FileCheck %s -DARENA=5120
// RUN: sed 's|CAP|5696|' %s | chimera-opt --chimera-to-allocated | FileCheck %s -DARENA=5184
// CHECK: chimera.worker 1 {{.*}} arena [[ARENA]] stashes

chimera.pipeline @p stages(3) micro_batches(8) schedule("gpipe")
    link <latency = 7> memory_cap(CAP) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 64, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 2048, optimizer = 64, stash = 64, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 64, stash = 64, boundary = 64>
}
