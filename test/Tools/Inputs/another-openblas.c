/* What a program sees of an OpenBLAS of another version. */
const char *openblas_get_config(void) {
  return "OpenBLAS 9.9.9 DYNAMIC_ARCH TEST MAX_THREADS=1";
}
void openblas_set_num_threads(int threads) { (void)threads; }
void cblas_sgemm(void) {}
