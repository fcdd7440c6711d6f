// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/charts.h"
#include "calibrator/report/charts/heat_map.h"
#include "calibrator/report/charts/words.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {
namespace {

using svg::fixed;
using svg::percent;

std::vector<std::string> row_names(const Analysis& analysis) {
  if (analysis.labels.empty()) {
    return {"all requests"};
  }
  std::vector<std::string> names;
  for (std::size_t group = 0; group < analysis.similarity.labels.count(); ++group) {
    names.push_back(group_name(analysis.similarity.labels, group));
  }
  return names;
}

std::vector<std::string> column_names(const Analysis& analysis) {
  std::vector<std::string> names;
  for (const std::uint32_t cluster : analysis.similarity.cluster_order) {
    names.push_back(std::to_string(cluster));
  }
  return names;
}

/// Columns in the order in which they are shown.
template <class Matrix>
Eigen::MatrixXd ordered(const Matrix& by_cluster, const std::vector<std::uint32_t>& order) {
  Eigen::MatrixXd result(by_cluster.rows(), by_cluster.cols());
  for (std::size_t column = 0; column < order.size(); ++column) {
    result.col(static_cast<Eigen::Index>(column)) = by_cluster.col(order[column]).template cast<double>();
  }
  return result;
}

/// `text` of each cell, as a table of labels by clusters.
html::Table table_of(const HeatMap& map, std::string caption) {
  html::Table table{std::move(caption), {"Label"}, {}};
  for (const std::string& column : map.columns) {
    table.columns.push_back("Cluster " + column);
  }
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    table.rows.push_back({map.rows[row]});
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      table.rows.back().push_back(map.cell_text(row, column));
    }
  }
  return table;
}

std::string quantity_of(const Analysis& analysis) {
  return analysis.labels.empty() ? "cluster" : "cluster, grouped by main label";
}

}  // namespace

html::Figure similarity_figure(const Analysis& analysis) {
  const bool labelled = !analysis.labels.empty();
  html::Figure figure{.id = "similarity",
                      .heading = labelled ? "Similarity by label and cluster" : "Similarity by cluster"};
  if (!labelled) {
    figure.lead = "The trace has no labels: the mean cosine of all requests with each centroid.";
  } else if (analysis.label_gap) {
    figure.lead = fmt::format(
        "Mean cosine of a label's requests with each centroid. Two requests of one label are {} {} alike "
        "than two of different labels.",
        fixed(std::abs(*analysis.label_gap), 3), *analysis.label_gap < 0 ? "less" : "more");
  } else {
    figure.lead = "Mean cosine of a label's requests with each centroid.";
  }
  HeatMap map{.id = "chart-similarity",
              .title = figure.heading,
              .description = figure.lead,
              .rows = row_names(analysis),
              .columns = column_names(analysis)};
  map.values = ordered(analysis.similarity.cosine, analysis.similarity.cluster_order);
  const auto known = [&](double otherwise) {
    return map.values.array().isNaN().select(otherwise, map.values);
  };
  map.low = known(1).minCoeff();
  map.high = std::max(known(-1).maxCoeff(), map.low);
  map.low_text = "cosine " + fixed(map.low, 2);
  map.high_text = fixed(map.high, 2);
  map.quantity = quantity_of(analysis);
  map.cell_text = [&](std::size_t row, std::size_t column) {
    const double value = map.values(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(column));
    return std::isnan(value) ? std::string("–") : fixed(value, 2);
  };
  map.tooltip = [&](std::size_t row, std::size_t column) {
    return fmt::format("{}, cluster {}: {}", map.rows[row], map.columns[column], map.cell_text(row, column));
  };
  figure.svgs = {draw_heat_map(map)};
  figure.wide = heat_map_is_wide(map.columns.size());
  figure.numbers = table_of(map, "Mean cosine by label and cluster");
  return figure;
}

html::Figure label_counts_figure(const Analysis& analysis) {
  html::Figure figure{.id = "label-counts", .heading = "Requests by label and cluster"};
  const LabelSimilarity& similarity = analysis.similarity;
  figure.lead = fmt::format(
      "{} of the requests are in a cluster where theirs is the main label. Colour: share of the label's "
      "requests.",
      percent(similarity.main_label_share, 0));
  HeatMap map{.id = "chart-label-counts",
              .title = figure.heading,
              .description = figure.lead,
              .rows = row_names(analysis),
              .columns = column_names(analysis)};
  const Eigen::MatrixXd counts = ordered(similarity.counts, similarity.cluster_order);
  map.values = counts.array().colwise() / counts.rowwise().sum().array().max(1);
  map.high = map.values.maxCoeff();
  map.low_text = "0 %";
  map.high_text = percent(map.high, 0);
  map.quantity = quantity_of(analysis);
  map.cell_text = [&](std::size_t row, std::size_t column) {
    return std::to_string(
        static_cast<int>(counts(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(column))));
  };
  map.tooltip = [&](std::size_t row, std::size_t column) {
    const double share = map.values(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(column));
    return fmt::format("{}, cluster {}: {} requests, {} of the label", map.rows[row], map.columns[column],
                       map.cell_text(row, column), percent(share, 0));
  };
  figure.svgs = {draw_heat_map(map)};
  figure.wide = heat_map_is_wide(map.columns.size());
  figure.numbers = table_of(map, "Requests by label and cluster");
  return figure;
}

}  // namespace eldr::calibrator::charts
