// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/assignment.h"

#include <limits>
#include <string>

namespace eldr::signature {
namespace {

using RowMatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One row after the other is joined to a column along a shortest path over reduced costs. Crouse, "On
/// implementing 2D rectangular assignment algorithms", IEEE Transactions on Aerospace and Electronic Systems
/// 52 (2016), algorithm of section III.
class ShortestAugmentingPaths {
 public:
  explicit ShortestAugmentingPaths(const Eigen::MatrixXd& cost)
      : cost_(cost),
        row_price_(static_cast<std::size_t>(cost.rows()), 0.0),
        column_price_(static_cast<std::size_t>(cost.cols()), 0.0),
        column_of_(static_cast<std::size_t>(cost.rows()), -1),
        row_of_(static_cast<std::size_t>(cost.cols()), -1) {}

  std::vector<std::int32_t> solve() {
    for (std::int32_t row = 0; row < cost_.rows(); ++row) augment(row);
    return column_of_;
  }

 private:
  void augment(std::int32_t first_row) {
    const auto columns = static_cast<std::size_t>(cost_.cols());
    distance_.assign(columns, kInfinity);
    from_row_.assign(columns, -1);
    open_.resize(columns);
    for (std::size_t j = 0; j < columns; ++j) open_[j] = static_cast<std::int32_t>(j);
    settled_rows_.clear();
    settled_columns_.clear();

    double shortest = 0;
    std::int32_t row = first_row;
    std::int32_t sink = -1;
    while (sink < 0) {
      settled_rows_.push_back(row);
      const std::size_t nearest = relax(row, shortest);
      const std::int32_t column = open_[nearest];
      shortest = distance_[at(column)];
      open_[nearest] = open_.back();
      open_.pop_back();
      settled_columns_.push_back(column);
      if (row_of_[at(column)] < 0) sink = column;
      row = row_of_[at(column)];
    }
    update_prices(first_row, shortest);
    flip_path(first_row, sink);
  }

  /// Shortens the distances of open columns through `row`; the place in open_ of the nearest, a free column
  /// on a tie.
  std::size_t relax(std::int32_t row, double shortest) {
    const double* const cost = cost_.row(row).data();
    const double base = shortest - row_price_[at(row)];
    double lowest = kInfinity;
    std::size_t nearest = 0;
    for (std::size_t place = 0; place < open_.size(); ++place) {
      const std::size_t column = at(open_[place]);
      const double reduced = base + cost[column] - column_price_[column];
      if (reduced < distance_[column]) {
        distance_[column] = reduced;
        from_row_[column] = row;
      }
      if (distance_[column] < lowest || (distance_[column] == lowest && row_of_[column] < 0)) {
        lowest = distance_[column];
        nearest = place;
      }
    }
    return nearest;
  }

  void update_prices(std::int32_t first_row, double shortest) {
    row_price_[at(first_row)] += shortest;
    for (const std::int32_t row : settled_rows_) {
      if (row != first_row) row_price_[at(row)] += shortest - distance_[at(column_of_[at(row)])];
    }
    for (const std::int32_t column : settled_columns_)
      column_price_[at(column)] -= shortest - distance_[at(column)];
  }

  void flip_path(std::int32_t first_row, std::int32_t column) {
    for (std::int32_t row = -1; row != first_row;) {
      row = from_row_[at(column)];
      row_of_[at(column)] = row;
      std::swap(column, column_of_[at(row)]);
    }
  }

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  RowMatrixD cost_;
  std::vector<double> row_price_, column_price_;
  std::vector<std::int32_t> column_of_, row_of_;
  std::vector<double> distance_;        ///< of each column from the row being joined
  std::vector<std::int32_t> from_row_;  ///< the row before a column on its shortest path
  std::vector<std::int32_t> open_, settled_rows_, settled_columns_;
};

}  // namespace

Status check_costs(const Eigen::MatrixXd& cost) {
  for (Eigen::Index column = 0; column < cost.cols(); ++column) {
    for (Eigen::Index row = 0; row < cost.rows(); ++row) {
      if (std::abs(cost(row, column)) <= kMaxCost) continue;  // false for NaN
      return failure(Code::kInvalid, "cost at row " + std::to_string(row) + ", column " +
                                         std::to_string(column) +
                                         ": must be a number of magnitude at most 1e100");
    }
  }
  return {};
}

Result<std::vector<std::int32_t>> solve_assignment(const Eigen::MatrixXd& cost) {
  if (cost.rows() > cost.cols()) {
    return failure(Code::kInvalid, "assignment of " + std::to_string(cost.rows()) + " rows to " +
                                       std::to_string(cost.cols()) +
                                       " columns: rows must be at most columns");
  }
  if (const Status finite = check_costs(cost); !finite) return failure(finite.error());
  return ShortestAugmentingPaths(cost).solve();
}

}  // namespace eldr::signature
