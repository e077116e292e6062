// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs jose.
import { readFileSync } from 'node:fs'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const { KEYS_URL, TENANT, AUDIENCE, NONCE } = process.env
// One for the process. Keys are kept for an hour; an unknown kid fetches them at once.
const keys = createRemoteJWKSet(new URL(KEYS_URL), { cacheMaxAge: 3_600_000 })

export async function verifyVerdict(token, tenant, audience, nonce) {
  const options = { algorithms: ['ES256'], audience: tenant, clockTolerance: 60 }
  const { payload } = await jwtVerify(token, keys, options)
  if (payload.purpose === audience && payload.nonce === nonce) return payload
  throw new Error('it answers another question')
}

const token = readFileSync(0, 'utf8').trim()
const verdict = await verifyVerdict(token, TENANT, AUDIENCE, NONCE)
process.stdout.write(`${JSON.stringify(verdict)}\n`)
