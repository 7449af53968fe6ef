"""The pages, in their order: the file of each, and what it is called."""

PAGES = {
    "what_if": "What if",
    "timeline": "Timeline",
    "hardware": "Hardware",
}
