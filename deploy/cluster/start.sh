#!/bin/sh
# Starts a member of the cluster with nats.conf in this folder; NATS_SERVER names the program. A
# server that becomes a member on the store of a single server removes every stream in it half a
# minute later, so such a store is refused: see "From one server to three" in README.md.
set -eu
store=$(printf %s "$NATS_STORE_DIR" | tr -d '"')
streams=no
member=no
for found in "$store"/jetstream/*/streams/*/; do [ -d "$found" ] && streams=yes; done
for found in "$store"/jetstream/*/_js_/_meta_/; do [ -d "$found" ] && member=yes; done
if [ "$streams" = yes ] && [ "$member" = no ]; then
  echo "$store is the store of a single server: as a member of a cluster it would lose every" \
    'stream. Start with an empty store, and see "From one server to three" in' \
    'deploy/cluster/README.md.' >&2
  exit 1
fi
exec "${NATS_SERVER:-nats-server}" --config "$(dirname "$0")/nats.conf"
