"""The workbook as documents: notebooks, executed copies, tables and pages."""
