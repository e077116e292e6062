#!/usr/bin/env bash
# Makes the secrets that deploy/compose.yaml hands to its containers as files, once; what exists is
# never overwritten, since nothing sealed under a lost MASTER_KEY can be read again. The folder is
# private to you; the files in it are readable, because each container reads only the ones mounted
# into it, under a user of its own.
set -euo pipefail
umask 022
dir=${1:-"$(dirname "$0")/secrets"}
mkdir -p "$dir"
chmod 700 "$dir"

hex() { head -c "$1" /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# once NAME VALUE: writes the secret unless there is one.
once() {
  if [ ! -e "$dir/$1" ]; then
    printf '%s\n' "$2" >"$dir/$1"
    echo "made $dir/$1"
  fi
}

once master_key "$(head -c 32 /dev/urandom | base64)"
once admin_token "$(hex 32)"
# A letter first: some NATS clients take digits after a colon for the port.
once nats_password "p$(hex 24)"
once postgres_password "p$(hex 24)"
once clickhouse_password "p$(hex 24)"

# What follows from the passwords: the same secrets in the form each program reads.
read_secret() { cat "$dir/$1"; }
once nats_auth "authorization { user: di, password: $(read_secret nats_password) }"
once nats_url "nats://di:$(read_secret nats_password)@nats:4222"
once postgres_url "postgres://di:$(read_secret postgres_password)@postgres:5432/device_intelligence"
once clickhouse_url "http://di:$(read_secret clickhouse_password)@clickhouse:8123/device_intelligence"
