"""REPORT: results on disk as tables, figures and one self-contained HTML page."""

from doxa.report.page import page, write

__all__ = ["page", "write"]
