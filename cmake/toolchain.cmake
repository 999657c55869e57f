# Flags that every target gets, and the accelerators of the build itself.
# -ffp-contract=off: the order and rounding of every operation is part of the
# arithmetic contract (docs/NUMERICS.md); fused operations are written as fma.
add_compile_options(-ffp-contract=off -fno-math-errno)

find_program(CCACHE ccache)
if(CCACHE)
  # Relative paths, so that another checkout finds what this one has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(GODWIT_SANITIZE)
  add_compile_options(-fsanitize=${GODWIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GODWIT_SANITIZE})
endif()
if(GODWIT_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate -fcoverage-mapping)
endif()
