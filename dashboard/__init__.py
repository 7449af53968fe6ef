"""Everything that draws: plotly figures and the self-contained HTML report."""
