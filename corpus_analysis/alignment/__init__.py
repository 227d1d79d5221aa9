"""From pairs with images to the rate at which the first-mentioned thing is on the left.

`layout_judge` asks a judge about each image, `rates` computes the result, `page` and `dataset`
write it; `flips` makes a training set of verified pairs, and `control` measures the same rate on
people's captions and boxes.
"""
