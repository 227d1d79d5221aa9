"""``python -m counterprior``: the same as the `counterprior` command."""

from .cli.main import app

if __name__ == "__main__":
    app()
