// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/html.h"

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::html {

using svg::escaped;

std::string table(const Table& table) {
  std::string markup = fmt::format(
      "<div class=\"table\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
      escaped(table.caption));
  for (const std::string& column : table.columns) {
    markup += fmt::format("<th scope=\"col\">{}</th>", escaped(column));
  }
  markup += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    markup += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      markup += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", escaped(row[i]))
                       : fmt::format("<td>{}</td>", escaped(row[i]));
    }
    markup += "</tr>\n";
  }
  return markup + "</tbody></table></div>";
}

std::string legend(const std::vector<Key>& keys) {
  if (keys.empty()) {
    return "";
  }
  std::string markup = "<ul class=\"legend\">";
  for (const Key& key : keys) {
    markup += fmt::format("<li><span class=\"key {}\"></span><bdi>{}</bdi></li>", key.css, escaped(key.text));
  }
  return markup + "</ul>\n";
}

std::string figure(const Figure& figure) {
  std::string markup =
      fmt::format("<figure class=\"card{}\" id=\"{}\">\n<h2>{}</h2>\n<p class=\"lead\">{}</p>\n",
                  figure.wide ? " wide" : "", figure.id, escaped(figure.heading), escaped(figure.lead));
  markup += legend(figure.keys);
  for (const std::string& svg : figure.svgs) {
    markup += fmt::format("<div class=\"plot\"{}>{}</div>\n",
                          figure.wide ? fmt::format(" tabindex=\"0\" role=\"region\" aria-label=\"{}\"",
                                                    escaped(figure.heading))
                                      : "",
                          svg);
  }
  for (const std::string& note : figure.notes) {
    markup += fmt::format("<p class=\"note\">{}</p>\n", escaped(note));
  }
  if (!figure.numbers.rows.empty()) {
    markup += fmt::format("<details><summary>Numbers</summary>{}</details>\n", table(figure.numbers));
  }
  return markup + "</figure>\n";
}

}  // namespace eldr::calibrator::html
