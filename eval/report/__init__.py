"""From judged runs to one static site that needs no network, and to the log formats of others.

`contents` gathers, `leaderboard` compares, `plots` and `gallery` show, `site` writes.
"""
