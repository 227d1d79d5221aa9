"""How good the images of a run are, apart from what they show: scores and features, recorded."""
