"""What runs keep on disk: records of cases, rows in spools, places in files, answers of judges."""
