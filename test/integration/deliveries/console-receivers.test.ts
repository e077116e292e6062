/**
 * The receivers that the console shows: all six contain the tenant's values, and each whose
 * language is installed (Node.js always is) accepts genuine deliveries and rejects others.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { signDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { writeReceivers } from '../../../services/console/web/pages/webhooks/receivers.ts'
import { until } from '../../support/process/until.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** By language: the file's name, the required program, and how it starts the file. */
const programs: Record<string, [file: string, program: string, parameters: string[]]> = {
  node: ['receive.mjs', process.execPath, []],
  python: ['receive.py', 'python3', []],
  java: ['Receive.java', 'java', []],
  go: ['receive.go', 'go', ['run']],
  php: ['receive.php', 'php', ['-S', '127.0.0.1:PORT']],
  ruby: ['receive.ru', 'rackup', ['-o', '127.0.0.1', '-p', 'PORT']],
}

const isThere = (program: string) =>
  program === process.execPath || spawnSync('which', [program]).status === 0

const runnable = Object.keys(programs).filter((id) => isThere(programs[id]![1]))

const closers: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of closers) await close()
})

async function start(id: string): Promise<string> {
  const port = await choosePort({})
  const url = `http://127.0.0.1:${port}/hooks/di`
  const [file, program, parameters] = programs[id]!
  const folder = mkdtempSync(join(tmpdir(), 'receiver-'))
  writeFileSync(join(folder, file), writeReceivers('acme', url).find((one) => one.id === id)!.code)
  const filled = parameters.map((one) => one.replace('PORT', String(port)))
  const child: ChildProcess = spawn(program, [...filled, file], {
    cwd: folder,
    env: { ...process.env, WEBHOOK_SECRET: secret },
    stdio: 'ignore',
    detached: true,
  })
  const ended = once(child, 'exit')
  closers.push(async () => {
    // `go run` starts the program as a child of its own.
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  })
  await until(`the receiver in ${id} listens`, async () =>
    fetch(url, { method: 'POST', body: '{}' }).then(
      ({ status }) => status === 401,
      () => false,
    ),
  )
  return url
}

const body = Buffer.from('{"alert_id": "alr_1",\n "n": 1.0, "name": "Zoë"}')

async function post(url: string, headers: Record<string, string>, bytes = body): Promise<number> {
  const answer = await fetch(url, { method: 'POST', headers, body: bytes })
  await answer.arrayBuffer()
  return answer.status
}

describe.concurrent.each(runnable)('the receiver in %s', (id) => {
  it('accepts genuine deliveries, also with a second signature, and rejects others', async () => {
    const url = await start(id)
    const nowSeconds = Math.floor(Date.now() / 1_000)
    const sign = (timestampSeconds = nowSeconds) =>
      signDelivery(body, secret, { deliveryId: 'dlv_1', attempt: 1, timestampSeconds })
    expect(await post(url, sign())).toBe(204)
    expect(await post(url, sign())).toBe(204)
    const signature = sign()['webhook-signature']
    const two = { ...sign(), 'webhook-signature': `v1,${'A'.repeat(43)}= ${signature}` }
    expect(await post(url, two)).toBe(204)

    expect(await post(url, sign(), Buffer.concat([body, Buffer.from('\n')]))).toBe(401)
    expect(await post(url, sign(nowSeconds - 400))).toBe(401)
    expect(await post(url, { ...sign(), 'webhook-id': 'dlv_2' })).toBe(401)
    expect(await post(url, { ...sign(), 'webhook-timestamp': 'now' })).toBe(401)
    expect(await post(url, { ...sign(), 'webhook-signature': '' })).toBe(401)
  })
})

describe('the receivers', () => {
  it('are in six languages, with the path and port of the URL and no secret', () => {
    const shown = writeReceivers('acme', 'http://127.0.0.1:9123/hooks/di')
    expect(shown.map(({ id }) => id)).toEqual(Object.keys(programs))
    for (const { code } of shown) {
      expect(code).toContain('acme')
      expect(code).toContain('9123')
      expect(code).toContain('/hooks/di')
      expect(code).not.toMatch(/TENANT|WEBHOOK_P/)
    }
  })

  it.each([null, "https://acme.example/it's", 'no url'])('have default values for %s', (url) => {
    for (const { code } of writeReceivers('acme', url)) {
      expect(code).toContain('/hook')
      expect(code).toContain('9000')
    }
  })
})
