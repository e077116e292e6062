/**
 * The baseline of the edge: a bare node:http server that reads the body, checks its HMAC and
 * answers with the bytes of an edge's answer. It stores nothing.
 */
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const answer = '{"status":"accepted","rasp_score":0,"rasp_action":"ALLOW",'.concat(
  '"event_id":"evt_0123456789abcdefghijkl","flags":[]}',
)
const headers = [
  'content-type',
  'application/json; charset=utf-8',
  'content-length',
  String(answer.length),
  'x-request-id',
  'req_0123456789ab-1a2b3',
]

process.on('message', (secret: string) => {
  const key = createSecretKey(Buffer.from(secret))
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
      const sent = String(request.headers['x-service-signature'] ?? '')
      const given = Buffer.from(sent, 'base64')
      const expected = createHmac('sha256', key).update(body).digest()
      const valid = given.length === expected.length && timingSafeEqual(expected, given)
      response.writeHead(valid ? 200 : 401, headers)
      response.end(answer, 'latin1')
    })
  })
  server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
})
process.send!('ready')
