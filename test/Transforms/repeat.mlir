// A second run of a pass changes nothing, and threads change nothing.
// DEFINE: %{place} = --baechi-place="metf machine=host:2@1GiB budget=0"

// RUN: baechi-opt %s --baechi-annotate-costs --baechi-colocate -o %t.grouped
// RUN: baechi-opt %t.grouped --baechi-annotate-costs --baechi-colocate -o %t.again
// RUN: cmp %t.grouped %t.again
// RUN: baechi-opt %t.grouped --baechi-fuse=machine=host:2@1GiB -o %t.fused
// RUN: baechi-opt %t.fused --baechi-fuse -o %t.again
// RUN: cmp %t.fused %t.again
// RUN: baechi-opt %s --baechi-constrain="pins=x=host1 groups=*=all" -o %t.pinned
// RUN: baechi-opt %t.pinned --baechi-constrain="pins=x=host1 groups=*=all" -o %t.again
// RUN: cmp %t.pinned %t.again
// RUN: baechi-opt %t.grouped %{place} -o %t.placed
// RUN: baechi-opt %t.placed %{place} -o %t.again
// RUN: cmp %t.placed %t.again
// RUN: baechi-opt %t.placed --baechi-strip -o %t.stripped
// RUN: baechi-opt %t.stripped --baechi-strip -o %t.again
// RUN: cmp %t.stripped %t.again

// Nothing of an earlier placement is left: pinned to two devices, then free on one.
// DEFINE: %{unpin} = --baechi-strip="keep=baechi.cost,baechi.group,baechi.device,baechi.start,baechi.sends,baechi.certificate,baechi.machine"
// DEFINE: %{one} = --baechi-place="metf machine=host:1@1GiB budget=0"
// RUN: baechi-opt %t.grouped %{unpin} %{one} -o %t.one
// RUN: baechi-opt %t.placed %{unpin} %{one} -o %t.again
// RUN: FileCheck %s --check-prefix=TWO < %t.placed
// RUN: cmp %t.one %t.again
// TWO: baechi.sends

// RUN: baechi-opt %fixtures/transformer_tiny.mlir --baechi-form-kernels --baechi-kernel-scratch --baechi-annotate-costs --baechi-colocate %{place} --baechi-partition --baechi-plan-memory -o %t.threads
// RUN: baechi-opt %fixtures/transformer_tiny.mlir --baechi-form-kernels --baechi-kernel-scratch --baechi-annotate-costs --baechi-colocate %{place} --baechi-partition --baechi-plan-memory --mlir-disable-threading -o %t.alone
// RUN: cmp %t.threads %t.alone

func.func @step(%w: tensor<64x64xf32> {baechi.updated_by = 0 : i64, baechi.pin = "host0"}, %x: tensor<64x64xf32> {baechi.name = "x", baechi.pin = "host1"}) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = math.exp %x : tensor<64x64xf32>
  %1 = arith.addf %w, %0 : tensor<64x64xf32>
  return %1, %0 : tensor<64x64xf32>, tensor<64x64xf32>
}
