BODY='{"tenant_id":"TENANT","device_id":"device-1","session_id":"session-1","sdk_meta":{"sdk_version":"1.0.0","platform":"android","batch_type":"start"},"scorer":{"rasp_score":0,"rasp_action":"ALLOW","rasp_flags":[]},"signals":{"root":{},"emulator":{},"debugger":{},"tamper":{},"ecosystem":{},"network":{}}}'
SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$HMAC_SECRET" -binary | base64)
curl -sS "$INGEST_URL/v1/rasp/ingest" \
  -H 'content-type: application/json' \
  -H "x-service-signature: $SIGNATURE" \
  --data-binary "$BODY"
