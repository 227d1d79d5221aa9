"""Files that runs keep on disk: cases, rows in spools, places in files, answers of judges."""
