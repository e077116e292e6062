/**
 * What `npm run faults -- power` concludes from system calls: an answer before its sync is found,
 * and what a power cut leaves of a file is what was written when its last sync began.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { judgeOrder } from '../../faults/power/power-order.ts'
import { createDurableStore } from '../../faults/power/power-store.ts'
import { parseTrace } from '../../faults/power/power-trace.ts'

const workDir = mkdtempSync(join(tmpdir(), 'di-power-cut-'))
afterAll(() => rmSync(workDir, { recursive: true, force: true }))

const ports = { nats: 4222, edge: 8080 }
const block = '/store/msgs/1.blk'
const toLines = (calls: string[]) => calls.map((call, at) => `7 ${100 + at}.000000 ${call}`)

describe('the order of calls', () => {
  const publish =
    'write(21<TCP:[127.0.0.1:5000->127.0.0.1:4222]>, "HPUB telemetry.batch _INBOX.a.1 78 90' +
    '\\r\\nNats-Msg-Id: bat_x-1\\r\\n\\r\\n[{\\"event_id\\":\\"evt_1\\"}]", 200) = 200 <0.1>'
  const store = `pwrite64(7<${block}>, "\\1\\0Nats-Msg-Id: bat_x-1\\r\\n", 24, 0) = 24 <0.1>`
  const syncBegun = `fsync(7<${block}> <unfinished ...>`
  const syncEnded = '<... fsync resumed>) = 0 <0.1>'
  const ack =
    'write(13<TCP:[127.0.0.1:4222->127.0.0.1:5000]>, "MSG _INBOX.a.1 1 32\\r\\n' +
    '{\\"stream\\":\\"TELEMETRY\\",\\"seq\\":1}\\r\\n", 60) = 60 <0.1>'
  const read =
    'read(21<TCP:[127.0.0.1:5000->127.0.0.1:4222]>, "MSG _INBOX.a.1 1 32\\r\\n' +
    '{\\"stream\\":\\"TELEMETRY\\",\\"seq\\":1}\\r\\n", 65536) = 60 <0.1>'
  const answer =
    'write(23<TCP:[127.0.0.1:8080->127.0.0.1:6000]>, "HTTP/1.1 200 OK\\r\\n\\r\\n' +
    '{\\"status\\":\\"accepted\\",\\"event_id\\":\\"evt_1\\"}", 80) = 80 <0.1>'
  const judge = (calls: string[]) => judgeOrder(parseTrace(toLines(calls)), ports)
  /** The sync is another thread's: others come between its beginning and its end. */
  const judgeThreads = (calls: string[]) => {
    const lines = calls.map((call, at) => `${/fsync/.test(call) ? 7 : 8} ${100 + at}.0 ${call}`)
    return judgeOrder(parseTrace(lines), ports)
  }

  it('written, synced, acknowledged, answered: is right, with the time between', async () => {
    const found = await judge([publish, store, syncBegun, syncEnded, ack, read, answer])
    expect(found).toMatchObject({ answers: 1, batches: 1, syncs: 1, early: [], unexplained: [] })
    expect(found.closestMs).toBeGreaterThan(0)
  })

  it('without a sync, or with one that ends later, is an answer too early', async () => {
    expect((await judge([publish, store, ack, read, answer])).early).toEqual(['evt_1'])
    const later = [publish, store, syncBegun, ack, read, answer, syncEnded]
    expect((await judgeThreads(later)).early).toEqual(['evt_1'])
  })

  it('with a sync that began before the data was written, is an answer too early', async () => {
    const overtaken = [publish, syncBegun, store, syncEnded, ack, read, answer]
    expect((await judgeThreads(overtaken)).early).toEqual(['evt_1'])
  })

  it('before the acknowledgement was read is too early, and one of nothing is unexplained', async () => {
    const before = [publish, store, syncBegun, syncEnded, ack, answer, read]
    expect((await judge(before)).early).toEqual(['evt_1'])
    expect((await judge([answer])).unexplained).toEqual(['evt_1'])
  })
})

describe('what a power cut leaves', () => {
  const dir = join(workDir, 'store')

  async function cut(calls: string[]): Promise<(name: string) => string | null> {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir)
    writeFileSync(join(dir, 'old'), 'old text')
    const store = createDurableStore(dir)
    for await (const call of parseTrace(toLines(calls))) store.apply(call)
    const left = mkdtempSync(join(workDir, 'left-'))
    store.restore(left)
    return (name) => {
      try {
        return readFileSync(join(left, name), 'latin1')
      } catch {
        return null
      }
    }
  }
  const open = (name: string, flags: string) =>
    `openat(AT_FDCWD</>, "${dir}/${name}", O_RDWR|${flags}, 0600) = 5<${dir}/${name}> <0.1>`
  const write = (name: string, text: string, at: number) =>
    `pwrite64(5<${dir}/${name}>, "${text}", ${text.length}, ${at}) = ${text.length} <0.1>`
  const sync = (name: string) => `fsync(5<${dir}/${name}>) = 0 <0.1>`

  it('is a file as of its last sync, and none that was never synced', async () => {
    const read = await cut([
      open('new', 'O_CREAT'),
      ...[write('new', 'abc', 0), sync('new'), write('new', 'def', 3), 'close(5) = 0 <0.1>'],
      ...[open('never', 'O_CREAT'), write('never', 'x', 0), 'close(5) = 0 <0.1>'],
      ...[open('old', 'O_TRUNC'), write('old', 'other', 0)],
    ])
    expect([read('new'), read('never'), read('old')]).toEqual(['abc', null, 'old text'])
  })

  it('is under its new name what was synced before it was renamed, else the old', async () => {
    const rename = (from: string, to: string) =>
      `renameat(AT_FDCWD</>, "${dir}/${from}", AT_FDCWD</>, "${dir}/${to}") = 0 <0.1>`
    const unsynced = await cut([
      ...[open('tmp', 'O_CREAT'), write('tmp', 'fresh', 0), 'close(5) = 0 <0.1>'],
      rename('tmp', 'old'),
    ])
    expect([unsynced('tmp'), unsynced('old')]).toEqual([null, 'old text'])
    const synced = await cut([
      ...[open('tmp', 'O_CREAT'), write('tmp', 'fresh', 0), sync('tmp'), 'close(5) = 0 <0.1>'],
      rename('tmp', 'old'),
    ])
    expect([synced('tmp'), synced('old')]).toEqual([null, 'fresh'])
  })

  it('is nothing of a file that was removed, and bytes of every value are kept', async () => {
    const unlink = `unlinkat(AT_FDCWD</>, "${dir}/old", 0) = 0 <0.1>`
    const bytes = `pwrite64(5<${dir}/b>, "\\0\\1\\377\\n\\"\\\\7", 7, 0) = 7 <0.1>`
    const read = await cut([open('b', 'O_CREAT'), bytes, sync('b'), unlink])
    expect([read('old'), read('b')]).toEqual([null, '\0\x01\xff\n"\\7'])
  })
})
