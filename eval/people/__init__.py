"""Human audit: draw what to label, label it in a browser, analyse the labels, calibrate by them."""
