/**
 * The client package as its users get it: packed, installed in empty projects of each kind, checked
 * by their compiler, and run on each runtime against a real edge.
 */
import { execFile } from 'node:child_process'
import { createHmac, createPrivateKey } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createContext, Script } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createVerdictSigner,
  noAttestation,
  toVerdictClaims,
} from '#shared/core/verdicts/verdict-token.ts'
import { makeVerdictKey } from '#shared/io/verdicts/make-verdict-key.ts'
import { compile, makeProject, projectKinds } from '../../support/client/client-projects.ts'
import { runNpm } from '../../support/client/run-npm.ts'
import { findRuntimes } from '../../support/client/runtimes.ts'
import { readElements, sealRoots } from '../../support/installs/install-client.ts'
import { until } from '../../support/process/until.ts'
import { type EdgeRig, startEdgeRig, type TestEdge } from '../../support/telemetry/edge-rig.ts'
import webhooks from '../../vectors/webhooks.json' with { type: 'json' }

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))
const secret = 'q3ZzVx_0cJ5mN8rT2uW4yA6bD9eG1hK7pL-sXvQfRiM'
const run = promisify(execFile)

let folder: string
let packed: string
let rig: EdgeRig
let edge: TestEdge
let runtimes: Record<string, string>
/** Programs to run by the kind of their project. */
const programs = new Map<string, string>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'client-package-'))
  const results = await Promise.all([findRuntimes(), pack(), startEdge()])
  runtimes = results[0]
  packed = results[1]
  const made = Object.entries(projectKinds).map(async ([name, kind], index) => {
    programs.set(name, await makeProject(join(folder, `project-${index}`), packed, kind))
  })
  await Promise.all(made)
})
afterAll(async () => {
  await rig?.stop()
  await rm(folder, { recursive: true, force: true })
})

async function pack(): Promise<string> {
  const built = join(folder, 'client')
  await run(process.execPath, ['deploy/client/build-main.ts', built], { cwd: projectFolder })
  return join(folder, await runNpm(['pack', '--silent', built], folder))
}

async function startEdge(): Promise<void> {
  rig = await startEdgeRig()
  const install_roots = sealRoots(rig.sealer, 'bank', 1)
  const change = { environment: 'sandbox', secret, install_roots } as const
  const { revision } = await rig.projectTenant('bank', change)
  edge = await rig.startEdge()
  await until('the edge knows the tenant', () => edge.directory.revision() >= revision)
}

const installed = (file: string) =>
  join(folder, 'project-0/node_modules/device-intelligence-client', file)

describe('the package', () => {
  it('has JavaScript, types and pages, and no source', async () => {
    expect((await readdir(installed(''))).sort()).toEqual([
      ...['ATTESTED-INSTALLS.md', 'LICENSE', 'MAPPINGS.md', 'README.md', 'WHO-SIGNS.md'],
      ...['common.cjs', 'common.d.cts', 'common.d.ts', 'common.js'],
      ...['index.cjs', 'index.d.cts', 'index.d.ts', 'index.js', 'package.json'],
      ...['webcrypto.cjs', 'webcrypto.d.cts', 'webcrypto.d.ts', 'webcrypto.js'],
    ])
  })

  it('needs no package, in its scripts and in its types', async () => {
    const manifest = JSON.parse(await readFile(installed('package.json'), 'utf8'))
    expect(Object.keys(manifest).filter((key) => /dependencies/i.test(key))).toEqual([])
    expect(await readdir(join(folder, 'project-0/node_modules'))).toEqual([
      '.package-lock.json',
      'device-intelligence-client',
    ])
    const allowed = /^(\.\/common\.c?js|node:crypto)$/
    for (const name of (await readdir(installed(''))).filter((one) => /\.c?[jt]s$/.test(one))) {
      const text = await readFile(installed(name), 'utf8')
      const named = [...text.matchAll(/(?:\bfrom |\bimport\(|\brequire\()["']([^"']+)["']/g)]
      const others = named.map((match) => match[1]!).filter((one) => !allowed.test(one))
      expect({ name, others }).toEqual({ name, others: [] })
      if (!/^index\.c?js$/.test(name)) expect(text).not.toContain('node:')
    }
  })

  it('has pages without a link to a file that it lacks', async () => {
    const pages = (await readdir(installed(''))).filter((name) => name.endsWith('.md'))
    expect(pages).toHaveLength(4)
    for (const page of pages) {
      const text = await readFile(installed(page), 'utf8')
      for (const [, target] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
        expect(await readdir(installed(''))).toContain(target)
      }
    }
  })
})

/** The sessions of a device that are stored. */
async function listSessions(deviceId: string): Promise<string[]> {
  const elements = (await readElements(rig.nats)) as {
    registration?: boolean
    body: { device_id: string; session_id: string }
  }[]
  const events = elements.filter(({ registration }) => registration !== true)
  const own = events.filter(({ body }) => body.device_id === deviceId)
  return own.map(({ body }) => body.session_id)
}

/** What a program of a project has to do. */
const given = (deviceId: string) => ({
  tenantId: 'bank',
  deviceId,
  options: { ingestUrl: edge.url, hmacSecret: secret },
  webhook: { ...webhooks, nowMs: webhooks.timestamp_seconds * 1000 },
  verdict: makeVerdict(),
})

/** A token of this moment, and the key that it was signed with. */
function makeVerdict() {
  const { jwk, privateKey } = makeVerdictKey()
  const bytes = Buffer.from(privateKey, 'base64')
  const key = createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' })
  const claims = toVerdictClaims('device-intelligence', {
    tenantId: 'bank',
    deviceId: 'pixel-1',
    sessionId: 's-1',
    userId: undefined,
    eventId: 'evt_1',
    request: { audience: 'checkout', nonce: 'n-1' },
    score: 12,
    action: 'ALLOW',
    attestation: noAttestation,
    receivedAtMs: Date.now(),
  })
  return { token: createVerdictSigner(jwk.kid, key).sign(claims), keys: { keys: [jwk] } }
}

function expectResults(text: string, { hasWebCrypto }: { hasWebCrypto: boolean }): void {
  const alert = JSON.parse(webhooks.body)
  const right = {
    sent: 'REVIEW',
    install: 'none REVIEW',
    refusal: {
      status: 401,
      code: 'signature_invalid',
      signatureForm: 'base64 of 32 bytes, as expected',
      received: { bytes: expect.any(Number), sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    },
    fault: 'forged',
    mistake: expect.stringMatching(/^TypeError: rawBody is an object: pass the raw body/),
    signature: createHmac('sha256', secret).update('{}').digest('base64'),
    alert,
    action: alert.decision.action,
    score: 12,
    other: 'nonce',
  }
  expect(JSON.parse(text)).toMatchObject({
    root: { magisk_detected: true, test_keys: false },
    node: right,
    webcrypto: hasWebCrypto ? right : expect.stringMatching(/^TypeError: crypto.subtle is missing/),
  })
}

// JavaScript that TypeScript made is the same on each runtime.
const oldest = ['JavaScript, ESM', 'JavaScript, CommonJS']
const all = Object.keys(projectKinds)
const expected: [string, string[]][] = [
  ['node-18', oldest],
  ['node-20', all],
  ['node-22', all],
  ['node-24', all],
  ['node-26', oldest],
  ['bun', oldest],
]

describe.each(expected)('on %s', (runtime, kinds) => {
  const sent = (session: string) => [session, `${session} by key`]

  it.each(kinds)('it sends, registers, verifies and maps in a project of %s', async (kind) => {
    const deviceId = `${runtime} ${kind}`
    const hasWebCrypto = runtime !== 'node-18'
    const task = JSON.stringify({ ...given(deviceId), hasWebCrypto })
    const env = { PATH: process.env.PATH, GIVEN: task }
    const { stdout, stderr } = await run(runtimes[runtime]!, [programs.get(kind)!], { env })
    expect(stderr).toBe('')
    expectResults(stdout, { hasWebCrypto })
    expect(await listSessions(deviceId)).toEqual(
      hasWebCrypto ? [...sent('node'), ...sent('webcrypto')] : sent('node'),
    )
  })
})

it('runs on the runtimes that it says, of the versions that they are called by', async () => {
  expect(Object.keys(runtimes).sort()).toEqual(expected.map(([name]) => name).sort())
  for (const [name, file] of Object.entries(runtimes)) {
    const { stdout } = await run(file, ['--version'])
    if (name !== 'bun') expect(stdout).toMatch(new RegExp(`^v${name.split('-')[1]}\\.`))
  }
})

describe('the entry for WebCrypto', () => {
  it('needs only what every web runtime has', async () => {
    const names = ['fetch', 'crypto', 'TextEncoder', 'TextDecoder', 'atob', 'btoa', 'URL'].concat([
      'AbortController',
      'setTimeout',
      'clearTimeout',
      'performance',
      'Response',
      'console',
    ])
    const globals = names.map((name) => [name, Reflect.get(globalThis, name)])
    const context = createContext(Object.fromEntries(globals))
    const load = async (file: string, required: (name: string) => unknown): Promise<object> => {
      const code = await readFile(installed(file), 'utf8')
      const exported = {}
      new Script(`(exports, require) => {${code}}`).runInContext(context)(exported, required)
      return exported
    }
    const common = await load('common.cjs', () => expect.unreachable())
    const client = (await load('webcrypto.cjs', (name) =>
      name === './common.cjs' ? common : expect.unreachable(),
    )) as typeof import('../../../shared/client/webcrypto.ts')
    const { webhook, options, verdict } = given('web')
    const telemetry = {
      tenant_id: 'bank',
      device_id: 'web',
      session_id: 's-1',
      sdk_meta: { sdk_version: '1', platform: 'ios', batch_type: 'start' },
      scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
      signals: client.mergeSignals(),
    }
    expect(await client.sendTelemetry(telemetry, options)).toMatchObject({ rasp_action: 'ALLOW' })
    const asked = { keys: verdict.keys, audience: 'checkout', nonce: 'n-1' }
    expect(await client.verifyVerdict(verdict.token, asked)).toMatchObject({ score: 12 })
    const { body, headers, secret, nowMs } = webhook
    const delivery = await client.verifyWebhook(body, headers as never, secret, { nowMs })
    expect(delivery.alert).toEqual(JSON.parse(body))
  })
})

describe('the types', () => {
  it('are those of the sources', async () => {
    const text = `
      import type * as built from 'device-intelligence-client'
      import type * as sources from '${join(projectFolder, 'shared/client/client.ts')}'
      type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
      export const same: {
        alert: Same<built.Alert, sources.Alert>
        page: Same<built.AlertPage, sources.AlertPage>
        device: Same<built.Device, sources.Device>
        signals: Same<built.Signals, sources.Signals>
        booleans: Same<built.BooleanSignal, sources.BooleanSignal>
        flags: Same<built.Flag, sources.Flag>
        action: Same<built.Action, sources.Action>
        category: Same<built.Category, sources.Category>
        warning: Same<built.SignalWarning, sources.SignalWarning>
        telemetry: Same<built.Telemetry, sources.Telemetry>
        install: Same<built.Install, sources.Install>
        evidence: Same<built.InstallEvidence, sources.InstallEvidence>
        sender: Same<built.InstallSenderOptions, sources.InstallSenderOptions>
      } = {
        alert: true, page: true, device: true, signals: true, booleans: true, flags: true,
        action: true, category: true, warning: true, telemetry: true, install: true,
        evidence: true, sender: true,
      }`
    const project = join(folder, 'project-2')
    await writeFile(join(project, 'same.ts'), text)
    await writeFile(
      join(project, 'tsconfig.same.json'),
      JSON.stringify({ compilerOptions: compilerOptions(), files: ['same.ts'] }),
    )
    await compile(join(project, 'tsconfig.same.json'), 'typescript')
  })
  const compilerOptions = () => ({
    strict: true,
    noEmit: true,
    module: 'nodenext',
    target: 'esnext',
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    types: ['node'],
  })

  it('are those of the programs on the pages', async () => {
    const declared = `
      declare const telemetry: import('device-intelligence-client').Telemetry
      declare const log: { error(value: unknown): void }
      declare const request: { headers: Record<string, string | string[] | undefined> }
      declare const rawBody: Uint8Array
      declare const threats: string[]
      declare const allChecksFinished: boolean
      declare const decodedToken: import('device-intelligence-client').PlayIntegrityPayload
      declare const nonce: string
      declare const token: string
      declare const session: { userId: string; nonce: string }
      declare const attestKey: (challenge: string) => string[]
      declare const report: Record<string, unknown>
      export {}`
    const pages = await Promise.all(
      ['README.md', 'ATTESTED-INSTALLS.md', 'MAPPINGS.md'].map((page) =>
        readFile(installed(page), 'utf8'),
      ),
    )
    const blocks = pages.flatMap((text) => [...text.matchAll(/```ts\n([\s\S]*?)```/g)])
    expect(blocks.length).toBeGreaterThan(4)
    const project = join(folder, 'project-2')
    const files = blocks.map((_, index) => `page-${index}.ts`)
    for (const [index, [, program]] of blocks.entries()) {
      await writeFile(join(project, files[index]!), `${program}${declared}`)
    }
    const options = JSON.stringify({ compilerOptions: compilerOptions(), files })
    await writeFile(join(project, 'tsconfig.pages.json'), options)
    await compile(join(project, 'tsconfig.pages.json'), 'typescript')
  })

  it('serve TypeScript 5 too, and refuse a misspelt signal and a wrong value', async () => {
    const text = `
      import { type Signals, mergeSignals } from 'device-intelligence-client'
      // @ts-expect-error there is no such signal
      mergeSignals({ root: { su_binay: true } })
      // @ts-expect-error it is a boolean
      mergeSignals({ root: { su_binary: 'yes' } })
      export const signals: Signals = mergeSignals({ tamper: { pi_device_verdict: [] } })`
    const project = join(folder, 'project-4')
    await writeFile(join(project, 'wrong.ts'), text)
    await compile(project, 'typescript-5', '--noEmit')
  })
})
