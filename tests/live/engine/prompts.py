"""Real prompts, and what the model says next by a pass without cache or batch."""

PROMPTS = (
    "The capital of France is",
    "Write a short poem about the sea.",
    "def fibonacci(n):\n    if n < 2:\n",
    "Water boils at a temperature of",
    "Translate to French: Good morning, my friend.",
    "The three laws of thermodynamics state that",
    "Once upon a time, in a small village near the mountains,",
    "SELECT name, age FROM users WHERE",
    "Explain why the sky is blue to a child of six years.",
    "The quick brown fox jumps over",
    "In 1969, the first humans landed on",
    "A recipe for pancakes needs flour, eggs and",
    "What is the difference between a list and a tuple in Python?",
    "Dear Sir or Madam,\n\nI am writing to you about",
    "The square root of 144 is",
    "Photosynthesis is the process by which plants",
    "List five countries in Africa:\n1.",
    "To be, or not to be, that is",
    "The train leaves at 9:45 and arrives at 11:10, so the journey takes",
    "Shakespeare wrote many plays, among them Hamlet, Macbeth and",
)
