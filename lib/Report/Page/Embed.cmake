# Writes the page, styles and scripts inlined, as one C++ string literal:
#   cmake -DPAGE=FOLDER -DSCRIPTS=a.js,b.js -DOUTPUT=FILE -P Embed.cmake
file(READ "${PAGE}/page.html" html)
file(READ "${PAGE}/page.css" style)
string(REPLACE "," ";" names "${SCRIPTS}")
set(script "")
foreach(name IN LISTS names)
  file(READ "${PAGE}/${name}" text)
  string(APPEND script "${text}\n")
endforeach()
string(REPLACE "@STYLE@" "${style}" html "${html}")
string(REPLACE "@SCRIPT@" "${script}" html "${html}")
file(WRITE "${OUTPUT}" "R\"baechi_page(${html})baechi_page\"\n")
