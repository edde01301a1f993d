"""A report as one page of HTML that needs no network: curves, tables, pictures. Whatever comes from files is escaped."""

from gumbeldore.runs.page.content import Cell, Chart, Curve, Gallery, Page, Picture, Point, Section, Table
from gumbeldore.runs.page.rendering import render

__all__ = ["Cell", "Chart", "Curve", "Gallery", "Page", "Picture", "Point", "Section", "Table", "render"]
