# One interface target carries the warning set; every room links it.
add_library(godwit_warnings INTERFACE)
target_compile_options(godwit_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wcast-align -Wold-style-cast -Wdouble-promotion
  $<$<BOOL:${GODWIT_WERROR}>:-Werror>)
# g++ 12 reports impossible overlaps and overflows inside std::string at -O2 and
# above (GCC bugs 105329, 105651); other compilers keep both warnings.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(godwit_warnings INTERFACE
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
