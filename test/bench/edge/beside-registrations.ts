/**
 * What registrations of installs cost telemetry: its p99 at a moderate constant rate on an edge
 * that also verifies the chains of new installs, beside the same rate alone, in the same rounds.
 * The chains are of phones of our own making, in a sandbox tenant that trusts their root.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  androidApp,
  testRootsFile,
  toChainEvidence,
} from '../../support/installs/evidence-fixtures.ts'
import { fetchChallenge, installsPath, sealRoots } from '../../support/installs/install-client.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import { startEdgeRig, type TestTenant } from '../../support/telemetry/edge-rig.ts'
import {
  type BenchChild,
  forkChild,
  type MeasuredService,
  startMeasured,
} from '../measured-process.ts'
import type { Check, Figure } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import type { LoadOrder, LoadResult } from './edge-load.ts'

/** A tenth of what an edge accepts on two cores. */
const telemetryPerSecond = 2_000
const registrationsPerSecond = 50
const connections = 64
const rootEpoch = 1

type Bench = {
  edge: MeasuredService
  port: number
  tenant: TestTenant
  telemetry: BenchChild
  registrations: BenchChild
  seconds: number
}

/** One run of telemetry. */
type Run = { p50: number; p99: number; refused: number }

/** @param options.seconds of each run, of which a round has two */
export async function compareBesideRegistrations(options: {
  rounds: number
  seconds: number
}): Promise<{ figures: Figure[]; checks: Check[]; version: string }> {
  const { rounds, seconds } = options
  const folder = mkdtempSync(join(tmpdir(), 'bench-roots-'))
  const rootsFile = join(folder, 'roots.json')
  writeFileSync(rootsFile, testRootsFile)
  const rig = await startEdgeRig({ syncAlways: true })
  const tenantId = 'bench-installs'
  const tenant = await rig.projectTenant(tenantId, {
    environment: 'sandbox',
    ingest_share: 0.9,
    install_roots: sealRoots(rig.sealer, tenantId, rootEpoch),
    apps: [{ ...androidApp, platform: 'android' }],
  })
  const edge = await startMeasured('ingest', {
    NATS_URL: rig.server.urlOf('ingest'),
    MASTER_KEY: rig.masterKey,
    TRUSTED_PROXIES: '127.0.0.1',
    ATTESTATION_TEST_ROOTS_FILE: rootsFile,
  })
  const children = await Promise.all([1, 2].map(() => forkChild('./edge/edge-load.ts')))
  const [telemetry, registrations] = children.map(({ worker }) => worker) as [
    BenchChild,
    BenchChild,
  ]
  const port = Number(new URL(edge.url).port)
  const bench = { edge, port, tenant, telemetry, registrations, seconds }
  try {
    // Both paths are compiled before the measurement.
    await runAlone(bench)
    const first = await runBeside(bench)
    const alone: Run[] = []
    const beside: Run[] = []
    let registered = first.registered
    for (let round = 0; round < rounds; round++) {
      alone.push(await runAlone(bench))
      const run = await runBeside(bench)
      beside.push(run)
      registered += run.registered
    }
    const compare = (key: 'p50' | 'p99') => {
      const [own, others] = [beside, alone].map((runs) => runs.map((run) => run[key]))
      return {
        value: toSpread(own!),
        baseline: { name: 'alone', value: toSpread(others!) },
        ratio: toRatios(own!, others!),
      }
    }
    const name = `of ${telemetryPerSecond} events/s beside ${registrationsPerSecond} registrations/s`
    return {
      version: rig.server.version,
      figures: [
        { name: `p99 ${name}`, unit: 'ms', ...compare('p99'), bound: { of: 'ratio', atMost: 1.2 } },
        { name: `p50 ${name}`, unit: 'ms', ...compare('p50') },
      ],
      checks: [
        await checkVerified(edge, registered, (rounds + 1) * seconds * registrationsPerSecond),
        checkAnswered([...alone, ...beside]),
      ],
    }
  } finally {
    await edge.stop()
    for (const child of [telemetry, registrations]) child.stop()
    await rig.stop()
    rmSync(folder, { recursive: true })
  }
}

async function runAlone({ telemetry, tenant, port, seconds }: Bench): Promise<Run> {
  const { tenantId, secret } = tenant
  const count = telemetryPerSecond * seconds
  await telemetry.request({ do: 'prepare', count, tenantId, secret } satisfies LoadOrder)
  return sendTelemetry({ telemetry, port, seconds })
}

async function sendTelemetry({
  telemetry,
  port,
  seconds,
}: Pick<Bench, 'telemetry' | 'port' | 'seconds'>): Promise<Run> {
  const { statuses, latencies } = await telemetry.request<LoadResult>({
    do: 'open',
    port,
    connections,
    seconds,
    rate: telemetryPerSecond,
  } satisfies LoadOrder)
  const ok = statuses[200] ?? 0
  const all = Object.values(statuses).reduce((sum, one) => sum + one, 0)
  const { p50 = Number.NaN, p99 = Number.NaN } = latencies[200] ?? {}
  return { p50, p99, refused: all - ok }
}

/** The same while installs register. @returns also how many registrations were answered 200 */
async function runBeside(bench: Bench): Promise<Run & { registered: number }> {
  const { telemetry, registrations, tenant, port, seconds } = bench
  const { tenantId, secret } = tenant
  const count = telemetryPerSecond * seconds
  await telemetry.request({ do: 'prepare', count, tenantId, secret } satisfies LoadOrder)
  const requests = await makeRegistrations(bench)
  await registrations.request({ do: 'take', requests } satisfies LoadOrder)
  const [run, registered] = await Promise.all([
    sendTelemetry(bench),
    registrations.request<LoadResult>({
      do: 'open',
      port,
      connections,
      seconds,
      rate: registrationsPerSecond,
    } satisfies LoadOrder),
  ])
  return { ...run, registered: registered.statuses[200] ?? 0 }
}

let devices = 0

/** A request for each registration of a run, all with a key and a chain of their own. */
async function makeRegistrations({ edge, tenant, seconds }: Bench): Promise<string[]> {
  // An edge keeps no challenges: one is as good for all of them as for each, for two minutes.
  const challenge = await fetchChallenge(edge)
  const bytes = Buffer.from(challenge, 'base64url')
  return Array.from({ length: registrationsPerSecond * seconds }, () => {
    const body = JSON.stringify({
      tenant_id: tenant.tenantId,
      device_id: `registered-${++devices}`,
      challenge,
      app: { platform: 'android', id: androidApp.id },
      evidence: toChainEvidence(bytes),
    })
    return (
      `POST ${installsPath} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n` +
      `x-service-signature: ${signBody(body, tenant.secret)}\r\n\r\n${body}`
    )
  })
}

/** Registrations that were refused, or whose evidence was not verified, would cost less. */
async function checkVerified(
  edge: MeasuredService,
  registered: number,
  sent: number,
): Promise<Check> {
  const registrations = 'di_ingest_registrations_total'
  const verified = await readMetric(edge.internalUrl, registrations, { verdict: 'verified' })
  return {
    name: 'every registration was verified',
    ok: registered === sent && verified === sent,
    detail: `${sent} sent, ${registered} answered 200, ${verified} verified`,
  }
}

function checkAnswered(runs: readonly Run[]): Check {
  const refused = runs.reduce((sum, run) => sum + run.refused, 0)
  return { name: 'every event was answered 200', ok: refused === 0, detail: `${refused} others` }
}
