"""URLs to pictures: what may be fetched, how much of it, and what is kept."""
