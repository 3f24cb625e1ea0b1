# Page.inc for Page.cpp: the page in one string.
set(page_dir ${CMAKE_CURRENT_SOURCE_DIR}/Page)
set(page_scripts format.js model.js view.js timeline.js memory.js layout.js
    graph.js tables.js main.js)
set(page_files page.html page.css ${page_scripts} Embed.cmake)
list(TRANSFORM page_files PREPEND ${page_dir}/)
list(JOIN page_scripts "," page_scripts)
set(page_inc ${CMAKE_CURRENT_BINARY_DIR}/Page/Page.inc)
add_custom_command(OUTPUT ${page_inc}
  COMMAND ${CMAKE_COMMAND} -DPAGE=${page_dir} -DSCRIPTS=${page_scripts}
          -DOUTPUT=${page_inc} -P ${page_dir}/Embed.cmake
  DEPENDS ${page_files} VERBATIM)
target_sources(BaechiReport PRIVATE ${page_inc})
set_source_files_properties(${page_inc} PROPERTIES HEADER_FILE_ONLY ON)
set_source_files_properties(Page.cpp PROPERTIES
  OBJECT_DEPENDS ${page_inc}
  INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR}/Page)
