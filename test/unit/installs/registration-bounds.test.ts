/** The bounds of registrations: per second and at once, of one tenant and of all. */
import { describe, expect, it } from 'vitest'
import {
  registrationsBurst,
  registrationsVerifyingMax,
  tenantRegistrationsBurst,
  tenantRegistrationsPerSecond,
  tenantRegistrationsVerifyingMax,
} from '#shared/core/base/limits/installs.ts'
import { createRegistrationBounds } from '../../../services/ingest/installs/registration-bounds.ts'

function start() {
  let nowMs = 0
  const bounds = createRegistrationBounds(() => nowMs)
  /** Begins and ends registrations. @returns why the others are refused */
  const run = (tenantId: string, count: number) => {
    const reasons: string[] = []
    for (let n = 0; n < count; n++) {
      const end = bounds.begin(tenantId)
      if (typeof end === 'function') end()
      else reasons.push(end.reason)
    }
    return reasons
  }
  return { bounds, run, pass: (ms: number) => (nowMs += ms) }
}

describe('registrations in a second', () => {
  it('of one tenant are bounded, and go on at its rate', () => {
    const { run, pass } = start()
    expect(run('acme', tenantRegistrationsBurst)).toEqual([])
    expect(run('acme', 2)).toEqual(['registration_rate', 'registration_rate'])
    pass(1_000)
    expect(run('acme', tenantRegistrationsPerSecond + 1)).toEqual(['registration_rate'])
  })

  it('of one tenant leave as many for others', () => {
    const { run } = start()
    run('busy', 1_000)
    expect(run('calm', tenantRegistrationsBurst)).toEqual([])
  })

  it('of all tenants are bounded', () => {
    const { run } = start()
    const tenants = Array.from({ length: registrationsBurst }, (_, n) => `tenant-${n}`)
    expect(tenants.flatMap((tenantId) => run(tenantId, 1))).toEqual([])
    expect(run('one-more', 1)).toEqual(['registrations'])
  })
})

describe('registrations that wait for their evidence', () => {
  const begin = (bounds: ReturnType<typeof createRegistrationBounds>, count: number, of: string) =>
    Array.from({ length: count }, () => bounds.begin(of))

  it('of one tenant and of all are bounded, and drained once all have ended', async () => {
    const { bounds } = start()
    const own = begin(bounds, tenantRegistrationsVerifyingMax, 'acme')
    expect(bounds.begin('acme')).toMatchObject({ limitedTenantId: 'acme' })
    const left = registrationsVerifyingMax - tenantRegistrationsVerifyingMax
    const others = begin(bounds, left, 'other')
    expect(bounds.count()).toBe(registrationsVerifyingMax)
    expect(bounds.begin('third')).toMatchObject({ reason: 'registrations' })
    let isDrained = false
    const drained = bounds.drained().then(() => {
      isDrained = true
    })
    for (const end of own) (end as () => void)()
    await Promise.resolve()
    expect(isDrained).toBe(false)
    const [third] = begin(bounds, 1, 'third')
    expect(bounds.count()).toBe(left + 1)
    for (const end of [...others, third]) (end as () => void)()
    await drained
    expect([isDrained, bounds.count()]).toEqual([true, 0])
  })

  it('are drained when there is none', async () => {
    await start().bounds.drained()
  })
})
