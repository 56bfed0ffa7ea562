# `cpack --config build/release/CPackConfig.cmake` makes packages for the Debian that it runs on: stowaged, stowage, stowage-torch (what of
# the command needs LibTorch) and stowage-common. Libraries are for `cmake --install`.
include_guard()

set(_debian ${PROJECT_SOURCE_DIR}/deploy/debian)

# _stowage_deb(NAME COMPONENTS component ... SECTION s DEPENDS d RECOMMENDS r SCRIPTS file ... DESCRIPTION text)
function(_stowage_deb name)
  cmake_parse_arguments(arg "" "SECTION;DEPENDS;RECOMMENDS;DESCRIPTION" "COMPONENTS;SCRIPTS" ${ARGN})
  # What every package has of its own, beside its components.
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright
    COMPONENT ${name}_copyright EXCLUDE_FROM_ALL)
  list(APPEND arg_COMPONENTS ${name}_copyright)
  string(TOUPPER ${name} group)
  foreach(component IN LISTS arg_COMPONENTS)
    string(TOUPPER ${component} key)
    set(CPACK_COMPONENT_${key}_GROUP ${name} PARENT_SCOPE)
  endforeach()
  set(_components ${_components} ${arg_COMPONENTS} PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_DESCRIPTION "${arg_DESCRIPTION}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_SECTION ${arg_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_DEPENDS "${arg_DEPENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_RECOMMENDS "${arg_RECOMMENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_CONTROL_EXTRA "${arg_SCRIPTS}" PARENT_SCOPE)
endfunction()

# After everything else that is installed.
function(stowage_debian_packages)
  set(same "stowage-common (= ${PROJECT_VERSION})")
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/stowaged.conf DESTINATION /etc/stowage COMPONENT stowaged_etc EXCLUDE_FROM_ALL)
  _stowage_deb(stowaged COMPONENTS server stowaged_etc SECTION net DEPENDS "systemd, ${same}" RECOMMENDS stowage
    SCRIPTS ${_debian}/postinst ${_debian}/prerm ${_debian}/postrm ${_debian}/conffiles
    DESCRIPTION "plans for the memory of training: the service\nSolves, caches and serves plans of what a training job keeps, recomputes and\noffloads, with metrics for Prometheus. The unit starts by systemctl enable --now stowaged.")
  _stowage_deb(stowage COMPONENTS command SECTION science DEPENDS "${same}" RECOMMENDS "stowage-torch (= ${PROJECT_VERSION})"
    DESCRIPTION "plans for the memory of training: the command\nPlans, explains and compares what a training job keeps, recomputes and offloads\nwithin a memory budget.")
  _stowage_deb(stowage-torch COMPONENTS torch_command SECTION science DEPENDS "stowage (= ${PROJECT_VERSION})"
    DESCRIPTION "plans for the memory of training: what needs LibTorch\nstowage profile, run and verify.")
  _stowage_deb(stowage-common COMPONENTS catalogue SECTION science
    DESCRIPTION "plans for the memory of training: plans solved beforehand\nThe catalogue of the command and the service.")

  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME stowage)
  set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
  set(CPACK_PACKAGE_CONTACT "Stowage maintainers <maintainers@stowage.invalid>")
  set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/debian)
  set(CPACK_COMPONENTS_ALL ${_components})
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_STRIP_FILES ON)
  # The configuration is in /etc, whatever the prefix.
  set(CPACK_SET_DESTDIR ON)
  set(CPACK_INSTALL_PREFIX /usr)
  set(CPACK_VERBATIM_VARIABLES ON)
  include(CPack)
endfunction()
