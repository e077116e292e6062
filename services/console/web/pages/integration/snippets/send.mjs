import { createHmac } from 'node:crypto'

const body = '{"tenant_id":"TENANT","device_id":"device-1","session_id":"session-1","sdk_meta":{"sdk_version":"1.0.0","platform":"android","batch_type":"start"},"scorer":{"rasp_score":0,"rasp_action":"ALLOW","rasp_flags":[]},"signals":{"root":{},"emulator":{},"debugger":{},"tamper":{},"ecosystem":{},"network":{}}}'
const signature = createHmac('sha256', process.env.HMAC_SECRET).update(body).digest('base64')
const response = await fetch(process.env.INGEST_URL + '/v1/rasp/ingest', {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-service-signature': signature },
  body,
})
console.log(response.status, await response.text())
