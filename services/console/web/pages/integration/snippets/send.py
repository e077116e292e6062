import base64, hashlib, hmac, os, urllib.request

body = b'{"tenant_id":"TENANT","device_id":"device-1","session_id":"session-1","sdk_meta":{"sdk_version":"1.0.0","platform":"android","batch_type":"start"},"scorer":{"rasp_score":0,"rasp_action":"ALLOW","rasp_flags":[]},"signals":{"root":{},"emulator":{},"debugger":{},"tamper":{},"ecosystem":{},"network":{}}}'
digest = hmac.new(os.environ['HMAC_SECRET'].encode(), body, hashlib.sha256).digest()
request = urllib.request.Request(
    os.environ['INGEST_URL'] + '/v1/rasp/ingest',
    data=body,
    headers={
        'content-type': 'application/json',
        'x-service-signature': base64.b64encode(digest).decode(),
    },
)
with urllib.request.urlopen(request) as response:
    print(response.status, response.read().decode())
