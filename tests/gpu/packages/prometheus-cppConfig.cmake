# prometheus-cpp as tests/gpu/carry gathers it below STOWAGE_CARRIED: Debian's own file asks for packages that are not carried.
foreach(_part core pull)
  file(GLOB _library ${STOWAGE_CARRIED}/lib/*/libprometheus-cpp-${_part}.so)
  add_library(prometheus-cpp::${_part} INTERFACE IMPORTED)
  target_include_directories(prometheus-cpp::${_part} INTERFACE ${STOWAGE_CARRIED}/include)
  target_link_libraries(prometheus-cpp::${_part} INTERFACE ${_library})
endforeach()
