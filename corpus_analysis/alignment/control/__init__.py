"""The control of the layout stage: do people name the left one first, by their own boxes?

`boxed_pairs` finds the boxes that a caption's words mean, `subsets` counts, `judge_bias` compares a
judge with the boxes on the same images, `result` writes all of it, and `box_control` is the run.
"""
