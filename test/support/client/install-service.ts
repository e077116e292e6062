/**
 * A small stand-in of ingest that knows installs: challenges, registrations and signed telemetry in
 * exactly the form of the wire. For tests of what speaks to it: the client and the examples.
 */
import { createHmac, randomBytes } from 'node:crypto'

export type Asked = {
  method: string
  path: string
  headers: Headers
  body: Buffer
}

export type Answered = { status: number; json: Record<string, unknown> }

type Token = { t: string; d: string; exp: number }

export type InstallServiceOptions = {
  tenantId: string
  hmacSecret: string
  nowMs: () => number
  /** How long a token lives, in ms. */
  tokenLifeMs?: number
  /** What is said of evidence. */
  judge?: (evidence: Record<string, unknown>) => Record<string, unknown>
}

const challengeLifeMs = 120_000
const mac = (key: string | Buffer, data: string | Buffer) => createHmac('sha256', key).update(data)
const refuse = (status: number, code: string): Answered => ({
  status,
  json: { code, detail: code },
})

export function createInstallService(options: InstallServiceOptions) {
  const { tenantId, hmacSecret, nowMs, tokenLifeMs = 30 * 86_400_000 } = options
  const { judge = ({ provider }) => ({ provider, verdict: 'none', reason: null, level: 'none' }) } =
    options
  const challenges = new Map<string, number>()
  const asked: Asked[] = []
  const registrations: Record<string, unknown>[] = []
  let root = randomBytes(32)
  let epoch = 1

  const toInstallKey = (token: string) => mac(root, token).digest('base64url')
  const makeToken = (payload: Token): string => {
    const start = `ins1.${epoch}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`
    return `${start}.${mac(root, start).digest('base64url')}`
  }
  const readToken = (text: string): Token | null => {
    const [, , payload, given] = text.split('.')
    const start = text.slice(0, text.lastIndexOf('.'))
    if (given !== mac(root, start).digest('base64url')) return null
    return JSON.parse(Buffer.from(payload!, 'base64url').toString()) as Token
  }
  const isSigned = ({ headers, body }: Asked, key: string): boolean =>
    headers.get('x-service-signature') === mac(key, body).digest('base64') &&
    headers.get('content-type') === 'application/json'

  const giveChallenge = (): Answered => {
    const challenge = randomBytes(40).toString('base64url')
    const endMs = nowMs() + challengeLifeMs
    challenges.set(challenge, endMs)
    return { status: 200, json: { challenge, expires_at: new Date(endMs).toISOString() } }
  }
  const register = (request: Asked): Answered => {
    if (!isSigned(request, hmacSecret)) return refuse(401, 'signature_invalid')
    const body = JSON.parse(request.body.toString()) as Record<string, unknown>
    const names = ['tenant_id', 'device_id', 'challenge', 'app', 'device_model', 'evidence']
    const unknown = Object.keys(body).filter((name) => !names.includes(name))
    if (unknown.length > 0 || body.tenant_id !== tenantId) return refuse(400, 'invalid_body')
    const endMs = challenges.get(body.challenge as string)
    if (endMs === undefined || endMs < nowMs()) {
      const errors = [{ path: '$.challenge', message: 'has expired' }]
      return { status: 400, json: { code: 'invalid_body', detail: 'no', errors } }
    }
    registrations.push(body)
    const exp = nowMs() + tokenLifeMs
    const token = makeToken({ t: tenantId, d: body.device_id as string, exp })
    const attestation = judge(body.evidence as Record<string, unknown>)
    const expires_at = new Date(exp).toISOString()
    const credentials = { install_token: token, install_key: toInstallKey(token), expires_at }
    return { status: 200, json: { status: 'registered', ...credentials, attestation } }
  }
  const accept = (request: Asked): Answered => {
    const token = request.headers.get('x-service-install')
    if (!isSigned(request, token === null ? hmacSecret : toInstallKey(token))) {
      return refuse(401, 'signature_invalid')
    }
    const event = JSON.parse(request.body.toString()) as Record<string, unknown>
    const install = token === null ? null : readToken(token)
    if (token !== null) {
      if (install === null || install.exp <= nowMs()) return refuse(401, 'signature_invalid')
      const isOwn = install.t === event.tenant_id && install.d === event.device_id
      if (!isOwn) return refuse(401, 'signature_invalid')
    }
    const score = { rasp_score: 0, rasp_action: 'ALLOW', event_id: 'evt_1', flags: [] }
    return { status: 200, json: { status: 'accepted', ...score } }
  }
  const answer = (request: Asked): Answered => {
    asked.push(request)
    switch (`${request.method} ${request.path}`) {
      case 'GET /v1/rasp/challenge':
        return giveChallenge()
      case 'POST /v1/rasp/installs':
        return register(request)
      case 'POST /v1/rasp/ingest':
        return accept(request)
      default:
        return refuse(404, 'not_found')
    }
  }
  const fetch = (async (url: unknown, init: RequestInit = {}) => {
    const { method = 'GET', headers, body } = init
    const { pathname } = new URL(String(url))
    const bytes = Buffer.from((body ?? []) as Uint8Array)
    const { status, json } = answer({
      method,
      path: pathname,
      headers: new Headers(headers),
      body: bytes,
    })
    return new Response(JSON.stringify(json), { status })
  }) as typeof globalThis.fetch
  return {
    answer,
    /** Answers in the place of the runtime's `fetch`. */
    fetch,
    /** Every request, in its order. */
    asked,
    /** The bodies of registrations that were accepted. */
    registrations,
    /** Refuses every token that was given out. */
    rotate: () => {
      root = randomBytes(32)
      epoch += 1
    },
    count: (path: string) => asked.filter((request) => request.path === path).length,
  }
}
