"""Suites: public benchmarks that are judged by their own package, in an environment of its own."""

from trajsmith.evals.suites.suite import SUITES, CallRecord, Suite, SuiteTask

__all__ = ["SUITES", "CallRecord", "Suite", "SuiteTask"]
