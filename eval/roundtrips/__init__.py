"""Round trips between images and texts: their routes, the steps that models take, what is kept."""
