# Installs the Python modules that come from other folders.
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
install(DIRECTORY ${root}/tools/export/chimera_export DESTINATION .
  FILES_MATCHING PATTERN "*.py"
  PATTERN __pycache__ EXCLUDE)
install(FILES ${root}/runtime/model/graph/operators.txt DESTINATION chimera_export)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/chimera_launch.py DESTINATION .)
install(FILES ${root}/LICENSE DESTINATION chimera)
