/**
 * What a submission that asks for a verdict is answered: a token of the answered score, which a
 * kept JWT library verifies, and nothing else that differs.
 */
import { createPrivateKey } from 'node:crypto'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { describe, expect, it, vi } from 'vitest'
import type { EventEvidence } from '#shared/core/installs/event-evidence.ts'
import type { InstallFacts } from '#shared/core/installs/install-token.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { createVerdictSigner, type VerdictSigner } from '#shared/core/verdicts/verdict-token.ts'
import { createLog } from '#shared/io/process/log.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { makeVerdictKey } from '#shared/io/verdicts/make-verdict-key.ts'
import { decideClientBatch } from '../../../services/ingest/decide-client-batch.ts'
import {
  type DecideDeps,
  decideSubmission,
  decideVerified,
} from '../../../services/ingest/decide-submission.ts'
import { createVerdictIssuer } from '../../../services/ingest/verdicts/issue-verdict.ts'
import { keyOf, makeEdge, makeEdgeTenant } from '../../support/tenants/edge-tenant.ts'

const secret = keyOf('p')
const receivedAtMs = Date.parse('2026-03-01T09:30:00.789Z')
const { jwk, privateKey } = makeVerdictKey()
const keyBytes = Buffer.from(privateKey, 'base64')
const signer = createVerdictSigner(
  jwk.kid,
  createPrivateKey({ key: keyBytes, format: 'der', type: 'pkcs8' }),
)

const acme = makeEdgeTenant({
  policy: { hash: '', thresholds: defaultPolicy.thresholds, score: compilePolicy(defaultPolicy) },
})

const makeDeps = (tenant: Tenant, findSigner: () => VerdictSigner | null): DecideDeps =>
  makeEdge(tenant, {
    wallMs: () => receivedAtMs,
    issueVerdict: createVerdictIssuer({
      findSigner,
      issuer: 'https://di.example.com',
      log: createLog('test', 'silent'),
    }),
  })

const submission = (more: object = {}) => ({
  tenant_id: 'acme',
  device_id: 'pixel-1',
  session_id: 's-1',
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
  scorer: { rasp_score: -1, rasp_action: '', rasp_flags: [] },
  signals: {
    root: { magisk_detected: true },
    emulator: {},
    debugger: {},
    tamper: {},
    ecosystem: {},
    network: {},
  },
  ...more,
})
const asked = { verdict: { audience: 'checkout', nonce: 'nonce-1' } }

function answerOf(
  body: object,
  change: { tenant?: Partial<Tenant>; findSigner?: () => VerdictSigner | null } = {},
) {
  const bytes = Buffer.from(JSON.stringify(body))
  const deps = makeDeps({ ...acme, ...change.tenant }, change.findSigner ?? (() => signer))
  const decision = decideSubmission(
    bytes,
    { signature: signBody(bytes, secret), install: undefined },
    deps,
  )
  if (decision.kind === 'refused') throw new Error(JSON.stringify(decision.problem.errors))
  return { decision, answer: JSON.parse(decision.answer) as Record<string, unknown> }
}

describe('a submission that asks for a verdict', () => {
  it('gets a token with the claims of its answer, which jose verifies', async () => {
    const { decision, answer } = answerOf(submission({ ...asked, user_id: 'ada' }))
    const { payload, protectedHeader } = await jwtVerify(
      answer.verdict_token as string,
      createLocalJWKSet({ keys: [jwk] }),
      {
        algorithms: ['ES256'],
        issuer: 'https://di.example.com',
        audience: 'acme',
        currentDate: new Date(receivedAtMs),
      },
    )
    expect(protectedHeader).toEqual({ alg: 'ES256', kid: jwk.kid, typ: 'JWT' })
    const issuedAt = Math.floor(receivedAtMs / 1000)
    expect(payload).toEqual({
      iss: 'https://di.example.com',
      aud: 'acme',
      sub: 'pixel-1',
      sid: 's-1',
      evt: decision.eventId,
      usr: 'ada',
      purpose: 'checkout',
      nonce: 'nonce-1',
      act: answer.rasp_action,
      scr: answer.rasp_score,
      att: { provider: 'none', level: 'none', verdict: 'none' },
      iat: issuedAt,
      exp: issuedAt + 300,
    })
    expect(answer.rasp_score).toBeGreaterThan(0)
    expect(decision.verdict).toBe('issued')
  })

  it('has no user in its token when it named none', () => {
    const { answer } = answerOf(submission({ ...asked, user_id: null }))
    expect(claimsOf(answer)).not.toHaveProperty('usr')
  })

  const issueWith = (more: Partial<InstallFacts>, evidence: EventEvidence | null = null) => {
    const body = Buffer.from(JSON.stringify(submission(asked)))
    const deps = makeDeps(acme, () => signer)
    const facts: InstallFacts = {
      t: 'acme',
      d: '',
      a: null,
      p: 'key_attestation',
      v: 'verified',
      l: 'strongbox',
      r: null,
      k: null,
      s: [],
      f: { verified: true },
      iat: 0,
      exp: 0,
      ...more,
    }
    const install = { facts, head: { token_id: 't', attested_key: null } }
    const sender = { tenant: acme, attestation: {}, install, deviceHash: null }
    const decision = decideVerified(body, {
      sender,
      deps,
      rateLimit: null,
      evidence,
      measure: () => null,
    })
    if (decision.kind === 'refused') throw new Error('refused')
    return claimsOf(JSON.parse(decision.answer)).att
  }

  it('has the evidence of its install token in the token', () => {
    const attestation = { provider: 'key_attestation', level: 'strongbox', verdict: 'verified' }
    expect(issueWith({})).toEqual(attestation)
  })

  it('has no credit in it when the evidence of the event itself fails', () => {
    const failed = { provider: 'key_attestation', verdict: 'rejected', counter: null, signals: {} }
    const evidence = { ...failed, reason: 'signature_invalid' } as EventEvidence
    const attestation = { provider: 'key_attestation', level: 'none', verdict: 'rejected' }
    expect(issueWith({}, evidence)).toEqual(attestation)
  })

  it('has a genuine Play token without a verdict of the device as it is', () => {
    const attestation = { provider: 'play_integrity', level: 'none', verdict: 'verified' } as const
    const { provider: p, level: l, verdict: v } = attestation
    expect(issueWith({ p, l, v, f: { pi_device: [] } })).toEqual(attestation)
  })

  it('has the forced action of a test device of a sandbox in its token', () => {
    const body = submission({ ...asked, device_id: 'test-block' })
    const { answer } = answerOf(body, { tenant: { environment: 'sandbox' } })
    expect(claimsOf(answer)).toMatchObject({ act: 'BLOCK', scr: answer.rasp_score })
  })

  it('is in ASCII for any audience, nonce and ids', () => {
    const body = submission({
      device_id: 'Gerät 東京',
      verdict: { audience: 'Zahlung 😀', nonce: 'é"\\' },
    })
    const { decision, answer } = answerOf(body)
    expect(decision.answer).toMatch(/^[ -~]*$/)
    expect(claimsOf(answer)).toMatchObject({
      sub: 'Gerät 東京',
      purpose: 'Zahlung 😀',
      nonce: 'é"\\',
    })
  })

  it('is accepted without a token while the edge has no key, or when signing fails', () => {
    const none = answerOf(submission(asked), { findSigner: () => null })
    expect(none.answer).not.toHaveProperty('verdict_token')
    expect(none.answer.status).toBe('accepted')
    expect(none.decision.verdict).toBe('no_key')
    const broken = {
      kid: 'k',
      sign: () => {
        throw new Error('broken')
      },
    }
    const failed = answerOf(submission(asked), { findSigner: () => broken })
    expect(failed.answer).not.toHaveProperty('verdict_token')
    expect(failed.decision.verdict).toBe('failed')
  })

  it('signs nothing for one that asks for none', () => {
    const findSigner = vi.fn(() => signer)
    for (const body of [submission(), submission({ verdict: null })]) {
      const { decision, answer } = answerOf(body, { findSigner })
      expect(answer).not.toHaveProperty('verdict_token')
      expect(decision.verdict).toBeNull()
    }
    expect(findSigner).not.toHaveBeenCalled()
  })

  it('gets its token in a client batch too, each event its own', () => {
    const bodies = ['a', 'b'].map((nonce) =>
      submission({ device_id: nonce, verdict: { audience: 'login', nonce } }),
    )
    const batch = { tenant_id: 'acme', events: [...bodies, submission()] }
    const bytes = Buffer.from(JSON.stringify(batch))
    const deps = makeDeps(acme, () => signer)
    const decided = decideClientBatch(
      bytes,
      { signature: signBody(bytes, secret), install: undefined },
      deps,
    )
    if (decided.kind === 'refused') throw new Error('refused')
    const answers = decided.events.map(({ decision }) =>
      decision.kind === 'accepted' ? JSON.parse(decision.answer) : null,
    )
    expect(answers.map((answer) => answer.verdict_token && claimsOf(answer))).toMatchObject([
      { sub: 'a', nonce: 'a' },
      { sub: 'b', nonce: 'b' },
      undefined,
    ])
  })

  it('names its key in the header', () => {
    const { answer } = answerOf(submission(asked))
    expect(decodeProtectedHeader(answer.verdict_token as string).kid).toBe(jwk.kid)
  })
})

describe('ingest_answer', () => {
  const interfaceOnly: Partial<Tenant> = { ingestAnswer: 'interface' }

  it('full tells the flags, and warnings in a sandbox', () => {
    const body = submission({ userId: 'ada' })
    expect(Object.keys(answerOf(body).answer)).toEqual([
      'status',
      'rasp_score',
      'rasp_action',
      'event_id',
      'flags',
    ])
    const { answer } = answerOf(body, { tenant: { environment: 'sandbox' } })
    expect(answer.warnings).toHaveLength(1)
  })

  it.each(['live', 'sandbox'] as const)(
    'interface tells exactly four fields, %s',
    (environment) => {
      const body = submission({ userId: 'ada' })
      const full = answerOf(body).answer
      const { answer } = answerOf(body, { tenant: { ...interfaceOnly, environment } })
      const { status, rasp_score, rasp_action, event_id } = full
      expect(answer).toEqual({ status, rasp_score, rasp_action, event_id })
      expect(full.flags).not.toHaveLength(0)
    },
  )

  it('interface has the token that was asked for, and its claims tell no flag', () => {
    const { answer } = answerOf(submission(asked), { tenant: interfaceOnly })
    expect(Object.keys(answer).sort()).toEqual(
      ['event_id', 'rasp_action', 'rasp_score', 'status', 'verdict_token'].sort(),
    )
    expect(JSON.stringify(claimsOf(answer))).not.toContain('MAGISK')
  })
})

function claimsOf(answer: Record<string, unknown>): Record<string, unknown> {
  const [, body] = (answer.verdict_token as string).split('.')
  return JSON.parse(Buffer.from(body!, 'base64url').toString())
}
