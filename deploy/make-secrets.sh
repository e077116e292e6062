#!/usr/bin/env bash
# Creates the secrets that deploy/compose.yaml mounts into its containers as files, once; existing
# ones are never overwritten, because secrets sealed under a lost MASTER_KEY can never be read
# again. The folder is private to you; the files in it are readable, because each container reads
# only the ones mounted into it, as its own user.
set -euo pipefail
umask 022
dir=${1:-"$(dirname "$0")/secrets"}
mkdir -p "$dir"
chmod 700 "$dir"

# Where processes reach the servers: by default their names in compose and in the chart's own. For
# servers of your own: POSTGRES_HOST=db.example.com:5432 deploy/make-secrets.sh. A file that exists
# stays as it is: for another address edit the files *_url_*.
nats=${NATS_HOST:-nats:4222}
postgres=${POSTGRES_HOST:-postgres:5432}
clickhouse=${CLICKHOUSE_HOST:-clickhouse:8123}

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
once grafana_admin_password "$(hex 16)"
# NATS has one user per process, and one for operators. A letter first: some clients read digits
# after a colon as the port.
nats_users="di ingest scorer delivery console migrate"
for user in $nats_users; do once "nats_password_$user" "p$(hex 24)"; done
# PostgreSQL and ClickHouse likewise: `di` is the owner, who migrates.
postgres_processes="scorer api delivery console"
clickhouse_processes="scorer api console"
once postgres_password "p$(hex 24)"
for name in $postgres_processes; do once "postgres_password_$name" "p$(hex 24)"; done
once clickhouse_password "p$(hex 24)"
for name in $clickhouse_processes; do once "clickhouse_password_$name" "p$(hex 24)"; done

# Derived from the passwords: the same secrets in the form that each program reads.
read_secret() { cat "$dir/$1"; }
once nats_passwords "$(for user in $nats_users; do
  echo "password_of_$user: \"$(read_secret "nats_password_$user")\""
done)"
for user in $nats_users; do
  once "nats_url_$user" "nats://$user:$(read_secret "nats_password_$user")@$nats"
done

# Between three nats-servers (cluster/README.md) of these names.
once nats_route_password "p$(hex 24)"
once nats_cluster "$(
  password=$(read_secret nats_route_password)
  echo "authorization { user: route, password: \"$password\", timeout: 2 }"
  echo "routes: ["
  for server in ${NATS_SERVERS:-nats-1 nats-2 nats-3}; do
    echo "  \"nats-route://route:$password@$server:6222\""
  done
  echo "]"
)"

# The keys of the other processes, which have no MASTER_KEY: HKDF-SHA256 of it, with no salt. `di
# secrets keys` prints the same.
hmac() { openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" -binary; }
zeros=$(printf '0%.0s' $(seq 64))
extracted=$(read_secret master_key | base64 -d | hmac "$zeros" | od -An -tx1 | tr -d ' \n')
derive() { printf 'device-intelligence %s v1\001' "$1" | hmac "$extracted"; }
once edge_key "$(derive edge | base64)"
once telemetry_key "$(derive 'telemetry batch' | base64)"
once webhook_key "$(derive 'webhook secret' | base64)"
# The public half of an Ed25519 key: what stands before 32 bytes of a private key in DER is RFC 8410.
ed25519='\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20'
once directory_public_key "$({ printf "$ed25519"; derive 'directory signature'; } |
  openssl pkey -inform DER -pubout -outform DER | tail -c 32 | base64)"
database=device_intelligence
once postgres_url_migrate "postgres://di:$(read_secret postgres_password)@$postgres/$database"
once postgres_role_passwords "$(
  separator="{"
  for name in $postgres_processes; do
    printf '%s"%s":"%s"' "$separator" "$name" "$(read_secret "postgres_password_$name")"
    separator=","
  done
  printf '}'
)"
for name in $postgres_processes; do
  account="${database}_$name:$(read_secret "postgres_password_$name")"
  once "postgres_url_$name" "postgres://$account@$postgres/$database"
done
once clickhouse_url_migrate "http://di:$(read_secret clickhouse_password)@$clickhouse/$database"
once clickhouse_hashes "$(for name in $clickhouse_processes; do
  hash=$(read_secret "clickhouse_password_$name" | tr -d '\n' | openssl dgst -sha256 -r | cut -d' ' -f1)
  echo "export SHA256_OF_${name^^}=$hash"
done)"
for name in $clickhouse_processes; do
  account="$name:$(read_secret "clickhouse_password_$name")"
  once "clickhouse_url_$name" "http://$account@$clickhouse/$database"
done
