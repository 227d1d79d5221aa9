"""Metrics and decisions as pure functions over boxes, masks, depth maps and recorded detections."""
