#!/bin/sh
# Play the transcript again on the task's initial state, and judge states, calls and answers.
exec trajsmith task judge /tests/task --transcript {server}/transcript.jsonl --answer /workdir/answer.txt --out /logs/verifier/reward.json
