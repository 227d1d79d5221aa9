"""Round trips between images and texts: their routes, the steps that models take, their records."""
