"""The control of the layout stage: do people name the left one first, by their own boxes?

`boxed` finds the boxes that a caption's words mean, `subsets` counts, `judged` compares a judge
with the boxes on the same images, `run` puts them together and `page` shows them.
"""
