// Files of network data: every documented record is found, every broken file is refused with the
// one before it in use, and nothing is read half.
import { execFileSync } from 'node:child_process'
import { mkdtemp, open, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { networkDatabasesMax, networkFileBytesMax } from '#shared/core/base/limits/lists.ts'
import { createNetworkData, type NetworkData } from '#shared/io/network/network-data.ts'
import { readDatabase } from '#shared/io/network/read-database.ts'
import { NetworkFileError } from '#shared/io/network/record-decoder.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { encodeValue, uint64, writeMmdb } from '../../../deploy/local/network/mmdb-writer.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { writeBrokenDatabases } from '../../support/network/broken-databases.ts'
import { signalsOf } from '../../support/network/signals-of.ts'

let folder: string
let metrics: Metrics
let data: NetworkData

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'network-data-'))
  metrics = createMetrics('test')
  data = createNetworkData({ folder, log: testLog, metrics, wallMs: Date.now })
})
afterEach(() => rm(folder, { recursive: true }))

const pathOf = (name: string) => join(folder, name)
/** Replaces a file as an operator should: whole. */
async function put(name: string, content: string | Buffer): Promise<void> {
  await writeFile(pathOf(`${name}.new`), content)
  await rename(pathOf(`${name}.new`), pathOf(name))
}
/** A replaced file is read at the second look that finds it. */
async function lookTwice(): Promise<void> {
  await data.look()
  await data.look()
}
const ask = (text: string) => signalsOf(data.sources(), text)
const stateOf = (name: string) => data.status()!.find(({ file }) => file === name)

const small = (country: string) => writeMmdb([['8.8.0.0/16', { country: { iso_code: country } }]])

describe('a database', () => {
  it.each([
    [24, 4],
    [28, 4],
    [32, 4],
    [24, 6],
    [28, 6],
    [32, 6],
  ] as const)('with records of %i bits for IPv%i has every record', async (recordSize, version) => {
    const networks: [string, string][] = [
      ['1.0.0.0/24', 'AU'],
      ['1.0.1.0/24', 'CN'],
      ['1.0.1.128/25', 'HK'],
      ['8.0.0.0/8', 'US'],
      ['8.8.8.8/32', 'DE'],
      ['223.255.255.0/24', 'JP'],
    ]
    const more: [string, string][] = [
      ['2a00::/12', 'GB'],
      ['2a00:1450:4001::/48', 'IE'],
      ['2a00:1450:4001:8::1/128', 'FR'],
      ['2c0f:ffff::/32', 'ZA'],
    ]
    const all = version === 6 ? [...networks, ...more] : networks
    const entries = all.map(([text, code]) => [text, { country: { iso_code: code } }] as const)
    await put('country.mmdb', writeMmdb(entries, { recordSize, version }))
    await data.look()
    const expected: [string, string | undefined][] = [
      ...([
        ['1.0.0.255', 'AU'],
        ['1.0.1.127', 'CN'],
        ['1.0.1.128', 'HK'],
        ['1.0.2.0', undefined],
        ['::ffff:8.8.8.7', 'US'],
        ['8.8.8.8', 'DE'],
        ['8.255.255.255', 'US'],
        ['9.0.0.0', undefined],
        ['223.255.255.255', 'JP'],
      ] as [string, string | undefined][]),
      ...(version === 6
        ? ([
            ['2a0f:ffff::1', 'GB'],
            ['2a10::', undefined],
            ['2a00:1450:4001::ffff', 'IE'],
            ['2a00:1450:4001:8::1', 'FR'],
            ['2a00:1450:4001:8::2', 'IE'],
            ['2c0f:ffff:1::', 'ZA'],
          ] as [string, string | undefined][])
        : []),
    ]
    for (const [text, code] of expected) expect([text, ask(text)?.country]).toEqual([text, code])
  })

  it('may have aliases of its IPv4 part, which are no place of a client', async () => {
    const aliases = ['2001::/32', '2002::/16']
    const entries = [
      ['8.0.0.0/8', { country_code: 'US' }],
      ['2a00::/12', { country_code: 'GB' }],
    ] as const
    await put('country.mmdb', writeMmdb(entries, { aliases }))
    await data.look()
    expect(ask('8.8.8.8')).toEqual({ country: 'US' })
    expect(ask('2a00::1')).toEqual({ country: 'GB' })
    expect(ask('2002:808:808::1')).toBeNull()
    expect(stateOf('country.mmdb')).toMatchObject({ state: 'in_use', networks: 4 })
  })

  it('says what it gives, how old it is and how large', async () => {
    const entries = [
      ['8.0.0.0/8', { asn: 'AS64500', as_name: 'Example', country_code: 'US' }],
    ] as const
    const file = writeMmdb(entries, { buildEpoch: 1_780_000_000 })
    await put('lite.mmdb', file)
    await put('tor.txt', '8.8.4.4\n')
    await utimes(pathOf('tor.txt'), 1_790_000_000, 1_790_000_000)
    await data.look()
    expect(data.status()).toEqual([
      {
        file: 'lite.mmdb',
        state: 'in_use',
        fault: null,
        gives: ['country', 'asn', 'organization'],
        networks: 2,
        bytes: file.length,
        built_at: new Date(1_780_000_000_000).toISOString(),
        read_at: expect.stringMatching(/^20/),
      },
      expect.objectContaining({
        file: 'tor.txt',
        gives: ['tor'],
        networks: 1,
        built_at: new Date(1_790_000_000_000).toISOString(),
      }),
    ])
    const text = await metrics.registry.metrics()
    const age = /^di_network_data_age_seconds\{file="lite.mmdb".*\} ([\d.]+)$/m.exec(text)?.[1]
    expect(Math.abs(Number(age) - (Date.now() / 1_000 - 1_780_000_000))).toBeLessThan(60)
    expect(text).toMatch(/^di_network_data_broken\{file="tor.txt".*\} 0$/m)
  })
})

describe('a broken database', () => {
  const broken = writeBrokenDatabases()

  it.each(Object.entries(broken))('%s is refused', async (_name, file) => {
    await put('country.mmdb', file)
    await lookTwice()
    expect(stateOf('country.mmdb')).toMatchObject({ state: 'broken' })
    // The reader was not stopped by its limit of time, which is ten seconds.
    expect(stateOf('country.mmdb')?.fault).not.toMatch(/too long|memory|reader/)
    expect(ask('8.8.8.8')).toBeNull()
  })

  it('leaves the one before it in use until it is replaced', async () => {
    await put('country.mmdb', small('DE'))
    await data.look()
    await put('country.mmdb', Object.values(broken).at(-1)!)
    await lookTwice()
    expect(stateOf('country.mmdb')).toMatchObject({ state: 'older_in_use' })
    expect(ask('8.8.8.8')).toEqual({ country: 'DE' })
    expect(data.warning()).toMatch(/^country\.mmdb: /)
    const text = await metrics.registry.metrics()
    expect(text).toMatch(/^di_network_data_broken\{file="country.mmdb".*\} 1$/m)
    expect(text).toMatch(/^di_network_data_reads_total\{outcome="refused".*\} 1$/m)
    // It is not read again before it changes.
    await lookTwice()
    expect(await metrics.registry.metrics()).toMatch(
      /^di_network_data_reads_total\{outcome="refused".*\} 1$/m,
    )
    await put('country.mmdb', small('FR'))
    await lookTwice()
    expect(ask('8.8.8.8')).toEqual({ country: 'FR' })
    expect(data.warning()).toBeNull()
  })

  it('never harms, with any byte of it changed or cut off', async () => {
    const entries = [
      ['8.8.0.0/16', { country: { iso_code: 'DE' }, location: { latitude: 1.5, longitude: 2.5 } }],
      ['9.0.0.0/8', { autonomous_system_number: 64_500, names: ['a', 'b'], big: uint64(7) }],
    ] as const
    const whole = writeMmdb(entries, { version: 4, recordSize: 24 })
    let refused = 0
    const read = (file: Buffer) => {
      try {
        readDatabase(file)
      } catch (error) {
        if (!(error instanceof NetworkFileError || error instanceof RangeError)) throw error
        refused++
      }
    }
    for (let at = 0; at < whole.length; at++) {
      for (const value of [0, 1, 31, 32, 63, 64, 127, 128, 224, 255]) {
        const changed = Buffer.from(whole)
        changed[at] = value
        read(changed)
      }
      read(whole.subarray(0, at))
    }
    expect(refused).toBeGreaterThan(whole.length)
  })
})

describe('a file', () => {
  it('is read again when it is replaced, whole or not at all', async () => {
    await put('vpn.txt', '8.8.8.8\n9.9.9.9\n')
    await data.look()
    expect(ask('8.8.8.8')).toEqual({ vpn: true })
    // A list that is written in place, and stops in the middle.
    await writeFile(pathOf('vpn.txt'), '7.7.7.7\n')
    await data.look()
    expect([ask('7.7.7.7'), ask('8.8.8.8')]).toEqual([{ vpn: false }, { vpn: true }])
    await writeFile(pathOf('vpn.txt'), '7.7.7.7\n6.6.6.6\n')
    await data.look()
    expect(ask('7.7.7.7')).toEqual({ vpn: false })
    await data.look()
    expect([ask('7.7.7.7'), ask('6.6.6.6'), ask('8.8.8.8')]).toEqual([
      { vpn: true },
      { vpn: true },
      { vpn: false },
    ])
    await put('vpn.txt', '5.5.5.5\n<html>\n')
    await lookTwice()
    expect([ask('5.5.5.5'), ask('7.7.7.7')]).toEqual([{ vpn: false }, { vpn: true }])
    expect(data.warning()).toBe('vpn.txt: line 2 is no network in CIDR notation')
  })

  it('that is new is used once it stays as it is, and one that is gone is not', async () => {
    await put('vpn.txt', '8.8.8.8\n')
    await data.look()
    await put('tor.txt', '8.8.8.8/31\n')
    await data.look()
    expect(ask('8.8.8.8')).toEqual({ vpn: true })
    await data.look()
    expect(ask('8.8.8.9')).toEqual({ vpn: false, tor: true })
    await rm(pathOf('tor.txt'))
    await data.look()
    expect(ask('8.8.8.9')).toEqual({ vpn: false, tor: true })
    await data.look()
    expect(ask('8.8.8.9')).toEqual({ vpn: false })
    await rm(pathOf('vpn.txt'))
    await lookTwice()
    expect(data.sources()).toBeNull()
    expect(data.status()).toEqual([])
  })

  it('of another name is not read', async () => {
    await put('notes.txt', 'x')
    await put('bad name.mmdb', small('DE'))
    await put('.hidden', 'x')
    await data.look()
    expect(data.status()).toEqual([])
    // Reading a pipe would wait for its writer.
    execFileSync('mkfifo', [pathOf('tor.txt')])
    await lookTwice()
    expect(data.status()).toMatchObject([{ file: 'tor.txt', fault: 'it is no file' }])
  })

  it('above its bound is refused before it is read, as are too many databases', async () => {
    const handle = await open(pathOf('a.mmdb'), 'w')
    await handle.truncate(networkFileBytesMax + 1)
    await handle.close()
    await data.look()
    expect(stateOf('a.mmdb')).toMatchObject({
      state: 'broken',
      fault: 'it has more than 200 MiB',
      bytes: null,
    })
    await rm(pathOf('a.mmdb'))
    await lookTwice()
    for (let n = 0; n <= networkDatabasesMax; n++) {
      await put(`n${String(n).padStart(2, '0')}.mmdb`, small('DE'))
    }
    await lookTwice()
    const states = data.status()!.map(({ state }) => state)
    expect(states.filter((state) => state === 'in_use')).toHaveLength(networkDatabasesMax)
    expect(stateOf('n16.mmdb')?.fault).toBe('the folder has more than 16 databases')
    await rm(pathOf('n00.mmdb'))
    await lookTwice()
    expect(stateOf('n16.mmdb')?.state).toBe('in_use')
  })
})

describe('a folder', () => {
  it('that does not exist is a warning, and none is no network data', async () => {
    const missing = createNetworkData({
      folder: pathOf('missing'),
      log: testLog,
      metrics: createMetrics('test'),
      wallMs: Date.now,
    })
    await missing.look()
    expect(missing.warning()).toBe('the folder of network data cannot be read')
    const none = createNetworkData({
      folder: null,
      log: testLog,
      metrics: createMetrics('test'),
      wallMs: Date.now,
    })
    await none.look()
    expect([none.sources(), none.status(), none.warning()]).toEqual([null, null, null])
  })

  it('is only described where files are only checked', async () => {
    const check = createNetworkData({
      folder,
      isCheckOnly: true,
      log: testLog,
      metrics: createMetrics('test'),
      wallMs: Date.now,
    })
    await put('country.mmdb', small('DE'))
    await put('vpn.txt', 'nonsense')
    await check.look()
    expect(check.sources()).toBeNull()
    expect(check.status()).toMatchObject([
      { file: 'country.mmdb', state: 'in_use', gives: ['country'] },
      { file: 'vpn.txt', state: 'broken', fault: 'line 1 is no network in CIDR notation' },
    ])
  })
})

it('the writer of these tests writes what it says', () => {
  expect([...encodeValue({ a: true })]).toEqual([0xe1, 0x41, 0x61, 0x01, 0x07])
})
