"""The drawing library: sprites, people, poses, effects and scenes, and finding them in an image.

Knows no suite. May import the root modules only."""
