#!/bin/sh
# Start the server of the task once, and succeed when it answers.
cd {server} || exit 1
if [ ! -e server.log ]; then
    nohup trajsmith task serve task --http {address} --transcript transcript.jsonl > server.log 2>&1 &
fi
exec python3 -c "import socket; socket.create_connection(('{host}', {port}), 2)"
