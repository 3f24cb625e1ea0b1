// What a pass prints of its options is read again as the same options.
// RUN: baechi-opt %s --dump-pass-pipeline --baechi-form-kernels=row-loops=false --baechi-annotate-costs=roofline=host:50:10:200 --baechi-constrain="pins=x*=host0,x=host0 groups=x=g splits=x=0:2 machine=host:2" --baechi-place="metf machine=host:2 budget=500e grouping=colocate+fuse" --baechi-explain="x*" --baechi-strip="plan keep=baechi.machine,baechi.group" -o /dev/null 2>%t.printed
// RUN: FileCheck %s < %t.printed
// RUN: baechi-opt %s --dump-pass-pipeline --pass-pipeline="builtin.module(baechi-form-kernels{row-loops=false},baechi-annotate-costs{profile= roofline=host:50:10:200},baechi-constrain{groups={x=g} machine=host:2 pins={x*=host0,x=host0} splits={x=0:2}},baechi-place{budget=500e expert= grouping=colocate+fuse machine=host:2 objective=makespan placer=metf},baechi-explain{machine= name=x*},baechi-strip{keep={baechi.machine,baechi.group} what=plan})" -o /dev/null 2>%t.again
// RUN: cmp %t.printed %t.again
// CHECK: baechi-form-kernels{{.*}}row-loops=false
// CHECK-NEXT: baechi-annotate-costs{{.*}}roofline=host:50:10:200
// CHECK-NEXT: baechi-constrain{groups={x=g} machine=host:2 pins={x*=host0,x=host0} replace=false splits={x=0:2}}
// CHECK-NEXT: baechi-place{budget=500e expert= grouping=colocate+fuse machine=host:2 objective=makespan placer=metf}
// CHECK-NEXT: baechi-explain{machine= name=x*}
// CHECK-NEXT: baechi-strip{keep={baechi.machine,baechi.group} what=plan}
func.func @step(%x: tensor<8xf32> {baechi.name = "x"}) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
