"""What a study asks for: its file, the layout of its table, and the recipes that ship."""
