// SPDX-License-Identifier: Apache-2.0
// Where events about policies go; kube::EventRecorder in production, a list in tests. Thread-safe.
#pragma once

#include <string>

#include "lib/kube/event_recorder.h"

namespace eldr::op {

class EventSink {
 public:
  virtual ~EventSink() = default;
  /// `policy` is the object as read.
  virtual void record(const kube::Json& policy, kube::EventType type, const std::string& reason,
                      const std::string& action, const std::string& note) = 0;
};

/// The recorder must outlive it.
class RecorderSink final : public EventSink {
 public:
  explicit RecorderSink(kube::EventRecorder& recorder) : recorder_(recorder) {}
  void record(const kube::Json& policy, kube::EventType type, const std::string& reason,
              const std::string& action, const std::string& note) override {
    recorder_.record(kube::reference_to(kube::kEldrPolicies, policy), type, reason, action, note);
  }

 private:
  kube::EventRecorder& recorder_;
};

}  // namespace eldr::op
