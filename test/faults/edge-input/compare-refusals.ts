/**
 * Whether the bytes or the times of refusals reveal why a request is not authenticated. Requests of
 * every kind go over one connection in random order; for every two kinds the chance that one takes
 * longer must be even.
 */
import { isDeepStrictEqual } from 'node:util'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { describeRefusedRequest } from '#shared/core/telemetry/signature-form.ts'
import { refusals } from '../../../services/ingest/refusals.ts'
import { createConnection, type RawClient } from '../../support/http/raw-http.ts'
import { type Signer, toRequest, validBody } from '../../support/telemetry/raw-submissions.ts'
import type { Tenants } from './rig.ts'

export type Kind = { name: string; make: (more: object) => Buffer }

/** Requests that all get the same 401. */
export function toUnauthenticated(tenants: Tenants): Kind[] {
  const { acme, globex, suspended, keyless, unknown } = tenants
  const signedBy = (signer: Signer, secret: string) => (more: object) => {
    const body = JSON.stringify({ ...validBody(signer.tenantId), ...more })
    return toRequest(body, signBody(body, secret), requestId)
  }
  const respelled = (more: object) => {
    const body = JSON.stringify({ ...validBody(acme.tenantId), ...more })
    // As long as a correct one, and without its padding.
    const signature = `${signBody(body, acme.secret).slice(0, 43)}A`
    return toRequest(body, signature, requestId)
  }
  return [
    { name: 'a wrong signature', make: signedBy(acme, globex.secret) },
    { name: 'another spelling', make: respelled },
    { name: 'an unknown tenant', make: signedBy(unknown, unknown.secret) },
    { name: 'a suspended tenant', make: signedBy(suspended, suspended.secret) },
    { name: 'a suspended tenant, wrongly signed', make: signedBy(suspended, acme.secret) },
    { name: 'a tenant without a key', make: signedBy(keyless, keyless.secret) },
  ]
}

/** Requests without a signature, which all get the same other 401. */
export function toUnsigned({ acme, suspended, keyless, unknown }: Tenants): Kind[] {
  return [acme, suspended, keyless, unknown].map(({ tenantId }) => ({
    name: `unsigned, of ${tenantId}`,
    make: (more) => toRequest(JSON.stringify({ ...validBody(tenantId), ...more }), null, requestId),
  }))
}

/** The same in every request, so that answers can be compared byte by byte. */
const requestId = 'X-Request-Id: alike\r\n'

/**
 * @returns the distinct responses, without the date and without the parts that describe the request
 * @throws when a response contains anything about its request that the request alone does not show
 */
export async function compareAnswers(client: RawClient, kinds: readonly Kind[]): Promise<string[]> {
  const answers = new Set<string>()
  for (const { make } of kinds) {
    for (const more of [{}, { filler: 'x'.repeat(60_000) }]) {
      const request = make(more)
      const { text } = await client.send(request)
      answers.add(withoutRequest(text, request))
    }
  }
  return [...answers]
}

function withoutRequest(response: string, request: Buffer): string {
  const at = request.indexOf('\r\n\r\n')
  const header = /^x-service-signature: (.*)\r$/im.exec(request.toString('latin1', 0, at + 2))?.[1]
  const described = describeRefusedRequest(request.subarray(at + 4), header)
  const [head = '', body = ''] = response.split('\r\n\r\n')
  const { detail, signature_form, received, ...problem } = JSON.parse(body)
  const { signatureMissing, signatureInvalid } = refusals
  const usual = (header === undefined ? signatureMissing : signatureInvalid).problem.message
  const expected = { ...described, detail: described.detail ?? usual }
  if (!isDeepStrictEqual({ detail, signature_form, received }, expected)) throw new Error(body)
  const same = head.replace(/^(date|content-length): .*\r?\n?/gim, '')
  return `${same}\r\n\r\n${JSON.stringify(problem)}`
}

export type Alikeness = {
  /** Responses of each kind. */
  each: number
  medians: { name: string; us: number }[]
  /** For the pair of kinds that differs most: the chance that the first takes longer. */
  worst: { first: string; second: string; chance: number }
}

/**
 * @param options.each requests of each kind
 * @param options.bodyBytes added to every body, because an HMAC takes longer over more bytes
 * @param options.random in [0, 1)
 */
export async function compareTimes(
  port: number,
  kinds: readonly Kind[],
  options: { each: number; bodyBytes: number; random: () => number },
): Promise<Alikeness> {
  const { each, bodyBytes, random } = options
  const connection = createConnection(port)
  const filler = { filler: 'x'.repeat(bodyBytes) }
  const times: number[][] = kinds.map(() => [])
  for (let round = -Math.ceil(each / 20); round < each; round++) {
    // Every kind once in each round, in random order, so that a disturbance hits all kinds alike.
    // All requests are made first, because making one slows down the next step.
    const order = kinds.map((kind, at) => ({ kind, at, rank: random(), made: kind.make(filler) }))
    for (const { kind, at, made } of order.sort((a, b) => a.rank - b.rank)) {
      const sentMs = performance.now()
      const { status } = await connection.send(made)
      const tookMs = performance.now() - sentMs
      if (status !== 401) throw new Error(`${kind.name} got ${status}`)
      // The first rounds warm up.
      if (round >= 0) times[at]!.push(tookMs)
    }
  }
  connection.close()
  let worst = { first: '', second: '', chance: 0.5 }
  for (const [a, first] of kinds.entries()) {
    for (const [b, second] of kinds.entries()) {
      const chance = a < b ? toChance(times[a]!, times[b]!) : 0.5
      if (Math.abs(chance - 0.5) >= Math.abs(worst.chance - 0.5)) {
        worst = { first: first.name, second: second.name, chance }
      }
    }
  }
  const medians = kinds.map(({ name }, at) => {
    const sorted = [...times[at]!].sort((x, y) => x - y)
    return { name, us: Math.round(sorted[sorted.length >> 1]! * 1_000) }
  })
  return { each, medians, worst }
}

/**
 * Mann and Whitney's U as a share: the chance that one of `a` is greater than one of `b`, ties
 * counted half. For n equally distributed values each it is 0.5 within about 1 / sqrt(6 n).
 */
function toChance(a: readonly number[], b: readonly number[]): number {
  const all = [...a.map((value) => ({ value, own: 1 })), ...b.map((value) => ({ value, own: 0 }))]
  all.sort((x, y) => x.value - y.value)
  let ranks = 0
  for (let at = 0; at < all.length; ) {
    let end = at
    while (end < all.length && all[end]!.value === all[at]!.value) end++
    const rank = (at + 1 + end) / 2
    for (; at < end; at++) ranks += all[at]!.own * rank
  }
  return (ranks - (a.length * (a.length + 1)) / 2) / (a.length * b.length)
}
