// SPDX-License-Identifier: Apache-2.0
// One SVG picture, written from back to front. Looks (colours, strokes, fonts) come from the page's style
// sheet by class names; only geometry is here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace eldr::calibrator::svg {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

enum class Anchor { kStart, kMiddle, kEnd };

/// Texts are escaped here; class names are the caller's own words.
class Drawing {
 public:
  /// `id` names the picture on the page; `title` and `description` are read aloud to those who cannot see it.
  Drawing(std::string_view id, double width, double height, std::string_view title,
          std::string_view description);

  void open_group(std::string_view css);
  void close_group();
  void line(Point from, Point to, std::string_view css);
  void rectangle(const Box& box, std::string_view css, std::string_view tooltip = {}, double radius = 0);
  void circle(Point centre, double radius, std::string_view css, std::string_view tooltip = {});
  void polyline(const std::vector<Point>& points, std::string_view css);
  void polygon(const std::vector<Point>& points, std::string_view css);
  void text(Point at, Anchor anchor, std::string_view css, std::string_view content,
            std::string_view tooltip = {});

  /// The whole element. The drawing is over.
  std::string finish();

 private:
  void shape(std::string_view element, const std::string& geometry, std::string_view css,
             std::string_view tooltip);

  std::string markup_;
};

}  // namespace eldr::calibrator::svg
