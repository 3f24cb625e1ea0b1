; Enough of libdevice for index-width.test.
target triple = "nvptx64-nvidia-gpulibs"

define float @__nv_fmaf(float %a, float %b, float %c) {
  %r = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %r
}
declare float @llvm.fma.f32(float, float, float)
