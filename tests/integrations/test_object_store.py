"""A run and its copy in an S3 bucket, by s3fs against moto's server."""

from other_side import run_script


def test_a_run_and_its_copy_in_a_bucket(run, tmp_path, checked):
    made, live = run_script("s3fs", "copy_to_s3.py", run.path, tmp_path)
    assert made["copied"] > 20 and made["again"] == 0
    assert "was taken over by another directory" in live["refused"]
    checked("S3", made["version"], "s3fs, moto's server: record files equal", made["equal"] + live["equal"], 10)
