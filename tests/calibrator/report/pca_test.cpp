// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/pca.h"

#include <Eigen/Eigenvalues>
#include <cmath>

#include <gtest/gtest.h>

#include "calibrator/fit/random.h"

namespace eldr::calibrator {
namespace {

using signature::RowMatrixF;

/// Rows whose variance falls from column to column, turned by random mixing.
RowMatrixF random_rows(Eigen::Index count, Eigen::Index columns, std::uint64_t seed) {
  Random random(seed, 0);
  const auto draw = [&] { return static_cast<float>(random.uniform() - 0.5); };
  RowMatrixF rows = RowMatrixF::NullaryExpr(count, columns, draw);
  for (Eigen::Index c = 0; c < columns; ++c) {
    rows.col(c) *= std::pow(0.8F, static_cast<float>(c));
  }
  const Eigen::MatrixXf mixing = Eigen::MatrixXf::NullaryExpr(columns, columns, draw);
  rows = rows * mixing;
  rows.rowwise() += Eigen::RowVectorXf::Constant(columns, 3);  // a mean that must not matter
  return rows;
}

/// Eigenvalues and projections of the dense covariance matrix, the textbook's way.
struct Dense {
  Eigen::VectorXd shares;
  Eigen::MatrixXd points;
};
Dense dense(const RowMatrixF& rows, Eigen::Index count) {
  const Eigen::MatrixXd centred = rows.cast<double>().rowwise() - rows.cast<double>().colwise().mean();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(centred.transpose() * centred);
  const Eigen::VectorXd values = solver.eigenvalues().reverse();
  return {values.head(count) / values.sum(),
          centred * solver.eigenvectors().rowwise().reverse().leftCols(count)};
}

void expect_same(const RowMatrixF& rows, Eigen::Index count) {
  const PrincipalComponents components = principal_components(rows, count);
  const Dense expected = dense(rows, count);
  const Eigen::MatrixXd points = components.project(rows);
  for (Eigen::Index c = 0; c < count; ++c) {
    EXPECT_NEAR(components.shares[static_cast<std::size_t>(c)], expected.shares[c], 1e-5) << c;
    const double sign = points.col(c).dot(expected.points.col(c)) < 0 ? -1 : 1;
    const double error =
        (points.col(c) - sign * expected.points.col(c)).norm() / expected.points.col(c).norm();
    EXPECT_LT(error, 0.01) << c;
  }
}

TEST(Pca, AgreesWithTheDenseCovariance) {
  expect_same(random_rows(60, 12, 1), 2);
  expect_same(random_rows(40, 90, 2), 2);
  expect_same(random_rows(200, 30, 3), 4);
}

TEST(Pca, APlaneIsFoundExactly) {
  RowMatrixF rows(4, 3);  // a rectangle 4 by 2 in the plane of the first and third axis
  rows << 2, 7, 1, 2, 7, -1, -2, 7, 1, -2, 7, -1;
  const PrincipalComponents components = principal_components(rows, 2);
  EXPECT_NEAR(components.shares[0], 0.8, 1e-6);
  EXPECT_NEAR(components.shares[1], 0.2, 1e-6);
  Eigen::MatrixXd expected(4, 2);
  expected << 2, 1, 2, -1, -2, 1, -2, -1;
  EXPECT_LT((components.project(rows) - expected).cwiseAbs().maxCoeff(), 1e-5);
}

TEST(Pca, LittleToDescribe) {
  const PrincipalComponents same = principal_components(RowMatrixF::Constant(5, 3, 0.5F), 2);
  EXPECT_EQ(same.shares, (std::vector<double>{0, 0}));
  EXPECT_EQ(same.project(RowMatrixF::Constant(5, 3, 0.5F)).cwiseAbs().maxCoeff(), 0);
  EXPECT_EQ(principal_components(RowMatrixF(0, 3), 2).shares, (std::vector<double>{0, 0}));
  RowMatrixF two(2, 1);
  two << 0, 2;
  const PrincipalComponents line = principal_components(two, 2);
  EXPECT_NEAR(line.shares[0], 1, 1e-6);
  EXPECT_EQ(line.shares[1], 0);
  EXPECT_EQ(line.project(two).rows(), 2);
}

TEST(Pca, TheSameRowsGiveTheSameAnswer) {
  const RowMatrixF rows = random_rows(50, 20, 4);
  EXPECT_EQ(principal_components(rows, 2).directions, principal_components(rows, 2).directions);
}

}  // namespace
}  // namespace eldr::calibrator
