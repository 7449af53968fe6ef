"""Scripts that make documents, figures and data of this repository."""
