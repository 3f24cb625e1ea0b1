// RUN: baechi-opt %s --baechi-strip --verify-diagnostics

func.func @step(%x: tensor<4xf32>) {
  // expected-error @below {{'baechi.send' op belongs to a partitioned program, which cannot become one program again; strip the placed one}}
  %t = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
  return
}
