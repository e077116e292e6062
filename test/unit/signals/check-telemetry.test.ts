/** The answer of an edge to a body, without sending it: status, errors, warnings and score. */
import { describe, expect, it } from 'vitest'
import { checkTelemetry } from '#shared/core/telemetry/check-telemetry.ts'
import { toBody } from '../../support/http/tenant-client.ts'

const check = (body: string) => checkTelemetry(Buffer.from(body), 0)

describe('a body', () => {
  it('that is valid has a score under the default policy, and warnings', () => {
    const signals = { root: { su_binary: true, magisk_detected: true, su_binay: true } }
    expect(check(toBody('acme', { signals }))).toEqual({
      status: 200,
      tenant_id: 'acme',
      errors: [],
      warnings: [
        {
          path: '$.scorer.rasp_score',
          code: 'score_mismatch',
          message: expect.any(String),
          nearest: null,
        },
        {
          path: '$.signals.root.su_binay',
          code: 'unknown_signal',
          message: expect.any(String),
          nearest: 'root.su_binary',
        },
      ],
      score: { rasp_score: 70, rasp_action: 'REVIEW', flags: ['ROOTED'] },
    })
  })

  it.each([
    ['without a tenant', '{}', 401, '$.tenant_id'],
    [
      'with a wrong type',
      toBody('acme', { signals: { root: { su_binary: 1 } } }),
      400,
      '$.signals.root.su_binary',
    ],
    ['that is cut off', toBody('acme').slice(0, -5), 400, '$'],
    ['beyond 64 KiB', toBody('acme', { device: 'd'.repeat(70_000) }), 413, '$'],
  ])('%s is rejected as an edge rejects it', (_, body, status, path) => {
    expect(check(body)).toMatchObject({ status, errors: [{ path }], warnings: [], score: null })
  })
})
