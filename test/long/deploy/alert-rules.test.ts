/**
 * Real Prometheus reads the metrics of the whole service and evaluates the rules that we ship: each
 * cause of trouble fires its rule, which names the next step and is quiet again afterwards. Only
 * the time is shortened for which a rule waits before it fires.
 */
import { mkdirSync, mkdtempSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createLauncher, endChild } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { type ManagedChild, type OutageRig, startOutageRig } from '../../faults/outages/rig.ts'
import { startReceiver } from '../../support/deliveries/receiver.ts'
import { ingest, toBody } from '../../support/http/tenant-client.ts'
import type { StackFacts } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { findDebianProgram } from '../../support/servers/debian-program.ts'

const dayMs = 86_400_000
const prometheusDir = new URL('../../../deploy/prometheus/', import.meta.url)
const closing: (() => Promise<unknown> | unknown)[] = []
let rig: OutageRig
let prometheusUrl: string

beforeAll(async () => {
  const dir = mkdtempSync(join(tmpdir(), 'di-rules-'))
  closing.push(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }))
  const networkData = join(dir, 'network')
  mkdirSync(networkData)
  writeFileSync(join(networkData, 'tor.txt'), '198.51.100.7\n')
  const written = new Date(Date.now() - 40 * dayMs)
  utimesSync(join(networkData, 'tor.txt'), written, written)
  rig = await startOutageRig({ smallDisks: false, env: { NETWORK_DATA: networkData } })
  closing.push(rig.stop)
  prometheusUrl = await startPrometheus(dir)
  await until('every process is read', async () => (await query('sum(up)')) === '5')
})

afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** With the configuration of compose, but for addresses and intervals. */
async function startPrometheus(dir: string): Promise<string> {
  const read = (name: string) => readFileSync(new URL(name, prometheusDir), 'utf8')
  const rules = read('alerts.yaml').replace(/^( +for:) \w+$/gm, '$1 2s')
  writeFileSync(join(dir, 'alerts.yaml'), rules)
  const config = parse(read('prometheus.yaml')) as Record<string, object>
  const targets = Object.entries(rig.internalUrls).map(([name, url]) => ({
    job_name: name,
    static_configs: [{ targets: [new URL(url).host] }],
  }))
  const global = { scrape_interval: '1s', evaluation_interval: '1s' }
  const file = join(dir, 'prometheus.yaml')
  // YAML contains JSON.
  writeFileSync(file, JSON.stringify({ ...config, global, scrape_configs: targets }))
  const packages = { bookworm: ['prometheus'], trixie: ['prometheus'] }
  const program = await findDebianProgram('usr/bin/prometheus', packages)
  const address = `127.0.0.1:${await choosePort({})}`
  const child = createLauncher({ pathVar: process.env.PATH }).launch({
    command: program.file,
    args: [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    env: process.env,
    orphanSignal: 'SIGKILL',
  })
  closing.push(() => endChild(child, { signal: 'SIGTERM', graceMs: 5_000 }))
  const url = `http://${address}`
  await until('Prometheus is ready', async () => (await fetch(`${url}/-/ready`)).ok)
  return url
}

async function query(expression: string): Promise<string | undefined> {
  const answer = await fetch(`${prometheusUrl}/api/v1/query?query=${expression}`)
  const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } }
  return data.result[0]?.value[1]
}

type Firing = { labels: Record<string, string>; annotations: Record<string, string>; state: string }

async function findFiring(name: string): Promise<Firing | undefined> {
  const answer = await fetch(`${prometheusUrl}/api/v1/alerts`)
  const { data } = (await answer.json()) as { data: { alerts: Firing[] } }
  return data.alerts.find(({ labels, state }) => labels.alertname === name && state === 'firing')
}

const fires = (name: string) => until(`${name} fires`, () => findFiring(name))
const isQuiet = (name: string) =>
  until(`${name} is quiet`, async () => (await findFiring(name)) === undefined)

it('an old file of network data', async () => {
  const { annotations } = await fires('NetworkDataOld')
  expect(annotations.summary).toMatch(/^The network data tor\.txt is 40d .* old$/)
  expect(annotations.description).toContain('Look at the job that fetches the file')
})

it('a webhook whose receiver fails', async () => {
  const receiver = await startReceiver((response) => response.writeHead(500).end())
  closing.push(receiver.close)
  const tenant = await rig.admin('/tenants', {
    tenant_id: 'acme',
    environment: 'sandbox',
    webhook_url: receiver.url,
  })
  const body = toBody('acme', { signals: { root: { su_binary: true, magisk: true } } })
  await until('the edge knows the tenant', async () => {
    const to = { ingest: rig.urls.ingest } as StackFacts
    return (await ingest(to, String(tenant.hmac_secret), body)).status === 200
  })
  await until('the attempt failed', async () => {
    const { rowCount } = await rig.postgres.query(
      `update webhooks set failing_since = now() - interval '11 minutes'
       where failing_since is not null`,
    )
    return rowCount === 1
  })
  const { annotations } = await fires('WebhookFails')
  expect(annotations.summary).toMatch(/^The webhook of acme has failed for 1[1-9]m/)
  expect(annotations.description).toContain('`di deliveries list acme`')
})

it.each([
  ['NoScorer', 'no scorer', () => rig.services.scorer, 'Start one, or read the end of its log'],
  ['ProcessDown', 'a process', () => rig.services.delivery, ''],
  ['ClickhouseFails', 'ClickHouse', () => rig.servers.clickhouse, '/readyz of a process'],
  ['PostgresFails', 'Postgres', () => rig.servers.postgres, '/readyz of a process'],
  ['NatsFails', 'NATS', () => rig.servers.nats, '/readyz of a process'],
] as [string, string, () => ManagedChild, string][])(
  '%s: %s that is down',
  async (rule, _, find, nextStep) => {
    await isQuiet(rule)
    await find().down()
    const { annotations } = await fires(rule)
    expect(annotations.description ?? '').toContain(nextStep)
    await find().start()
    await isQuiet(rule)
  },
)
