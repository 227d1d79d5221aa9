"""The drawing library: sprites, people, poses, effects, scenes, and how to find and describe them.

Knows no suite; imports the root modules only."""
