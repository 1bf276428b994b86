#!/bin/sh
# Make the calls and say the messages of an accepted play.
exec trajsmith task call --url http://{address}/mcp --file /solution/transcript.jsonl
