/**
 * `npm run bench -- before-signature [--requests N]`: the cost of an unauthenticated request for an
 * edge, by kind: heads with many unusual headers, expensive bodies, a missing signature. CPU of the
 * process per request, beside a bare node:http server that reads the same bytes and checks one
 * HMAC.
 */
import { parseArgs } from 'node:util'
import { makeExpensiveBodyCases, makeHeadCases } from '../../faults/edge-input/heads.ts'
import { createRawClient } from '../../support/http/raw-http.ts'
import { startEdgeRig } from '../../support/telemetry/edge-rig.ts'
import { toRequest } from '../../support/telemetry/raw-submissions.ts'
import { forkChild, readCpuSeconds, startMeasured } from '../measured-process.ts'
import { type Figure, publishReport } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'

const rounds = 3
const connections = 16
/**
 * For a small request, relative to the baseline: an HMAC object, a digest and an answer that names
 * the fault.
 */
const timesMax = 3
/** Larger requests are bounded by their bytes. */
const largeBytes = 16_384
const bytesPerMicrosecondMin = 64
const wrong = `${'A'.repeat(43)}=`

type Server = { port: number; pid: number }

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { requests: { type: 'string', default: '2000' } },
  })
  const requests = Number(values.requests)
  const rig = await startEdgeRig()
  const tenant = await rig.projectTenant('bench-tenant')
  const { worker: baseline } = await forkChild('./edge/edge-baseline.ts')
  const bare = { port: await baseline.request<number>(tenant.secret), pid: baseline.child.pid! }
  const process = await startMeasured('ingest', {
    NATS_URL: rig.server.urlOf('ingest'),
    MASTER_KEY: rig.masterKey,
    LOG_LEVEL: 'warn',
    TRUSTED_PROXIES: '127.0.0.1',
  })
  const edge = { port: Number(new URL(process.url).port), pid: process.pid }
  const figures: Figure[] = []
  try {
    for (const [name, made] of makeKinds()) {
      const costs: number[] = []
      const baselines: number[] = []
      for (let round = -1; round < rounds; round++) {
        const one = await measure(edge, made, requests)
        const two = await measure(bare, made, requests)
        if (round < 0) continue
        costs.push(one)
        baselines.push(two)
      }
      figures.push({
        name,
        unit: 'µs',
        value: toSpread(costs),
        baseline: { name: 'bare node:http, one HMAC', value: toSpread(baselines) },
        ratio: toRatios(costs, baselines),
        bound:
          made.length < largeBytes
            ? { of: 'ratio', atMost: timesMax }
            : { of: 'value', atMost: made.length / bytesPerMicrosecondMin },
      })
    }
  } finally {
    await process.stop()
    baseline.stop()
    await rig.stop()
  }
  publishReport({
    part: 'before-signature',
    command: `npm run bench -- before-signature --requests ${requests}`,
    versions: {},
    durability: 'nothing is stored',
    figures,
    checks: [],
  })
}

/** Requests that end neither server's connection. */
function makeKinds(): [string, Buffer][] {
  const heads = makeHeadCases().filter(({ name }) =>
    /^(26|90) headers, (short|no|one|odd)/.test(name),
  )
  const pick = ['bad escapes in keys', 'one long string', 'bytes of no character']
  const bodies = makeExpensiveBodyCases().filter(({ name }) => pick.includes(name))
  return [
    ['a small body, wrongly signed', toRequest('{"tenant_id":"bench-tenant"}', wrong)],
    ...[...heads, ...bodies].map(({ name, request }): [string, Buffer] => [name, request]),
  ]
}

/** @returns µs of the server's CPU per request */
async function measure({ port, pid }: Server, request: Buffer, requests: number): Promise<number> {
  const client = createRawClient(port, connections)
  const before = readCpuSeconds(pid)
  let left = requests
  const send = async () => {
    while (left-- > 0) await client.send(request)
  }
  await Promise.all(Array.from({ length: connections }, send))
  client.close()
  return ((readCpuSeconds(pid) - before) * 1e6) / requests
}
