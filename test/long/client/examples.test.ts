/**
 * The examples in other languages, run unchanged: the sending one has the signature of the vectors
 * and sends the given bytes, and the verifying one rejects forgeries. Sending examples are also run
 * as the console's page shows them, with a tenant's values. Python and Java run here, and Node as
 * the README shows it; the compilers of the other seven languages are not on a plain machine.
 */
import { type SpawnOptions, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  writeSnippets,
  writeSubmission,
} from '../../../services/console/web/pages/integration/snippets.ts'
import signatures from '../../vectors/signatures.json' with { type: 'json' }
import webhooks from '../../vectors/webhooks.json' with { type: 'json' }

const root = join(import.meta.dirname, '../../..')
const examples = {
  send: join(root, 'services/ingest/examples'),
  verify: join(root, 'services/delivery/examples'),
}

type Ran = { code: number | null; out: string }

async function run(
  command: readonly string[],
  { input = '', env = {} }: { input?: string | Uint8Array; env?: Record<string, string> },
): Promise<Ran> {
  const [program, ...args] = command
  const options: SpawnOptions = { env: { PATH: process.env.PATH, ...env } }
  const child = spawn(program!, args, options)
  let out = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => {
      out += chunk
    })
  }
  // A program that ended without reading its input is judged by its exit code.
  child.stdin!.on('error', () => {})
  child.stdin!.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out: out.trim() }
}

type Received = { path: string | undefined; signature: unknown; type: unknown; body: Buffer }

let edge: Server
let ingestUrl: string
let classes: string
let status = 200
const received: Received[] = []

beforeAll(async () => {
  edge = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { headers, url } = request
    received.push({
      path: url,
      signature: headers['x-service-signature'],
      type: headers['content-type'],
      body: Buffer.concat(chunks),
    })
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"status":"accepted"}')
  })
  edge.listen(0, '127.0.0.1')
  await once(edge, 'listening')
  ingestUrl = `http://127.0.0.1:${(edge.address() as AddressInfo).port}`
  classes = await mkdtemp(join(tmpdir(), 'examples-'))
  const sources = [
    join(examples.send, 'SendTelemetry.java'),
    join(examples.verify, 'VerifyWebhook.java'),
  ]
  const compiled = await run(['javac', '-Xlint:all', '-Werror', '-d', classes, ...sources], {})
  expect(compiled).toEqual({ code: 0, out: '' })
})

afterAll(async () => {
  edge.close()
  await rm(classes, { recursive: true })
})

const languages = {
  Python: {
    send: () => ['python3', join(examples.send, 'send_telemetry.py')],
    verify: () => ['python3', join(examples.verify, 'verify_webhook.py')],
  },
  Java: {
    send: () => ['java', '-cp', classes, 'SendTelemetry'],
    verify: () => ['java', '-cp', classes, 'VerifyWebhook'],
  },
}

describe.each(Object.entries(languages))('%s', (_, commands) => {
  // A start of Java takes a second, so these are only the vectors in which programs can differ.
  const names = /^(an empty body|text beyond ASCII|a secret of (43|79) bytes)$/
  const vectors = signatures.vectors.filter(({ name }) => names.test(name))

  it('has four vectors to send', () => {
    expect(vectors).toHaveLength(4)
  })

  it.each(vectors)('sends with the signature of the vector: $name', async (vector) => {
    status = 200
    received.length = 0
    const body = Buffer.from(vector.body_base64!, 'base64')
    const env = { INGEST_URL: ingestUrl, HMAC_SECRET: vector.secret, LC_ALL: 'C.UTF-8' }
    expect(await run(commands.send(), { input: body, env })).toEqual({
      code: 0,
      out: '200 {"status":"accepted"}',
    })
    expect(received).toEqual([
      {
        path: '/v1/rasp/ingest',
        signature: vector.signature,
        type: 'application/json',
        body,
      },
    ])
  })

  it('shows a rejection and fails', async () => {
    status = 401
    const env = { INGEST_URL: ingestUrl, HMAC_SECRET: 'x'.repeat(43) }
    const { code, out } = await run(commands.send(), { input: '{}', env })
    expect({ code, out }).toEqual({ code: 1, out: '401 {"status":"accepted"}' })
  })

  const verify = (input: string, signature: string) =>
    run([...commands.verify(), signature], { input, env: { WEBHOOK_SECRET: webhooks.secret } })
  const genuine = webhooks.headers['x-service-signature']

  it('accepts a genuine webhook', async () => {
    expect(await verify(webhooks.body, genuine)).toEqual({ code: 0, out: 'genuine' })
  })

  const forged = webhooks.forged.flatMap(({ name, headers }) => {
    const { 'x-service-signature': signature } = headers as Record<string, string>
    return signature === undefined ? [] : [{ name, signature }]
  })

  it.each(forged)('rejects a webhook: $name', async ({ signature }) => {
    expect(await verify(webhooks.body, signature)).toEqual({ code: 1, out: 'forged' })
  })

  it.each(webhooks.changed_bodies)('rejects a body: $name', async ({ body }) => {
    expect(await verify(body, genuine)).toEqual({ code: 1, out: 'forged' })
  })
})

describe('Node', () => {
  it('sends as ingest’s README shows it', async () => {
    status = 200
    received.length = 0
    const page = await readFile(join(root, 'services/ingest/README.md'), 'utf8')
    const program = /```ts\n([^`]*createHmac[\s\S]*?)```/.exec(page)![1]!
    const file = join(classes, 'readme.mjs')
    const telemetry = { tenant_id: 'acme', note: 'grün' }
    const given = [
      `const telemetry = ${JSON.stringify(telemetry)}`,
      'const { INGEST_URL: ingestUrl, HMAC_SECRET: hmacSecret } = process.env',
    ]
    await writeFile(file, `${given.join('\n')}\n${program}`)
    const env = { INGEST_URL: ingestUrl, HMAC_SECRET: 'x'.repeat(43) }
    expect(await run([process.execPath, file], { env })).toEqual({ code: 0, out: '' })
    const body = Buffer.from(JSON.stringify(telemetry))
    const signature = createHmac('sha256', env.HMAC_SECRET).update(body).digest('base64')
    expect(received).toEqual([
      { path: '/v1/rasp/ingest', signature, type: 'application/json', body },
    ])
  })
})

describe('the page of a tenant', () => {
  /** Ends a literal or begins an expression in one of the languages, or is invisible. */
  const hostile =
    `" ' \\ \\u0022 $x \${x} #{x} \\(x) %s {{x}} \n\r\t\u0001\u007f` +
    '\u0085\u2028\u202e \u00e9 \u{1f600}'
  const secret = 'x'.repeat(43)
  const showProgram = (id: string, body: string, url: string) =>
    writeSnippets({ body, ingestUrl: url }).find((snippet) => snippet.id === id)!.code
  const shown: [string, string, (file: string) => string[]][] = [
    ['python', 'shown.py', (file) => ['python3', file]],
    ['java', 'SendTelemetry.java', (file) => ['java', '-Dfile.encoding=UTF-8', file]],
  ]

  it.each(shown)('shows a program in %s that sends exactly the body', async (id, name, toRun) => {
    const file = join(classes, name)
    for (const body of [writeSubmission('acme'), hostile]) {
      status = 200
      received.length = 0
      await writeFile(file, showProgram(id, body, ingestUrl))
      const env = { HMAC_SECRET: secret, LC_ALL: 'C.UTF-8' }
      expect(await run(toRun(file), { env })).toEqual({
        code: 0,
        out: '200 {"status":"accepted"}',
      })
      const bytes = Buffer.from(body)
      const signature = createHmac('sha256', secret).update(bytes).digest('base64')
      expect(received).toEqual([
        { path: '/v1/rasp/ingest', signature, type: 'application/json', body: bytes },
      ])
    }
  })

  it('shows programs in nine languages with these literals', () => {
    const text = `"'\\$\{x} #{x} \n`
    const double = '"\\"\'\\\\${x} #{x} \\n"'
    const dollar = '"\\"\'\\\\\\${x} #{x} \\n"'
    const single = `'"\\'\\\\$\{x} #{x} \n'`
    const literals = {
      python: `${double}.encode()`,
      java: `${double}.getBytes(`,
      kotlin: `${dollar}.toByteArray()`,
      swift: `Data(${double}.utf8)`,
      go: `[]byte(${double})`,
      php: `= ${single};`,
      ruby: `= ${single}\n`,
      csharp: `GetBytes(${double})`,
      dart: `utf8.encode(${dollar})`,
    }
    for (const [id, literal] of Object.entries(literals)) {
      expect(showProgram(id, text, 'https://in.example'), id).toContain(literal)
    }
    const snippets = writeSnippets({ body: '{}', ingestUrl: 'https://in.example' })
    expect(snippets.map(({ id }) => id).sort()).toEqual(Object.keys(literals).sort())
    for (const { code } of snippets) {
      expect(code).toContain('https://in.example')
      expect(code).not.toMatch(/INGEST_URL|stdin/i)
      expect(code).toContain('HMAC_SECRET')
    }
    // What a person types, or a link has, may be a text of the programs.
    for (const { code } of snippets) {
      const lines = code.split('\n').map((line) => line.trim())
      for (const ingestUrl of ['HMAC_SECRET, INGEST_URL', ...lines]) {
        expect(() => writeSnippets({ body: '{}', ingestUrl })).not.toThrow()
      }
    }
    for (const { code } of writeSnippets({ body: '{}', ingestUrl: '' })) {
      expect(code).toContain('INGEST_URL')
    }
  })
})

it('each of nine languages has an example of both', async () => {
  const endings = ['cs', 'dart', 'go', 'java', 'kt', 'php', 'py', 'rb', 'swift']
  for (const folder of Object.values(examples)) {
    const entries = await readdir(folder, { withFileTypes: true })
    const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
    expect(names.map((name) => name.split('.').pop()).sort()).toEqual(endings)
  }
})
