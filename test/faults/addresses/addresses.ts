/**
 * `npm run faults -- addresses [--random 1000000] [--seed K]`: no connection is made to a forbidden
 * address. With strace, every connect() of a process that attempts all of them is read. Random
 * addresses are compared with a second implementation of the rules. Exits with 1 on any difference.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isForbiddenAddress } from '#shared/core/deliveries/outbound-address.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { isForbiddenV4, isForbiddenV6 } from '../../support/deliveries/address-corpus.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import type { AttemptsReport } from './attempts.ts'

const program = fileURLToPath(new URL('./attempts.ts', import.meta.url))

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { random, seed } = readOptions(args, { random: 1_000_000, seed: randomSeed() })
  const broken = await attemptAll()
  print(`random addresses: ${random} of each family, --seed ${seed}`)
  reportBroken([...broken, ...compareRandom(random, seed)])
}

/** Runs the attempts, traced when strace is installed. @returns the faults */
async function attemptAll(): Promise<string[]> {
  const traced = spawnSync('strace', ['-V'], { stdio: 'ignore' }).status === 0
  const dir = await mkdtemp(join(tmpdir(), 'forbidden-'))
  const record = join(dir, 'connects')
  const trace = ['strace', '-f', '-qq', '-e', 'trace=connect', '-o', record]
  const [command = '', ...args] = [...(traced ? trace : []), process.execPath, program]
  try {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk
    })
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`the attempts ended with ${code}`)
    const report = JSON.parse(output) as AttemptsReport
    const connects = traced ? readConnects(await readFile(record, 'utf8')) : null
    return judge(report, connects)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

type Connect = { address: string; port: number }

/** The internet addresses of all connect() calls of a record. */
function readConnects(record: string): Connect[] {
  return record
    .split('\n')
    .filter((line) => /connect\(.*AF_INET/.test(line))
    .map((line) => ({
      address: /inet_(?:addr\(|pton\(AF_INET6, )"([^"]+)"/.exec(line)?.[1] ?? line,
      port: Number(/sin6?_port=htons\((\d+)\)/.exec(line)?.[1]),
    }))
}

function judge(report: AttemptsReport, connects: Connect[] | null): string[] {
  const faults: string[] = []
  const attempts = Object.values(report.ended).reduce((sum, count) => sum + count, 0)
  print(`attempts at forbidden addresses: ${attempts}, ended ${JSON.stringify(report.ended)}`)
  print(`connections to the listeners on them: ${report.connections}`)
  if (report.ended.refused_address !== attempts) faults.push('attempts ended in another way')
  if (report.connections > 0) faults.push('a listener saw a connection')
  if (connects === null) {
    print('connect() calls: not traced, there is no strace')
    return faults
  }
  const at = (port: number) => connects.filter((connect) => connect.port === port).length
  const proofs = at(report.allowedPort)
  const others = connects.filter(
    ({ address, port }) =>
      address !== '127.0.0.1' || ![report.dnsPort, report.allowedPort].includes(port),
  )
  print(
    `connect() calls: ${at(report.dnsPort)} to the DNS server, ${proofs} to the address that is ` +
      `allowed, ${others.length} to others`,
  )
  for (const { address, port } of others.slice(0, 10)) faults.push(`connect to ${address}:${port}`)
  if (proofs === 0) faults.push('the trace misses the allowed connection, so it proves nothing')
  return faults
}

/** Boundary values of the rules, so that random addresses fall near them. */
const corners = [
  ...[0, 1, 0x64, 0xff9b, 0x100, 0x1ff, 0x200, 0x2000, 0x2001, 0xdb8, 0x2002, 0x3fff, 0xfff],
  ...[0x1000, 0x5f00, 0xfc00, 0xfe80, 0xff00, 0x7f00, 0xa9fe, 0x1fff, 0x4000, 0xffff],
]

function compareRandom(count: number, seed: number): string[] {
  const { next } = createRandom(seed, 'addresses')
  const below = (bound: number) => Math.floor(next() * bound)
  const faults: string[] = []
  let forbidden = 0
  for (let n = 0; n < count && faults.length < 10; n++) {
    const bytes = Array.from({ length: 4 }, () => below(256))
    const groups = Array.from({ length: 8 }, () =>
      next() < 0.5 ? below(0x10000) : corners[below(corners.length)]!,
    )
    const v4 = bytes.join('.')
    const v6 = groups.map((group) => group.toString(16)).join(':')
    if (isForbiddenAddress(v4) !== isForbiddenV4(bytes)) faults.push(`another verdict on ${v4}`)
    if (isForbiddenAddress(v6) !== isForbiddenV6(groups)) faults.push(`another verdict on ${v6}`)
    const wrapped = `64:ff9b::${v4}`
    if (isForbiddenAddress(wrapped) !== isForbiddenV4(bytes))
      faults.push(`not as ${v4}: ${wrapped}`)
    forbidden += isForbiddenAddress(v6) ? 1 : 0
  }
  print(`different verdicts: ${faults.length}; IPv6 addresses forbidden: ${forbidden} of ${count}`)
  return faults
}
