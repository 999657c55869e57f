# godwit_room(<name> [ROOMS <room>...] [LIBS <target>...])
# Makes the static library godwit_<name> from the .cpp files of the calling
# directory (one level), and, where there are *_test.cpp files, the executable
# godwit_<name>_test. Files named *_avx2.cpp / *_avx512*.cpp are compiled with
# their own flags (cmake/isa.cmake). What a room may include is enforced by
# scripts/check-layers against cmake/layers.txt, not here.
function(godwit_room name)
  cmake_parse_arguments(ARG "" "" "ROOMS;LIBS;TEST_ROOMS;TEST_LIBS;SUBDIRS" ${ARGN})
  set(globs *.cpp)
  foreach(dir ${ARG_SUBDIRS})
    list(APPEND globs ${dir}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")

  if(sources)
    add_library(godwit_${name} STATIC ${sources})
    set(visibility PUBLIC)
  else()
    add_library(godwit_${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(godwit_${name} ${visibility} ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_ROOMS PREPEND godwit_)
  target_link_libraries(godwit_${name} ${visibility} ${ARG_ROOMS} ${ARG_LIBS} tl::expected fmt::fmt)
  if(sources)
    target_link_libraries(godwit_${name} PRIVATE godwit_warnings)
    godwit_isa_flags(${sources})
  endif()

  if(GODWIT_TESTS AND tests)
    list(TRANSFORM ARG_TEST_ROOMS PREPEND godwit_)
    add_executable(godwit_${name}_test ${tests})
    target_link_libraries(godwit_${name}_test PRIVATE godwit_${name} godwit_warnings
      ${ARG_TEST_ROOMS} ${ARG_TEST_LIBS} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(godwit_${name}_test DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 300 LABELS unit)
  endif()
endfunction()
