#!/usr/bin/env bash
# Pins the images of the compose files and the Dockerfile: queries the image registry for the digest of
# each tag and writes NAME_IMAGE=image:tag@sha256:... into deploy/.env, which docker compose reads.
# Other lines of that file stay. Run it once, check the result, and run it again to get newer
# images.
set -euo pipefail
cd "$(dirname "$0")"
touch .env
pinned=$(mktemp)
trap 'rm -f "$pinned"' EXIT
images=$(grep -ohE '\$\{[A-Z]+_IMAGE:-[^}]+\}' compose*.yaml | sort -u)
for image in $images; do
  variable=${image#\$\{}
  variable=${variable%%:-*}
  tag=${image#*:-}
  tag=${tag%\}}
  digest=$(docker buildx imagetools inspect "$tag" --format '{{.Manifest.Digest}}')
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "no digest of $tag: $digest" >&2; exit 1; }
  echo "$variable=$tag@$digest" | tee -a "$pinned"
done
grep -vE '^[A-Z]+_IMAGE=' .env >>"$pinned" || true
cat "$pinned" >.env
