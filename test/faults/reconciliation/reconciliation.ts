/**
 * `npm run faults -- reconciliation [--rate 300] [--seconds 60] [--seed S]`: a fleet reports to the
 * whole local stack while each of its processes is killed once, servers included. Prints the
 * reconciliation of the fleet's tenant; ends with status 1 when it does not agree, is not complete,
 * or the fleet finds anything elsewhere than where it should be.
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import { toReconciliationText } from '../../../services/console/cli/reconcile.ts'
import { type Summary, toSummaryText } from '../../../services/fleet/check/summary.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

const children = [
  ...(['scorer', 'ingest', 'delivery', 'console', 'api'] as const),
  ...(['clickhouse', 'postgres', 'nats'] as const),
]

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rate: { type: 'string', default: '300' },
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  const running = await startStack()
  try {
    const fleet = startFleet(running.dataDir, values)
    await pause((1_000 * Number(values.seconds)) / 10)
    await killEach(running, (800 * Number(values.seconds)) / children.length)
    const summary = await fleet
    say(toSummaryText(summary))
    const reconciliation = await readSettled(running, summary.tenant_id)
    say(`\n${toReconciliationText(reconciliation)}\n`)
    const difference = await readDifference(running)
    say(`di_reconciliation_difference ${difference}`)
    const sum = (of: (hour: ReconciliationView['data'][number]) => number) =>
      reconciliation.data.reduce((total, hour) => total + of(hour), 0)
    const unsaid = sum((hour) => hour.stored - hour.accepted)
    say(`stored and claimed by no edge, of the one that was killed: ${unsaid}`)
    // What was answered with a 200 is in the stream, whatever the edges remember of it.
    const whole = sum((hour) => hour.stored) >= summary.accepted
    if (!summary.ok || !reconciliation.agrees || difference > 0 || !whole) process.exitCode = 1
  } finally {
    await running.discard()
  }
}

function startFleet(
  dataDir: string,
  { rate, seconds, seed }: { rate: string; seconds: string; seed: string },
): Promise<Summary> {
  const options = ['--rate', rate, '--duration', seconds, '--seed', seed, '--devices', '800']
  const child = spawn(
    process.execPath,
    ['services/console/cli.ts', 'fleet', '--json', '--receive', '--settle', '90', ...options],
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

/** kill -9, one after the other; each is waited for until another has taken its place. */
async function killEach(running: TestStack, everyMs: number): Promise<void> {
  for (const child of children) {
    const startedMs = performance.now()
    const pid = running.stack.pids[child]
    process.kill(pid, 'SIGKILL')
    const next = await until(
      `another ${child}`,
      () => {
        const now = running.stack.pids[child]
        return now === pid ? null : now
      },
      60_000,
    )
    say(
      `${child}: killed ${pid}, now ${next}, after ${Math.round(performance.now() - startedMs)} ms`,
    )
    await pause(Math.max(0, everyMs - (performance.now() - startedMs)))
  }
}

/** Reconciliation once nothing is on its way and every delivery was tried. */
function readSettled(running: TestStack, tenantId: string): Promise<ReconciliationView> {
  return until(
    'reconciliation',
    async () => {
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
    },
    120_000,
  )
}

async function readDifference({ stack }: TestStack): Promise<number> {
  const text = await (await fetch(`${stack.internal.console}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('di_reconciliation_difference{'))
  if (lines.length === 0) throw new Error('the console has no di_reconciliation_difference')
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}
