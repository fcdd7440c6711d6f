// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/svg/drawing.h"

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::svg {
namespace {

std::string class_of(std::string_view css) { return css.empty() ? "" : fmt::format(" class=\"{}\"", css); }

std::string list_of(const std::vector<Point>& points) {
  std::string list;
  for (const Point& point : points) {
    list += fmt::format("{}{},{}", list.empty() ? "" : " ", number(point.x), number(point.y));
  }
  return list;
}

}  // namespace

Drawing::Drawing(std::string_view id, double width, double height, std::string_view title,
                 std::string_view description) {
  markup_ = fmt::format(
      "<svg id=\"{0}\" role=\"img\" viewBox=\"0 0 {1} {2}\" aria-labelledby=\"{0}-title {0}-desc\">"
      "<title id=\"{0}-title\">{3}</title><desc id=\"{0}-desc\">{4}</desc>\n",
      id, number(width), number(height), escaped(title), escaped(description));
}

void Drawing::open_group(std::string_view css) { markup_ += fmt::format("<g{}>\n", class_of(css)); }
void Drawing::close_group() { markup_ += "</g>\n"; }

void Drawing::line(Point from, Point to, std::string_view css) {
  shape("line",
        fmt::format("x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", number(from.x), number(from.y), number(to.x),
                    number(to.y)),
        css, {});
}

void Drawing::rectangle(const Box& box, std::string_view css, std::string_view tooltip, double radius) {
  shape("rect",
        fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", number(box.left), number(box.top),
                    number(box.width()), number(box.height()),
                    radius > 0 ? fmt::format(" rx=\"{}\"", number(radius)) : ""),
        css, tooltip);
}

void Drawing::circle(Point centre, double radius, std::string_view css, std::string_view tooltip) {
  shape("circle",
        fmt::format("cx=\"{}\" cy=\"{}\" r=\"{}\"", number(centre.x), number(centre.y), number(radius)), css,
        tooltip);
}

void Drawing::polyline(const std::vector<Point>& points, std::string_view css) {
  shape("polyline", fmt::format("points=\"{}\"", list_of(points)), css, {});
}

void Drawing::polygon(const std::vector<Point>& points, std::string_view css) {
  shape("polygon", fmt::format("points=\"{}\"", list_of(points)), css, {});
}

void Drawing::text(Point at, Anchor anchor, std::string_view css, std::string_view content,
                   std::string_view tooltip) {
  const char* side = anchor == Anchor::kMiddle ? " text-anchor=\"middle\""
                     : anchor == Anchor::kEnd  ? " text-anchor=\"end\""
                                               : "";
  markup_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}{}</text>\n", number(at.x), number(at.y), side,
                         class_of(css), tooltip.empty() ? "" : "<title>" + escaped(tooltip) + "</title>",
                         escaped(content));
}

std::string Drawing::finish() { return std::move(markup_) + "</svg>"; }

void Drawing::shape(std::string_view element, const std::string& geometry, std::string_view css,
                    std::string_view tooltip) {
  markup_ += fmt::format("<{} {}{}", element, geometry, class_of(css));
  markup_ += tooltip.empty() ? std::string("/>\n")
                             : fmt::format("><title>{}</title></{}>\n", escaped(tooltip), element);
}

}  // namespace eldr::calibrator::svg
