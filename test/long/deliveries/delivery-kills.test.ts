/**
 * Alerts to a faulty receiver while the real delivery process is killed; all requests are compared
 * with all records. `npm run faults -- deliveries [--alerts 100000] [--kills 50] [--tenants 20]
 * [--processes 1]` is the long version: it alone has receivers that hang, and claims of a killed
 * process that end by themselves.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { checkDeliveries, type Findings } from '../../faults/deliveries/check-deliveries.ts'
import { deliverUnderKills } from '../../faults/deliveries/deliver-under-kills.ts'
import { fullShares, receiverFaults } from '../../faults/deliveries/receiver-faults.ts'
import { drillLimitMs, drillOptions, isDrill } from '../../faults/drill-options.ts'
import { seed } from '../../support/process/seed.ts'

const shares = isDrill ? fullShares : { ...fullShares, hang: 0 }
const { alerts, kills, tenants, processes } = drillOptions(
  { alerts: 1_500, kills: 4, tenants: 10, processes: 1 },
  { alerts: 100_000, kills: 50, tenants: 20, processes: 1 },
)

let findings: Findings

beforeAll(async () => {
  const evidence = await deliverUnderKills({
    alerts,
    kills,
    seed,
    shares,
    tenants,
    processes,
    env: isDrill ? { DELIVERY_CONCURRENCY: '256', DELIVERY_TENANT_CONCURRENCY: '32' } : {},
    slowMs: isDrill ? [1_000, 3_000] : [200, 600],
    hurryClaims: !isDrill,
  })
  expect(evidence.raised).toHaveLength(alerts)
  findings = checkDeliveries(evidence)
}, drillLimitMs)

describe(`${alerts} alerts to a faulty receiver, with ${kills} kills (seed ${seed})`, () => {
  it('are all delivered, each with its own bytes and genuine signatures on every attempt', () => {
    const { missing, undelivered, otherBytes, forged } = findings.breaches
    expect({ missing, undelivered, otherBytes, forged }).toEqual({
      missing: [],
      undelivered: [],
      otherBytes: [],
      forged: [],
    })
    expect(findings.signaturesVerified).toBeGreaterThan(alerts)
  })

  it('are repeated after a success only where a kill left the delivery claimed', () => {
    const { afterSuccess, unexplained } = findings.breaches
    expect({ afterSuccess, unexplained }).toEqual({ afterSuccess: [], unexplained: [] })
    expect(findings.repeatsAfterSuccess).toBeLessThanOrEqual(findings.orphans)
  })

  it('have their attempts recorded without a gap, as the receiver saw them', () => {
    const { decreasing, gaps, unfounded, unrecorded } = findings.breaches
    expect({ decreasing, gaps, unfounded, unrecorded }).toEqual({
      decreasing: [],
      gaps: [],
      unfounded: [],
      unrecorded: [],
    })
  })

  it('met every fault, and every kill left requests in flight whose claims were taken over', () => {
    for (const fault of receiverFaults) {
      if (shares[fault] > 0) expect(findings.acts[fault] ?? 0, fault).toBeGreaterThan(0)
    }
    expect(findings.killsThatMet).toBeGreaterThan(0)
    expect(findings.orphans).toBeGreaterThan(0)
    expect(findings.repeats).toBeGreaterThan(0)
  })
})
