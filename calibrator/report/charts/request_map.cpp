// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/charts.h"
#include "calibrator/report/charts/map_layout.h"
#include "calibrator/report/charts/words.h"
#include "calibrator/report/svg/axes.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {
namespace {

constexpr double kMapHeight = 420;
constexpr svg::Box kMap{20, 26, 478, 392};
constexpr std::size_t kMostPoints = 1500;  ///< drawn: more only cover each other
constexpr std::size_t kMostNumbered = 32;  ///< centroids with their numbers on
constexpr double kBadge = 9;               ///< radius of a numbered centroid
constexpr std::size_t kMostKeys = kColours;
constexpr std::size_t kLongestKey = 40;

/// From the plane to the picture, equally far in both directions.
class Projection {
 public:
  explicit Projection(const RequestMap& map) {
    Eigen::RowVector2d low = Eigen::RowVector2d::Zero();
    Eigen::RowVector2d high = Eigen::RowVector2d::Zero();
    for (const Eigen::MatrixXd* points : {&map.points, &map.centroids}) {
      if (points->rows() > 0) {
        low = low.cwiseMin(points->colwise().minCoeff());
        high = high.cwiseMax(points->colwise().maxCoeff());
      }
    }
    centre_ = (low + high) / 2;
    constexpr double kMargin = 12;
    const Eigen::RowVector2d range = (high - low).cwiseMax(1e-9);
    scale_ = std::min((kMap.width() - 2 * kMargin) / range[0], (kMap.height() - 2 * kMargin) / range[1]);
  }
  svg::Point operator()(const Eigen::MatrixXd& points, std::size_t row) const {
    const auto r = static_cast<Eigen::Index>(row);
    return {(kMap.left + kMap.right) / 2 + (points(r, 0) - centre_[0]) * scale_,
            (kMap.top + kMap.bottom) / 2 - (points(r, 1) - centre_[1]) * scale_};
  }

 private:
  Eigen::RowVector2d centre_;
  double scale_ = 1;
};

std::vector<svg::Point> centroid_points(const RequestMap& map, const Projection& project) {
  std::vector<svg::Point> points;
  for (Eigen::Index c = 0; c < map.centroids.rows(); ++c) {
    points.push_back(project(map.centroids, static_cast<std::size_t>(c)));
  }
  return points;
}

void draw_frame(svg::Drawing& drawing, const RequestMap& map) {
  drawing.rectangle(kMap, "frame", {}, 4);
  drawing.text({2, 13}, svg::Anchor::kStart, "quantity",
               fmt::format("second component, {} of the variance", svg::percent(map.shares[1], 0)));
  drawing.text({(kMap.left + kMap.right) / 2, kMap.bottom + 20}, svg::Anchor::kMiddle, "quantity",
               fmt::format("first component, {} of the variance", svg::percent(map.shares[0], 0)));
}

void draw_points(svg::Drawing& drawing, const Analysis& analysis, const Projection& project,
                 const std::vector<std::string>& css_of_request) {
  const RequestMap& map = analysis.map;
  const std::size_t shown = std::min(map.requests.size(), kMostPoints);
  const double radius = shown > 600 ? 2.2 : 3.2;
  drawing.open_group("points");
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t row = i * map.requests.size() / shown;  // evenly over all
    const std::size_t request = map.requests[row];
    const std::string label =
        analysis.labels.empty() ? "" : ", " + svg::shortened(analysis.labels[request], kLongestKey);
    drawing.circle(project(map.points, row), radius, css_of_request[request],
                   fmt::format("request {}{}, cluster {}", request, label, analysis.assignment[request]));
  }
  drawing.close_group();
}

/// Numbered discs beside where the centroids are, tied to them; small marks where there are too many for
/// numbers.
void draw_centroids(svg::Drawing& drawing, const std::vector<svg::Point>& at,
                    const std::vector<std::string>& css) {
  drawing.open_group("centroids");
  if (at.size() > kMostNumbered) {
    for (std::size_t c = 0; c < at.size(); ++c) {
      drawing.rectangle({at[c].x - 3, at[c].y - 3, at[c].x + 3, at[c].y + 3}, "mark " + css[c],
                        fmt::format("centroid {}", c));
    }
  } else {
    const std::vector<svg::Point> badges = spread_apart(at, kBadge, kMap);
    for (std::size_t c = 0; c < at.size(); ++c) {
      drawing.line(at[c], badges[c], "tie");
    }
    for (std::size_t c = 0; c < at.size(); ++c) {
      drawing.circle(badges[c], kBadge, "badge " + css[c], fmt::format("centroid {}", c));
      drawing.text({badges[c].x, badges[c].y + 3.6}, svg::Anchor::kMiddle, "badge-number", std::to_string(c));
    }
  }
  drawing.close_group();
}

std::vector<std::string> notes_of(const Analysis& analysis) {
  std::vector<std::string> notes = {
      "Principal components of the signatures: near points use experts alike. Distances in this plane are "
      "those of "
      "the signatures as far as two dimensions can show them."};
  if (analysis.map.requests.size() > kMostPoints) {
    notes.push_back(fmt::format("{} of {} requests are drawn.", svg::grouped(kMostPoints),
                                svg::grouped(analysis.map.requests.size())));
  }
  if (analysis.directionless > 0) {
    notes.push_back(
        fmt::format("{} without a signature left out.", counted(analysis.directionless, "request")));
  }
  return notes;
}

const char* centroid_mark(const Analysis& analysis) {
  return analysis.clusters() > kMostNumbered ? "square" : "numbered disc";
}

std::string coordinate(double value) { return svg::fixed(value, 3); }

html::Table label_middles(const RequestMap& map, const LabelGroups& groups) {
  Eigen::MatrixXd sums = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(groups.count()), 2);
  Eigen::VectorXd members = Eigen::VectorXd::Zero(sums.rows());
  for (std::size_t row = 0; row < map.requests.size(); ++row) {
    const Eigen::Index group = groups.of_request[map.requests[row]];
    sums.row(group) += map.points.row(static_cast<Eigen::Index>(row));
    ++members[group];
  }
  html::Table table{
      "Middle of each label's requests in the plane", {"Label", "Requests", "First", "Second"}, {}};
  for (std::size_t group = 0; group < groups.count(); ++group) {
    const auto row = static_cast<Eigen::Index>(group);
    const Eigen::RowVector2d middle = sums.row(row) / std::max(members[row], 1.0);
    table.rows.push_back({group_name(groups, group), svg::grouped(groups.sizes[group]), coordinate(middle[0]),
                          coordinate(middle[1])});
  }
  return table;
}

}  // namespace

html::Figure label_map_figure(const Analysis& analysis) {
  const LabelGroups groups = group_labels(analysis.labels, analysis.requests, kMostKeys);
  html::Figure figure{
      .id = "label-map",
      .heading = "Map of requests by label",
      .lead = fmt::format("Each dot is a request, each {} a centroid.", centroid_mark(analysis))};
  const auto css_of = [&](std::size_t group) {
    return is_folded(groups, group) ? std::string("rest") : fmt::format("c{}", group);
  };
  for (std::size_t group = 0; group < groups.count(); ++group) {
    figure.keys.push_back({"disc " + css_of(group), svg::shortened(group_name(groups, group), kLongestKey)});
  }
  std::vector<std::string> css;
  for (const std::uint32_t group : groups.of_request) {
    css.push_back(css_of(group));
  }
  svg::Drawing drawing("chart-label-map", svg::kChartWidth, kMapHeight, figure.heading, figure.lead);
  const Projection project(analysis.map);
  draw_frame(drawing, analysis.map);
  draw_points(drawing, analysis, project, css);
  draw_centroids(drawing, centroid_points(analysis.map, project),
                 std::vector<std::string>(analysis.clusters(), "plain"));
  figure.svgs = {drawing.finish()};
  figure.notes = notes_of(analysis);
  figure.numbers = label_middles(analysis.map, groups);
  return figure;
}

html::Figure cluster_map_figure(const Analysis& analysis) {
  const std::uint32_t clusters = analysis.clusters();
  html::Figure figure{.id = "cluster-map", .heading = "Map of requests by cluster"};
  const Projection project(analysis.map);
  const std::vector<svg::Point> at = centroid_points(analysis.map, project);
  std::vector<std::string> css_of_cluster;
  for (const std::size_t colour : differing_colours(at, kColours)) {
    css_of_cluster.push_back(fmt::format("c{}", colour));
  }
  if (clusters <= kColours) {
    figure.lead = fmt::format("Each dot is a request, each {} a centroid.", centroid_mark(analysis));
    for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
      figure.keys.push_back({"disc " + css_of_cluster[cluster], fmt::format("cluster {}", cluster)});
    }
  } else {
    figure.lead = fmt::format(
        "Each dot is a request in the colour of its centroid, a {}. Colours return far from each other.",
        centroid_mark(analysis));
  }
  std::vector<std::string> css;
  for (const std::uint32_t cluster : analysis.assignment) {
    css.push_back(css_of_cluster[cluster]);
  }
  svg::Drawing drawing("chart-cluster-map", svg::kChartWidth, kMapHeight, figure.heading, figure.lead);
  draw_frame(drawing, analysis.map);
  draw_points(drawing, analysis, project, css);
  draw_centroids(drawing, at, css_of_cluster);
  figure.svgs = {drawing.finish()};
  figure.notes = notes_of(analysis);
  figure.numbers = {"Centroids in the plane", {"Cluster", "Requests", "First", "Second"}, {}};
  for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
    figure.numbers.rows.push_back({std::to_string(cluster), svg::grouped(analysis.load.assigned[cluster]),
                                   coordinate(analysis.map.centroids(cluster, 0)),
                                   coordinate(analysis.map.centroids(cluster, 1))});
  }
  return figure;
}

}  // namespace eldr::calibrator::charts
