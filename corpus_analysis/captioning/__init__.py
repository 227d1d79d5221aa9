"""Does a captioner name the left one first? Its captions of images with two things side by side,
and people's captions of the same images."""
