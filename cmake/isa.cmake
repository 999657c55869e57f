# Per-ISA flags by file name. Such files hold kernels only and include nothing
# but intrinsics and POD headers: a weak function compiled for AVX-512 could be
# picked by the linker for the whole program (tests/isa_symbols checks).
set(GODWIT_ISA_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(GODWIT_ISA_avx512vnni -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq
    -mavx512vnni -mavx512vbmi -mgfni -mprefer-vector-width=512)
set(GODWIT_ISA_avx512bf16 ${GODWIT_ISA_avx512vnni} -mavx512bf16)

function(godwit_isa_flags)
  foreach(source ${ARGN})
    if(source MATCHES "_(avx2|avx512vnni|avx512bf16)\\.cpp$")
      # Optimised even in debug presets: an unoptimised intrinsic is a weak call.
      set_source_files_properties(${source} PROPERTIES
        COMPILE_OPTIONS "${GODWIT_ISA_${CMAKE_MATCH_1}};-O3")
    endif()
  endforeach()
endfunction()
