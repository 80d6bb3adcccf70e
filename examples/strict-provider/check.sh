#!/bin/sh
# What a test in another language does, with curl: send, then read the provider's log.
#   sh examples/strict-provider/check.sh http://127.0.0.1:8080
set -eu
url=$1
curl -s -X DELETE "$url/_requests" >/dev/null
# A result without its call: refused with 400, in OpenAI's words.
curl -s "$url/v1/chat/completions" -H 'content-type: application/json' -d '{
  "model": "gpt-4o",
  "messages": [
    {"role": "user", "content": "Go on."},
    {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
  ]
}'
echo
curl -s "$url/_requests"
echo
