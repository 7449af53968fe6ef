"""The pages of the dashboard, for Streamlit; what they show is made in ``dashboard.what_if``."""
