/**
 * Network data: what looking up an event's address costs, beside the readers of mmdb-lib over the
 * same three databases; the memory of a process with 200 MB of files; and its slowest answer while
 * all of them are replaced and read again. `--share 0.1` takes a tenth of the networks.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Reader } from 'mmdb-lib'
import { parseAddress } from '#shared/core/network/address.ts'
import type { NetworkSources } from '#shared/core/network/connection.ts'
import { createNetworkData } from '#shared/io/network/network-data.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { signalsOf } from '../../support/network/signals-of.ts'
import { publishReport, single } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { largeFiles, makeAddresses, scaleFiles, writeNetworkFiles } from './network-files.ts'

const rounds = 7
const addresses = makeAddresses(50_000)
const mebibyte = 2 ** 20

/** @returns µs of CPU per address */
function measure(work: (address: string) => unknown): number {
  const before = process.cpuUsage()
  for (const address of addresses) work(address)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / addresses.length
}

/** What the child with the files answers. */
export type NetworkChildAnswer =
  | { port: number; bytesBefore: number; bytesAfter: number }
  | { reloaded: number; tookMs: number }

async function ask(child: ChildProcess, question: 'reload'): Promise<NetworkChildAnswer> {
  child.send(question)
  const [answer] = (await once(child, 'message')) as [NetworkChildAnswer]
  return answer
}

/** Asks the child for answers until `work` ends. @returns the slowest, in ms */
async function slowestDuring(port: number, work: Promise<unknown>): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  let isRunning = true
  let slowest = 0
  const ended = work.finally(() => {
    isRunning = false
  })
  for (let at = 0; isRunning; at++) {
    const path = `/${addresses[at % addresses.length]}`
    const startMs = performance.now()
    await new Promise<void>((resolve, reject) => {
      get({ agent, port, path }, (response) => response.resume().once('end', resolve)).once(
        'error',
        reject,
      )
    })
    slowest = Math.max(slowest, performance.now() - startMs)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await ended
  agent.destroy()
  return slowest
}

async function measureLookUps(folder: string) {
  const data = createNetworkData({
    folder,
    log: testLog,
    metrics: createMetrics('bench'),
    wallMs: Date.now,
  })
  await data.look()
  const sources = data.sources() as NetworkSources
  const readers = ['city', 'asn', 'anonymous'].map(
    (name) => new Reader(readFileSync(join(folder, `${name}.mmdb`))),
  )
  let found = 0
  const own: number[] = []
  const library: number[] = []
  const parsed: number[] = []
  for (let round = -1; round < rounds; round++) {
    const times = [
      measure((text) => {
        const signals = signalsOf(sources, text)
        if (signals?.country !== undefined) found++
      }),
      measure((text) => readers.map((reader) => reader.get(text))),
      measure(parseAddress),
    ] as const
    if (round < 0) continue
    own.push(times[0])
    library.push(times[1])
    parsed.push(times[2])
  }
  return { own, library, parsed, found, status: data.status()! }
}

async function measureProcess(folder: string) {
  const file = fileURLToPath(new URL('./network-child.ts', import.meta.url))
  const child = fork(file, [folder], { execArgv: ['--expose-gc'] })
  try {
    const [started] = (await once(child, 'message')) as [NetworkChildAnswer]
    if (!('port' in started)) throw new Error('the child does not listen')
    const pause = () => new Promise((resolve) => setTimeout(resolve, 5_000))
    const quietMs = await slowestDuring(started.port, pause())
    const reload = ask(child, 'reload')
    const reloadMs = await slowestDuring(started.port, reload)
    return { ...started, quietMs, reloadMs, reload: await reload }
  } finally {
    child.kill()
  }
}

export async function run(args: string[]): Promise<void> {
  const options = { share: { type: 'string', default: '1' } } as const
  const share = Number(parseArgs({ args, options }).values.share)
  const folder = mkdtempSync(join(tmpdir(), 'bench-network-'))
  try {
    const fileBytes = writeNetworkFiles(folder, scaleFiles(largeFiles, share))
    const inProcess = await measureProcess(folder)
    const { own, library, parsed, found, status } = await measureLookUps(folder)
    const grownMiB = (inProcess.bytesAfter - inProcess.bytesBefore) / mebibyte
    const fileMiB = fileBytes / mebibyte
    const answer = inProcess.reload
    publishReport({
      part: share === 1 ? 'network' : `network with ${share} of the files`,
      command: `npm run bench -- network${share === 1 ? '' : ` --share ${share}`}`,
      versions: {},
      durability: 'none: everything is in memory',
      figures: [
        {
          name: 'an address: three databases, four lists',
          unit: 'µs of CPU',
          value: toSpread(own),
          baseline: { name: 'mmdb-lib, three databases', value: toSpread(library) },
          ratio: toRatios(own, library),
          bound: { of: 'value', atMost: 3 },
        },
        { name: 'of it reading the address', unit: 'µs of CPU', value: toSpread(parsed) },
        single(
          `memory above the size of the files (${fileMiB.toFixed(0)} MiB)`,
          'MiB',
          grownMiB - fileMiB,
          50,
        ),
        single('slowest answer, nothing is read', 'ms', inProcess.quietMs),
        single('slowest answer while all files are read again', 'ms', inProcess.reloadMs, 20),
        single('reading all files again', 's', 'tookMs' in answer ? answer.tookMs / 1_000 : 0),
      ],
      checks: [
        { name: 'addresses with a country', ok: found > 1_000, detail: String(found) },
        {
          name: 'every file is in use',
          ok: status.length === 7 && status.every(({ state }) => state === 'in_use'),
          detail: status.map(({ file, fault }) => fault ?? file).join(', '),
        },
        {
          name: 'all files were read again',
          ok: 'reloaded' in answer && answer.reloaded === 7,
          detail: JSON.stringify(answer),
        },
      ],
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
