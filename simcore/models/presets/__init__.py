"""The models known by name, one JSON file of facts each; the file's name is the model's.

``repository`` is its home on the Hugging Face hub, ``source`` tells where the facts were read, ``published`` what the
publisher says of its size, and ``config`` holds the keys of its ``config.json`` that its family's reader knows.
"""
