"""Load a dataset with an older `datasets`, and print its rows.

python read_datasets.py FOLDER
"""

import json
import sys
from importlib.metadata import version
from tempfile import TemporaryDirectory

from datasets import load_dataset

with TemporaryDirectory() as cache:
    for split in load_dataset(sys.argv[1], cache_dir=cache).values():
        for row in split:
            sys.stdout.write(json.dumps(row) + "\n")
sys.stdout.write(json.dumps({"version": version("datasets")}) + "\n")
