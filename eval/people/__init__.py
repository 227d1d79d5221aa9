"""Human audit: draw what to label, label it in a browser, analyze the labels, calibrate by them."""
