// Clients that generators make from the document of a running stack: each compiles and calls every
// operation. The generators run on this machine alone.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeAdminApi } from '../../support/http/describe-admin-api.ts'
import { admin, createTenant, type Tenant } from '../../support/http/tenant-client.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../../..')
const packages = join(root, 'node_modules')

let running: TestStack
let tenant: Tenant
let apiKey: string
let document: { paths: Record<string, Record<string, { operationId?: string }>> }
let folder: string

beforeAll(async () => {
  running = await startStack()
  const { stack } = running
  tenant = await createTenant(stack, 'generated')
  const scopes = ['read', 'alerts:write', 'lists:write', 'labels:write']
  const made = await admin<{ api_key: string }>(stack, 'POST', '/tenants/generated/keys', {
    name: 'generated',
    scopes,
  })
  apiKey = made.api_key
  document = (await (await fetch(`${stack.api}/openapi.json`)).json()) as typeof document
  folder = mkdtempSync(join(tmpdir(), 'generated-clients-'))
  symlinkSync(packages, join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document))
  writeFileSync(join(folder, 'hooks.mjs'), hooks)
})
afterAll(async () => {
  await running?.discard()
  if (folder !== undefined) rmSync(folder, { recursive: true })
})

/** Generators need the JavaScript API of TypeScript 5; generated imports have no extension. */
const hooks = `import { statSync } from 'node:fs'
import { registerHooks } from 'node:module'
registerHooks({
  resolve: (name, context, next) => {
    if (name === 'typescript') return next('typescript-5', context)
    const isGenerated = context.parentURL?.startsWith(new URL('.', import.meta.url).href)
    if (!isGenerated || !name.startsWith('.')) return next(name, context)
    const found = ['', '.ts', '/index.ts']
      .map((end) => new URL(name.replace(/\\.js$/, '.ts') + end, context.parentURL))
      .find((url) => statSync(url, { throwIfNoEntry: false })?.isFile() === true)
    return next(found === undefined ? name : found.href, context)
  },
})
`

/** What each program does: it calls every operation and prints their statuses. */
const story = `
import { createHmac } from 'node:crypto'
const env = (name: string): string => process.env[name] ?? ''
const body = {
  tenant_id: 'generated', device_id: 'a/b', session_id: env('SESSION'), user_id: 'u/1',
  sdk_meta: { sdk_version: '1.0.0', platform: 'android', batch_type: 'session_start' },
  scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
  signals: {
    root: { su_binary: true, magisk_detected: true }, emulator: {},
    debugger: { frida_detected: true }, tamper: {}, ecosystem: {}, network: {},
  },
  device: { brand: 'Google', model: 'Pixel 9' },
}
const sign = (value: object) =>
  createHmac('sha256', env('HMAC_SECRET')).update(JSON.stringify(value)).digest('base64')
const signature = sign(body)
const batch = { tenant_id: 'generated', events: [body] }
const newInstall = {
  tenant_id: 'generated', device_id: 'a/b', app: { platform: 'android', id: 'com.example.app' },
  evidence: { provider: 'none' },
} as const
const statuses: Record<string, number> = {}
const note = <T>(name: string, answer: { data?: T; response: Response | undefined }): T => {
  statuses[name] = answer.response?.status ?? 0
  if (answer.data === undefined) throw new Error(name + ' ' + statuses[name])
  return answer.data
}
const label = { subject: { device_id: 'gone' }, label: 'chargeback', external_id: env('SESSION') }
const denied = { list: 'deny', kind: 'device', id: 'gone', reason: 'generated' } as const
const wait = () => new Promise((done) => setTimeout(done, 100))
`

const programs = {
  'openapi-typescript': {
    command: ['openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'types.ts'],
    code: `
import createClient from 'openapi-fetch'
import type { components, paths } from './types.ts'
const later: components['schemas']['Problem']['code'] = 'of_a_later_release'
if (later.length === 0) throw new Error(later)
const edge = createClient<paths>({ baseUrl: env('INGEST') })
const api = createClient<paths>({ baseUrl: env('API'), headers: { authorization: 'Bearer ' + env('KEY') } })
const sent = note('ingest', await edge.POST('/v1/rasp/ingest', { body, headers: { 'X-Service-Signature': signature } }))
const batchHeaders = { 'X-Service-Signature': sign(batch) }
const many = note('ingestBatch', await edge.POST('/v1/rasp/ingest/batch', { body: batch, headers: batchHeaders }))
const [entryOfBatch] = many.events
if (entryOfBatch?.status !== 'accepted' || entryOfBatch.event_id !== sent.event_id) throw new Error('batch')
const find = () => api.GET('/v1/di/alerts', { params: { query: { session_id: env('SESSION'), limit: 5 } } })
let list = note('listAlerts', await find())
while (list.total === 0) { await wait(); list = note('listAlerts', await find()) }
const alert_id: string = list.data[0]!.alert_id
const params = { path: { alert_id } }
const alert = note('findAlert', await api.GET('/v1/di/alerts/{alert_id}', { params }))
const signals: string[] | undefined = alert.reasons[0]!.evidence.signals
if (signals === undefined) throw new Error('evidence is not typed')
const set = { disposition: 'CONFIRMED', note: 'generated' } as const
note('setDisposition', await api.POST('/v1/di/alerts/{alert_id}/disposition', { params, body: set }))
const dispositions = { ...set, alert_ids: [alert.alert_id, 'alr_none'] }
const outcomes = note('setDispositions', await api.POST('/v1/di/alerts/dispositions', { body: dispositions }))
const [first] = outcomes.data
if (first?.outcome !== 'unchanged') throw new Error('the outcomes are not typed')
const visible = () => api.GET('/v1/di/devices/{device_id}', { params: { path: { device_id: 'a/b' } } })
while (!(await visible()).data?.phone) await wait()
const device = note('findDevice', await visible())
const total: number = device.sessions_total
const phonePath = { path: { phone_id: device.phone!.phone_id } }
note('findPhone', await api.GET('/v1/di/phones/{phone_id}', { params: phonePath }))
note('addLabels', await api.POST('/v1/di/labels', { body: label }))
note('listLabels', await api.GET('/v1/di/labels'))
note('listLabelCodes', await api.GET('/v1/di/labels/codes'))
note('findUser', await api.GET('/v1/di/users/{user_id}', { params: { path: { user_id: 'u/1' } } }))
note('listEvents', await api.GET('/v1/di/events', { params: { query: { limit: 5, action: 'BLOCK' } } }))
note('findEvent', await api.GET('/v1/di/events/{event_id}', { params: { path: { event_id: sent.event_id } } }))
note('listSignals', await api.GET('/v1/di/signals'))
const entry = note('addListEntry', await api.POST('/v1/di/lists', { body: denied }))
note('listListEntries', await api.GET('/v1/di/lists'))
const entryPath = { path: { entry_id: entry.entry_id } }
note('removeListEntry', await api.DELETE('/v1/di/lists/{entry_id}', { params: entryPath }))
note('readLedger', await api.GET('/v1/di/ledger'))
const { challenge } = note('getInstallChallenge', await edge.GET('/v1/rasp/challenge'))
const registration = { ...newInstall, challenge }
const registered = note('registerInstall', await edge.POST('/v1/rasp/installs', {
  body: registration,
  headers: { 'X-Service-Signature': sign(registration) },
}))
if (registered.attestation.verdict !== 'none') throw new Error('the verdict is not typed')
note('listVerdictKeys', await api.GET('/v1/di/verdict-keys'))
note('health', await api.GET('/healthz'))
note('openapi', await api.GET('/openapi.json'))
process.stdout.write(JSON.stringify({ statuses, total }))
`,
  },
  '@hey-api/openapi-ts': {
    command: [
      '@hey-api/openapi-ts/dist/run.mjs',
      '-i',
      'openapi.json',
      '-o',
      'sdk',
      '--no-log-file',
    ],
    code: `
import * as sdk from './sdk/index.ts'
import { client } from './sdk/client.gen.ts'
import type { Problem } from './sdk/index.ts'
const later: Problem['code'] = 'of_a_later_release'
if (later.length === 0) throw new Error(later)
client.setConfig({ baseUrl: env('API'), auth: env('KEY') })
const headers = { 'X-Service-Signature': signature }
const sent = note('ingest', await sdk.ingest({ body, baseUrl: env('INGEST'), headers, auth: signature }))
const batchHeaders = { 'X-Service-Signature': sign(batch) }
note('ingestBatch', await sdk.ingestBatch({ body: batch, baseUrl: env('INGEST'), headers: batchHeaders, auth: sign(batch) }))
const find = () => sdk.listAlerts({ query: { session_id: env('SESSION'), limit: 5 } })
let list = note('listAlerts', await find())
while (list.total === 0) { await wait(); list = note('listAlerts', await find()) }
const path = { alert_id: list.data[0]!.alert_id }
const alert = note('findAlert', await sdk.findAlert({ path }))
const signals: string[] | undefined = alert.reasons[0]!.evidence.signals
if (signals === undefined) throw new Error('evidence is not typed')
note('setDisposition', await sdk.setDisposition({ path, body: { disposition: 'CONFIRMED', note: 'generated' } }))
const many = { disposition: 'CONFIRMED' as const, alert_ids: [alert.alert_id, 'alr_none'] }
const outcomes = note('setDispositions', await sdk.setDispositions({ body: many }))
const [first] = outcomes.data
if (first?.outcome !== 'unchanged') throw new Error('the outcomes are not typed')
const visible = () => sdk.findDevice({ path: { device_id: 'a/b' } })
while (!(await visible()).data?.phone) await wait()
const device = note('findDevice', await visible())
const total: number = device.sessions_total
note('findPhone', await sdk.findPhone({ path: { phone_id: device.phone!.phone_id } }))
note('addLabels', await sdk.addLabels({ body: label }))
note('listLabels', await sdk.listLabels())
note('listLabelCodes', await sdk.listLabelCodes())
note('findUser', await sdk.findUser({ path: { user_id: 'u/1' } }))
note('listEvents', await sdk.listEvents({ query: { limit: 5, action: 'BLOCK' } }))
note('findEvent', await sdk.findEvent({ path: { event_id: sent.event_id } }))
note('listSignals', await sdk.listSignals())
const entry = note('addListEntry', await sdk.addListEntry({ body: denied }))
note('listListEntries', await sdk.listListEntries())
note('removeListEntry', await sdk.removeListEntry({ path: { entry_id: entry.entry_id } }))
note('readLedger', await sdk.readLedger())
const { challenge } = note('getInstallChallenge', await sdk.getInstallChallenge({ baseUrl: env('INGEST') }))
const registration = { ...newInstall, challenge }
const registered = note('registerInstall', await sdk.registerInstall({
  body: registration,
  baseUrl: env('INGEST'),
  headers: { 'X-Service-Signature': sign(registration) },
  auth: sign(registration),
}))
if (registered.attestation.verdict !== 'none') throw new Error('the verdict is not typed')
note('listVerdictKeys', await sdk.listVerdictKeys())
note('health', await sdk.health())
note('openapi', await sdk.openapi())
process.stdout.write(JSON.stringify({ statuses, total }))
`,
  },
}

const strict = [
  ...['--noEmit', '--strict', '--module', 'esnext', '--moduleResolution', 'bundler'],
  ...['--allowImportingTsExtensions', '--target', 'es2023', '--lib', 'es2023,dom,dom.iterable'],
  ...['--types', 'node', '--noUncheckedIndexedAccess', '--skipLibCheck'],
]

/** Runs a program of Node. @throws with what it printed */
async function node(args: string[], env: Record<string, string> = {}): Promise<string> {
  const preload = ['--import', join(folder, 'hooks.mjs')]
  const options = { cwd: folder, env: { ...nodeEnv(), ...env } }
  const { stdout } = await run(process.execPath, [...preload, ...args], options).catch((error) => {
    throw new Error(`${error.stdout}\n${error.stderr}`)
  })
  return stdout
}

describe.each(Object.entries(programs))('the client of %s', (name, { command, code }) => {
  const file = `program${name.replaceAll(/\W/g, '-')}.ts`
  it('is generated and compiles strictly with a program that calls every operation', async () => {
    const [cli, ...args] = command
    await node([join(packages, cli!), ...args])
    writeFileSync(join(folder, file), `${story}${code}`)
    const compiled = run(join(packages, '.bin/tsc'), [...strict, file], { cwd: folder })
    await compiled.catch((error) => {
      throw new Error(`${error.stdout}`)
    })
  })

  it('calls every operation of the running stack', async () => {
    const { stack } = running
    const printed = await node([join(folder, file)], {
      API: stack.api,
      INGEST: stack.ingest,
      KEY: apiKey,
      HMAC_SECRET: tenant.hmac_secret,
      SESSION: `session of ${name}`,
    })
    const { statuses, total } = JSON.parse(printed) as {
      statuses: Record<string, number>
      total: number
    }
    const operations = Object.values(document.paths).flatMap((item) =>
      Object.values(item).flatMap(({ operationId }) => operationId ?? []),
    )
    expect(statuses).toEqual(
      Object.fromEntries(operations.map((one) => [one, one.startsWith('add') ? 201 : 200])),
    )
    expect(operations.length).toBeGreaterThan(10)
    expect(total).toBeGreaterThan(0)
  })
})

it('a program that reads a field that is not in the document does not compile', async () => {
  const [name] = Object.keys(programs) as (keyof typeof programs)[]
  const code = `${story}${programs[name!].code}`.replace('device.sessions_total', 'device.sessionz')
  writeFileSync(join(folder, 'wrong.ts'), code)
  const compiled = run(join(packages, '.bin/tsc'), [...strict, 'wrong.ts'], { cwd: folder })
  await expect(compiled).rejects.toMatchObject({ stdout: expect.stringContaining('sessionz') })
})

/** What a generator makes of the admin API, with a value that a later release may answer. */
const adminTypes = {
  'openapi-typescript': `
import type { components } from './types.ts'
export const later: components['schemas']['Problem']['code'] = 'of_a_later_release'
`,
  '@hey-api/openapi-ts': `
import type { Problem } from './sdk/index.ts'
export const later: Problem['code'] = 'of_a_later_release'
`,
}

it.each(Object.entries(adminTypes))('the admin API compiles as %s makes it', async (name, code) => {
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(await describeAdminApi()))
  const [cli, ...args] = programs[name as keyof typeof programs].command
  await node([join(packages, cli!), ...args])
  writeFileSync(join(folder, 'admin.ts'), code)
  const compiled = run(join(packages, '.bin/tsc'), [...strict, 'admin.ts'], { cwd: folder })
  await compiled.catch((error) => {
    throw new Error(`${error.stdout}`)
  })
})
