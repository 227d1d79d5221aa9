"""The abstaining checker on images: a detector and the rules of SpatialBench-UC."""
