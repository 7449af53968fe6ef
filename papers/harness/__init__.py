"""What papers share: what a study is, how it is run, and the rule by which it is judged."""
