"""Organisms: tiny text-to-image models that learned a known prior from drawn scenes.

Instruments for the study of causes: the data's order bias is set, the model's is measured.
"""
