// A placement by hand. Stage 1 and the untied part of stage 0 have the same
// workers, so stage 0 starts after stage 1. The tied matrix has other workers,
// so it starts before both. The split of the gradient comes first.
//
// RUN: chimera-opt %s --chimera-verify-scheduled --chimera-communicate --chimera-synchronise --chimera-verify-synchronised --chimera-project --chimera-allocate --chimera-verify-program -o %t
// RUN: chimera-opt %s --chimera-verify-scheduled --chimera-communicate --chimera-synchronise | FileCheck %s
// CHECK: %[[S:.*]]:2 = chimera.split pipeline 0 stage 0 on 0
// CHECK-NEXT: chimera.all_reduce_start stage 0 tied 3 {{.*}} on 0(%[[S]]#0)
// CHECK: chimera.all_reduce_start stage 1 {{.*}} on 0(
// CHECK-NEXT: chimera.all_reduce_start stage 0 width 1 workers [0, 1] {{.*}} on 0(%[[S]]#1)
module {
  chimera.model @m gpt2 layers(2) heads(1) width(2) context(2) vocabulary(5) tied
  chimera.pipeline @p of @m stages(4) micro_batches(4) schedule("gems") all_reduce(eager) {
    chimera.stage 0 layers(0, 1) cost <forward = 4, backward = 8> bytes <weights = 56, optimizer = 112, stash = 16, boundary = 16>
    chimera.stage 1 layers(1, 2) cost <forward = 224, backward = 448> bytes <weights = 296, optimizer = 592, stash = 296, boundary = 16>
    chimera.stage 2 layers(2, 3) cost <forward = 224, backward = 448> bytes <weights = 296, optimizer = 592, stash = 296, boundary = 16>
    chimera.stage 3 layers(3, 4) cost <forward = 40, backward = 80> bytes <weights = 56, optimizer = 112, stash = 108, boundary = 16>
    chimera.direction 0 down on [0, 1, 2, 3] micro_batches [0, 2]
    chimera.direction 1 up on [1, 0, 3, 2] micro_batches [1, 3]
    chimera.step {
    ^bb0(%arg0: !chimera.weights<56>, %arg1: !chimera.optimizer_state<112>, %arg2: !chimera.weights<296>, %arg3: !chimera.optimizer_state<592>, %arg4: !chimera.weights<296>, %arg5: !chimera.optimizer_state<592>, %arg6: !chimera.weights<56>, %arg7: !chimera.optimizer_state<112>, %arg8: !chimera.weights<56>, %arg9: !chimera.optimizer_state<112>, %arg10: !chimera.weights<296>, %arg11: !chimera.optimizer_state<592>, %arg12: !chimera.weights<296>, %arg13: !chimera.optimizer_state<592>, %arg14: !chimera.weights<56>, %arg15: !chimera.optimizer_state<112>):
      %0 = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<16>
      %output, %stash = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0(%0, %arg0) : (!chimera.tokens<16>, !chimera.weights<56>) -> (!chimera.activation<16>, !chimera.stash<16>)
      %output_0, %stash_1 = chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%output, %arg2) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %output_2, %stash_3 = chimera.forward pipeline 0 stage 2 micro_batch 0 on 2(%output_0, %arg4) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %1 = chimera.load pipeline 0 stage 3 micro_batch 0 on 3 : !chimera.labels<16>
      %output_4, %stash_5 = chimera.forward pipeline 0 stage 3 micro_batch 0 on 3(%output_2, %arg6, %1) : (!chimera.activation<16>, !chimera.weights<56>, !chimera.labels<16>) -> (!chimera.loss<8>, !chimera.stash<108>)
      %new_sum, %input_gradient = chimera.backward pipeline 0 stage 3 micro_batch 0 on 3(%stash_5, %output_4, %arg6) : (!chimera.stash<108>, !chimera.loss<8>, !chimera.weights<56>) -> (!chimera.weight_gradient<56>, !chimera.gradient<16>)
      %new_sum_6, %input_gradient_7 = chimera.backward pipeline 0 stage 2 micro_batch 0 on 2(%stash_3, %input_gradient, %arg4) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %4 = chimera.load pipeline 1 stage 0 micro_batch 1 on 1 : !chimera.tokens<16>
      %output_8, %stash_9 = chimera.forward pipeline 1 stage 0 micro_batch 1 on 1(%4, %arg8) : (!chimera.tokens<16>, !chimera.weights<56>) -> (!chimera.activation<16>, !chimera.stash<16>)
      %new_sum_10, %input_gradient_11 = chimera.backward pipeline 0 stage 1 micro_batch 0 on 1(%stash_1, %input_gradient_7, %arg2) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %output_12, %stash_13 = chimera.forward pipeline 1 stage 1 micro_batch 1 on 0(%output_8, %arg10) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %new_sum_14 = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0(%stash, %input_gradient_11, %arg0) : (!chimera.stash<16>, !chimera.gradient<16>, !chimera.weights<56>) -> !chimera.weight_gradient<56>
      %output_15, %stash_16 = chimera.forward pipeline 1 stage 2 micro_batch 1 on 3(%output_12, %arg12) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %7 = chimera.load pipeline 1 stage 3 micro_batch 1 on 2 : !chimera.labels<16>
      %output_17, %stash_18 = chimera.forward pipeline 1 stage 3 micro_batch 1 on 2(%output_15, %arg14, %7) : (!chimera.activation<16>, !chimera.weights<56>, !chimera.labels<16>) -> (!chimera.loss<8>, !chimera.stash<108>)
      %new_sum_19, %input_gradient_20 = chimera.backward pipeline 1 stage 3 micro_batch 1 on 2(%stash_18, %output_17, %arg14) : (!chimera.stash<108>, !chimera.loss<8>, !chimera.weights<56>) -> (!chimera.weight_gradient<56>, !chimera.gradient<16>)
      %9 = chimera.load pipeline 0 stage 0 micro_batch 2 on 0 : !chimera.tokens<16>
      %output_21, %stash_22 = chimera.forward pipeline 0 stage 0 micro_batch 2 on 0(%9, %arg0) : (!chimera.tokens<16>, !chimera.weights<56>) -> (!chimera.activation<16>, !chimera.stash<16>)
      %new_sum_23, %input_gradient_24 = chimera.backward pipeline 1 stage 2 micro_batch 1 on 3(%stash_16, %input_gradient_20, %arg12) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %output_25, %stash_26 = chimera.forward pipeline 0 stage 1 micro_batch 2 on 1(%output_21, %arg2) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %new_sum_27, %input_gradient_28 = chimera.backward pipeline 1 stage 1 micro_batch 1 on 0(%stash_13, %input_gradient_24, %arg10) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %output_29, %stash_30 = chimera.forward pipeline 0 stage 2 micro_batch 2 on 2(%output_25, %arg4) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %new_sum_31 = chimera.backward pipeline 1 stage 0 micro_batch 1 on 1(%stash_9, %input_gradient_28, %arg8) : (!chimera.stash<16>, !chimera.gradient<16>, !chimera.weights<56>) -> !chimera.weight_gradient<56>
      %13 = chimera.load pipeline 0 stage 3 micro_batch 2 on 3 : !chimera.labels<16>
      %output_32, %stash_33 = chimera.forward pipeline 0 stage 3 micro_batch 2 on 3(%output_29, %arg6, %13) : (!chimera.activation<16>, !chimera.weights<56>, !chimera.labels<16>) -> (!chimera.loss<8>, !chimera.stash<108>)
      %new_sum_34, %input_gradient_35 = chimera.backward pipeline 0 stage 3 micro_batch 2 on 3(%stash_33, %output_32, %arg6, %new_sum) : (!chimera.stash<108>, !chimera.loss<8>, !chimera.weights<56>, !chimera.weight_gradient<56>) -> (!chimera.weight_gradient<56>, !chimera.gradient<16>)
      %new_sum_36, %input_gradient_37 = chimera.backward pipeline 0 stage 2 micro_batch 2 on 2(%stash_30, %input_gradient_35, %arg4, %new_sum_6) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>, !chimera.weight_gradient<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %14 = chimera.load pipeline 1 stage 0 micro_batch 3 on 1 : !chimera.tokens<16>
      %output_38, %stash_39 = chimera.forward pipeline 1 stage 0 micro_batch 3 on 1(%14, %arg8) : (!chimera.tokens<16>, !chimera.weights<56>) -> (!chimera.activation<16>, !chimera.stash<16>)
      %new_sum_40, %input_gradient_41 = chimera.backward pipeline 0 stage 1 micro_batch 2 on 1(%stash_26, %input_gradient_37, %arg2, %new_sum_10) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>, !chimera.weight_gradient<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %output_42, %stash_43 = chimera.forward pipeline 1 stage 1 micro_batch 3 on 0(%output_38, %arg10) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %new_sum_44 = chimera.backward pipeline 0 stage 0 micro_batch 2 on 0(%stash_22, %input_gradient_41, %arg0, %new_sum_14) : (!chimera.stash<16>, !chimera.gradient<16>, !chimera.weights<56>, !chimera.weight_gradient<56>) -> !chimera.weight_gradient<56>
      %output_45, %stash_46 = chimera.forward pipeline 1 stage 2 micro_batch 3 on 3(%output_42, %arg12) : (!chimera.activation<16>, !chimera.weights<296>) -> (!chimera.activation<16>, !chimera.stash<296>)
      %15 = chimera.load pipeline 1 stage 3 micro_batch 3 on 2 : !chimera.labels<16>
      %output_47, %stash_48 = chimera.forward pipeline 1 stage 3 micro_batch 3 on 2(%output_45, %arg14, %15) : (!chimera.activation<16>, !chimera.weights<56>, !chimera.labels<16>) -> (!chimera.loss<8>, !chimera.stash<108>)
      %new_sum_49, %input_gradient_50 = chimera.backward pipeline 1 stage 3 micro_batch 3 on 2(%stash_48, %output_47, %arg14, %new_sum_19) : (!chimera.stash<108>, !chimera.loss<8>, !chimera.weights<56>, !chimera.weight_gradient<56>) -> (!chimera.weight_gradient<56>, !chimera.gradient<16>)
      %new_sum_51, %input_gradient_52 = chimera.backward pipeline 1 stage 2 micro_batch 3 on 3(%stash_46, %input_gradient_50, %arg12, %new_sum_23) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>, !chimera.weight_gradient<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %new_sum_53, %input_gradient_54 = chimera.backward pipeline 1 stage 1 micro_batch 3 on 0(%stash_43, %input_gradient_52, %arg10, %new_sum_27) : (!chimera.stash<296>, !chimera.gradient<16>, !chimera.weights<296>, !chimera.weight_gradient<296>) -> (!chimera.weight_gradient<296>, !chimera.gradient<16>)
      %new_sum_55 = chimera.backward pipeline 1 stage 0 micro_batch 3 on 1(%stash_39, %input_gradient_54, %arg8, %new_sum_31) : (!chimera.stash<16>, !chimera.gradient<16>, !chimera.weights<56>, !chimera.weight_gradient<56>) -> !chimera.weight_gradient<56>
      %16:2 = chimera.split pipeline 0 stage 0 on 0(%new_sum_44) : (!chimera.weight_gradient<56>) -> (!chimera.weight_gradient<40>, !chimera.weight_gradient<16>)
      %17:2 = chimera.split pipeline 0 stage 3 on 3(%new_sum_34) : (!chimera.weight_gradient<56>) -> (!chimera.weight_gradient<16>, !chimera.weight_gradient<40>)
      %18:2 = chimera.split pipeline 1 stage 0 on 1(%new_sum_55) : (!chimera.weight_gradient<56>) -> (!chimera.weight_gradient<40>, !chimera.weight_gradient<16>)
      %19:2 = chimera.split pipeline 1 stage 3 on 2(%new_sum_49) : (!chimera.weight_gradient<56>) -> (!chimera.weight_gradient<16>, !chimera.weight_gradient<40>)
      %20:2 = chimera.all_reduce stage 3 width 1(%17#0, %19#0) : (!chimera.weight_gradient<16>, !chimera.weight_gradient<16>) -> (!chimera.weight_gradient<16>, !chimera.weight_gradient<16>)
      %21:2 = chimera.all_reduce stage 2 width 1(%new_sum_36, %new_sum_51) : (!chimera.weight_gradient<296>, !chimera.weight_gradient<296>) -> (!chimera.weight_gradient<296>, !chimera.weight_gradient<296>)
      %22:2 = chimera.all_reduce stage 1 width 1(%new_sum_40, %new_sum_53) : (!chimera.weight_gradient<296>, !chimera.weight_gradient<296>) -> (!chimera.weight_gradient<296>, !chimera.weight_gradient<296>)
      %23:2 = chimera.all_reduce stage 0 width 1(%16#1, %18#1) : (!chimera.weight_gradient<16>, !chimera.weight_gradient<16>) -> (!chimera.weight_gradient<16>, !chimera.weight_gradient<16>)
      %24:4 = chimera.all_reduce stage 0 tied 3 width 1(%16#0, %17#1, %18#0, %19#1) : (!chimera.weight_gradient<40>, !chimera.weight_gradient<40>, !chimera.weight_gradient<40>, !chimera.weight_gradient<40>) -> (!chimera.weight_gradient<40>, !chimera.weight_gradient<40>, !chimera.weight_gradient<40>, !chimera.weight_gradient<40>)
      %25 = chimera.all_reduce stage 3 width 1(%output_4, %output_17, %output_32, %output_47) : (!chimera.loss<8>, !chimera.loss<8>, !chimera.loss<8>, !chimera.loss<8>) -> !chimera.loss<8>
      %new_weights, %new_state = chimera.optimizer_step pipeline 0 stage 2 on 2(%arg4, %arg5, %21#0) : <296>, <592>, <296>
      %new_weights_56, %new_state_57 = chimera.optimizer_step pipeline 1 stage 2 on 3(%arg12, %arg13, %21#1) : <296>, <592>, <296>
      %new_weights_58, %new_state_59 = chimera.optimizer_step pipeline 0 stage 1 on 1(%arg2, %arg3, %22#0) : <296>, <592>, <296>
      %new_weights_60, %new_state_61 = chimera.optimizer_step pipeline 1 stage 1 on 0(%arg10, %arg11, %22#1) : <296>, <592>, <296>
      %26 = chimera.join pipeline 0 stage 3 on 3(%20#0, %24#1) : (!chimera.weight_gradient<16>, !chimera.weight_gradient<40>) -> !chimera.weight_gradient<56>
      %new_weights_62, %new_state_63 = chimera.optimizer_step pipeline 0 stage 3 on 3(%arg6, %arg7, %26) : <56>, <112>, <56>
      %27 = chimera.join pipeline 1 stage 3 on 2(%20#1, %24#3) : (!chimera.weight_gradient<16>, !chimera.weight_gradient<40>) -> !chimera.weight_gradient<56>
      %new_weights_64, %new_state_65 = chimera.optimizer_step pipeline 1 stage 3 on 2(%arg14, %arg15, %27) : <56>, <112>, <56>
      %28 = chimera.join pipeline 0 stage 0 on 0(%24#0, %23#0) : (!chimera.weight_gradient<40>, !chimera.weight_gradient<16>) -> !chimera.weight_gradient<56>
      %new_weights_66, %new_state_67 = chimera.optimizer_step pipeline 0 stage 0 on 0(%arg0, %arg1, %28) : <56>, <112>, <56>
      %29 = chimera.join pipeline 1 stage 0 on 1(%24#2, %23#1) : (!chimera.weight_gradient<40>, !chimera.weight_gradient<16>) -> !chimera.weight_gradient<56>
      %new_weights_68, %new_state_69 = chimera.optimizer_step pipeline 1 stage 0 on 1(%arg8, %arg9, %29) : <56>, <112>, <56>
      chimera.yield %new_weights_66, %new_state_67, %new_weights_58, %new_state_59, %new_weights, %new_state, %new_weights_62, %new_state_63, %new_weights_68, %new_state_69, %new_weights_60, %new_state_61, %new_weights_56, %new_state_57, %new_weights_64, %new_state_65 : !chimera.weights<56>, !chimera.optimizer_state<112>, !chimera.weights<296>, !chimera.optimizer_state<592>, !chimera.weights<296>, !chimera.optimizer_state<592>, !chimera.weights<56>, !chimera.optimizer_state<112>, !chimera.weights<56>, !chimera.optimizer_state<112>, !chimera.weights<296>, !chimera.optimizer_state<592>, !chimera.weights<296>, !chimera.optimizer_state<592>, !chimera.weights<56>, !chimera.optimizer_state<112>
    }
  }
}

