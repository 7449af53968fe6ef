"""The pages, in their order: the file of each, and what it is called.

Streamlit puts the folder of a page before all others on the path, so no page may have the name of a package.
"""

PAGES = {
    "what_if": "What if",
    "capacity": "Capacity",
    "timeline": "Timeline",
    "policy_comparison": "Policies",
    "hardware": "Hardware",
    "measured_engines": "Fidelity",
}
