/**
 * The counted work of an edge before a signature is verified: one look-up of the tenant and two
 * HMACs over the body, for any body and header; no parse, and no look at the address. A missing
 * signature costs nothing. The answer adds one SHA-256 over the body (signature-check.test.ts).
 */
import { describe, expect, it, vi } from 'vitest'
import { decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { verifySignature } from '../../../shared/core/telemetry/signature.ts'
import { hostileBodies } from '../../support/telemetry/hostile-bodies.ts'
import { makeEdge } from '../../support/tenants/edge-tenant.ts'

function decideCounted(body: Buffer, signature: string | undefined) {
  const counted = { looks: 0, hmacs: 0, parses: 0, measures: 0 }
  const parse = vi.spyOn(JSON, 'parse')
  const edge = makeEdge(undefined, {
    findTenant: () => {
      counted.looks++
      return undefined
    },
    verify: (...args) => {
      counted.hmacs++
      return verifySignature(...args)
    },
    network: () => {
      counted.measures++
      return null
    },
  })
  try {
    const decision = decideSubmission(body, { signature }, edge)
    counted.parses = parse.mock.calls.length
    return { decision, counted }
  } finally {
    parse.mockRestore()
  }
}

const signatures = ['A'.repeat(43).concat('='), 'x', '\xff'.repeat(44), 'A'.repeat(16_000), ' ']

describe('an unsigned body', () => {
  it.each(hostileBodies)('costs two HMACs and no parse: %s', (_name, body) => {
    for (const signature of signatures) {
      const { decision, counted } = decideCounted(body, signature)
      expect(decision).toMatchObject({ kind: 'refused', reason: 'signature_invalid' })
      expect(counted.hmacs).toBe(2)
      expect(counted.looks).toBeLessThanOrEqual(1)
      expect(counted.parses).toBe(0)
      expect(counted.measures).toBe(0)
    }
  })

  it('costs nothing without a signature', () => {
    for (const [, body] of hostileBodies) {
      const { decision, counted } = decideCounted(body, undefined)
      expect(decision).toMatchObject({ reason: 'signature_missing' })
      expect(counted).toEqual({ looks: 0, hmacs: 0, parses: 0, measures: 0 })
    }
  })
})
