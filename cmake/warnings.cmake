# One interface target carries the warning set; every room links it.
add_library(godwit_warnings INTERFACE)
target_compile_options(godwit_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wcast-align -Wold-style-cast -Wdouble-promotion
  $<$<BOOL:${GODWIT_WERROR}>:-Werror>)
