// Receives the webhooks of TENANT: WEBHOOK_SECRET=whsec_... node receive.mjs
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64')
const seen = new Set() // yours is a table with a unique key

function isGenuine(headers, body) {
  const { 'webhook-id': id = '', 'webhook-timestamp': at = '' } = headers
  if (!(Math.abs(Date.now() / 1000 - Number(at)) <= 300)) return false
  const digest = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64')
  const expected = Buffer.from(`v1,${digest}`)
  return (headers['webhook-signature'] ?? '').split(' ').some((text) => {
    const given = Buffer.from(text)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks) // the raw bytes, before any parser
  if (request.method !== 'POST' || request.url !== 'WEBHOOK_PATH')
    return response.writeHead(404).end()
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end()
  const isNew = !seen.has(request.headers['webhook-id'])
  seen.add(request.headers['webhook-id'])
  response.writeHead(204).end()
  if (isNew) console.log(JSON.parse(body).alert_id)
}).listen(WEBHOOK_PORT, '127.0.0.1')
