"""Human annotators: samples to label, the page to label on, and settings that fit the labels."""
