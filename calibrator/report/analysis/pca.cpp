// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/pca.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "calibrator/fit/random.h"

namespace eldr::calibrator {
namespace {

using signature::RowMatrixF;

constexpr Eigen::Index kSpare =
    8;  ///< further columns of the block: they make the wanted ones converge quickly
constexpr int kMostIterations = 100;
constexpr double kSettled = 1e-7;  ///< relative change of the eigenvalues, about what floats can tell

/// The rows less their mean, as a linear map; never formed.
class Centred {
 public:
  explicit Centred(const RowMatrixF& rows) : rows_(rows) {
    mean_ = Eigen::RowVectorXd::Zero(rows.cols());
    for (Eigen::Index r = 0; r < rows.rows(); ++r) {
      mean_ += rows.row(r).cast<double>();
      squares_ += rows.row(r).cast<double>().squaredNorm();
    }
    mean_ /= static_cast<double>(std::max<Eigen::Index>(rows.rows(), 1));
    squares_ -= static_cast<double>(rows.rows()) * mean_.squaredNorm();
  }
  const Eigen::RowVectorXd& mean() const { return mean_; }
  double squares() const { return std::max(squares_, 0.0); }

  Eigen::MatrixXf times(const Eigen::MatrixXf& block) const {
    Eigen::MatrixXf product = rows_ * block;
    product.rowwise() -= mean_.cast<float>() * block;
    return product;
  }
  Eigen::MatrixXf transposed_times(const Eigen::MatrixXf& block) const {
    Eigen::MatrixXf product = rows_.transpose() * block;
    product -= mean_.cast<float>().transpose() * block.colwise().sum();
    return product;
  }

 private:
  const RowMatrixF& rows_;
  Eigen::RowVectorXd mean_;
  double squares_ = 0;
};

Eigen::MatrixXf orthonormal(const Eigen::MatrixXf& block) {
  const Eigen::HouseholderQR<Eigen::MatrixXf> qr(block);
  return qr.householderQ() * Eigen::MatrixXf::Identity(block.rows(), block.cols());
}

Eigen::MatrixXf fixed_start(Eigen::Index rows, Eigen::Index columns) {
  Random random(1, 1);
  return orthonormal(Eigen::MatrixXf::NullaryExpr(
      rows, columns, [&] { return static_cast<float>(random.uniform()) - 0.5F; }));
}

void make_largest_entry_positive(Eigen::MatrixXf& directions) {
  for (Eigen::Index c = 0; c < directions.cols(); ++c) {
    Eigen::Index largest = 0;
    directions.col(c).cwiseAbs().maxCoeff(&largest);
    if (directions(largest, c) < 0) {
      directions.col(c) *= -1;
    }
  }
}

}  // namespace

Eigen::MatrixXd PrincipalComponents::project(const RowMatrixF& rows) const {
  Eigen::MatrixXf points = rows * directions;
  points.rowwise() -= mean * directions;
  return points.cast<double>();
}

PrincipalComponents principal_components(const RowMatrixF& rows, Eigen::Index count) {
  const Centred centred(rows);
  const Eigen::Index wanted = std::min({count, rows.rows(), rows.cols()});
  PrincipalComponents result{centred.mean().cast<float>(), Eigen::MatrixXf::Zero(rows.cols(), count),
                             std::vector<double>(static_cast<std::size_t>(count), 0.0)};
  if (wanted == 0 || centred.squares() == 0) {
    return result;
  }
  Eigen::MatrixXf block = fixed_start(rows.cols(), std::min({count + kSpare, rows.rows(), rows.cols()}));
  Eigen::VectorXd eigenvalues = Eigen::VectorXd::Zero(wanted);
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    block = orthonormal(centred.transposed_times(centred.times(block)));
    const Eigen::MatrixXd image = centred.times(block).cast<double>();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> ritz(image.transpose() * image);
    block =
        block * ritz.eigenvectors().rowwise().reverse().cast<float>();  // Eigen sorts by rising eigenvalue
    const Eigen::VectorXd next = ritz.eigenvalues().reverse().head(wanted);
    const bool settled = (next - eigenvalues).cwiseAbs().maxCoeff() <= kSettled * centred.squares();
    eigenvalues = next;
    if (settled) {
      break;
    }
  }
  result.directions.leftCols(wanted) = block.leftCols(wanted);
  make_largest_entry_positive(result.directions);
  for (Eigen::Index c = 0; c < wanted; ++c) {
    result.shares[static_cast<std::size_t>(c)] = std::clamp(eigenvalues[c] / centred.squares(), 0.0, 1.0);
  }
  return result;
}

}  // namespace eldr::calibrator
