/** The simulated fleet against a running stack, and the reconciliation of its tenant afterwards. */
import { spawn } from 'node:child_process'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import type { Summary } from '../../../deploy/fleet/check/summary.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

export type FleetLoad = { rate: number; seconds: number; seed: number; settleSeconds?: number }

/** @returns the fleet's summary, after it has sent, received and checked everything */
export function startFleet(
  dataDir: string,
  { rate, seconds, seed, settleSeconds = 90 }: FleetLoad,
): Promise<Summary> {
  const load = ['--rate', `${rate}`, '--duration', `${seconds}`, '--seed', `${seed}`]
  const options = [...load, '--devices', '800', '--settle', `${settleSeconds}`]
  const child = spawn(
    process.execPath,
    ['services/console/cli.ts', 'fleet', '--json', '--receive', ...options],
    { env: { ...process.env, DATA_DIR: dataDir }, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      try {
        resolve(JSON.parse(out) as Summary)
      } catch {
        reject(new Error(`the fleet ended with status ${code}: ${out}`))
      }
    })
  })
}

/** The reconciliation once nothing is in flight and every alert was delivered. */
export function readSettled(running: TestStack, tenantId: string): Promise<ReconciliationView> {
  return until('reconciliation', async () => {
    const reconciliation = await admin<ReconciliationView>(
      running.stack,
      'GET',
      `/tenants/${tenantId}/reconciliation`,
    )
    const settled = reconciliation.data.every(
      (hour) => hour.in_flight === 0 && hour.delivered === hour.alerts_due,
    )
    const now = new Date(Date.now() - 10_000).toISOString()
    return settled &&
      reconciliation.data.length > 0 &&
      reconciliation.as_of !== null &&
      reconciliation.as_of > now
      ? reconciliation
      : null
  })
}

/** Waits until the edge accepts what a fleet sends. */
export async function awaitFlow({ stack }: TestStack): Promise<void> {
  await until(
    'telemetry flows',
    async () => (await readMetric(stack.internal.ingest, 'di_ingest_accepted_total')) > 0,
    60_000,
  )
}

/** @returns the sum of the metric that alerts on a difference between stages */
export async function readDifference({ stack }: TestStack): Promise<number> {
  const text = await (await fetch(`${stack.internal.console}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('di_reconciliation_difference{'))
  if (lines.length === 0) throw new Error('the console has no di_reconciliation_difference')
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}
