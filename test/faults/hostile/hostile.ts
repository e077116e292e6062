/**
 * `npm run faults -- hostile [--count 200] [--only PART-OF-NAME] [--warm-ups 20]`: many attempts at
 * once against each kind of hostile receiver, and against all kinds together. Every attempt must
 * end as expected within 15.5 s, and the sending process must not grow by more than 30 MB. Each
 * group has a new sender, which first warms up on good responses, until V8's young generation is as
 * large as under any traffic.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { webhookConnectTimeoutMs, webhookTimeoutMs } from '#shared/core/base/limits/deliveries.ts'
import { print, readOptions } from '../support/drill.ts'
import { hostileAnswers } from './answers.ts'
import type { SenderOrders, SenderReport } from './hostile-sender.ts'
import type { Ports } from './hostile-server.ts'

const endsWithinMs = webhookTimeoutMs + 500
/**
 * An attempt that does not wait for the time limit ends within this time, even with 200 at once.
 */
const quickMs = webhookConnectTimeoutMs + 1_000
const grownBytesMax = 30 * 1_000_000
/** A body up to its bound, its framing, the head, and one more read. */
const socketBytesMax = 256 * 1_024

const programOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const startChild = (name: string) => fork(programOf(name), { execArgv: [] })

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { count: 200, only: '', 'warm-ups': 20 })
  const how = { count: options.count, warmUps: options['warm-ups'] }
  const names = Object.keys(hostileAnswers).filter((name) => name.includes(options.only))
  const groups = names.map((name) => [name])
  if (names.length > 1) groups.push(names)
  const server = startChild('./hostile-server.ts')
  let broken = 0
  try {
    const [ports] = (await once(server, 'message')) as [Ports]
    print(
      `${'receivers'.padEnd(38)}${'longest'.padStart(9)}${'grown'.padStart(10)}` +
        `${'read'.padStart(10)}${'blocked'.padStart(9)}  ended`,
    )
    for (const group of groups) {
      const report = await sendTo(group, ports, how)
      broken += printRow(group, report, ports)
    }
  } finally {
    server.disconnect()
  }
  print(broken === 0 ? 'every bound held' : `${broken} bounds broken`)
  if (broken > 0) process.exitCode = 1
}

async function sendTo(
  names: string[],
  ports: Ports,
  how: { count: number; warmUps: number },
): Promise<SenderReport> {
  const urlOf = (name: string, tls: boolean) =>
    `${tls ? 'https' : 'http'}://receiver.test:${ports[name]}/${encodeURIComponent(name)}`
  const withTls = names.some((name) => hostileAnswers[name]!.tls)
  const orders: SenderOrders = {
    ...how,
    warmUp: withTls ? urlOf('well, TLS', true) : urlOf('well', false),
    urls: names.map((name) => urlOf(name, hostileAnswers[name]!.tls === true)),
  }
  const sender: ChildProcess = startChild('./hostile-sender.ts')
  sender.send(orders)
  const ended = once(sender, 'exit').then(([code]) => {
    throw new Error(`the sender ended with ${code} before it reported`)
  })
  const [report] = (await Promise.race([once(sender, 'message'), ended])) as [SenderReport]
  ended.catch(() => undefined)
  return report
}

/** Prints one line and returns how many bounds it broke. */
function printRow(names: string[], report: SenderReport, ports: Ports): number {
  const nameOf = new Map(Object.entries(ports).map(([name, port]) => [port, name]))
  const counts = new Map<string, number>()
  let wrong = 0
  let late = 0
  for (const { url, ended, durationMs } of report.attempts) {
    const answer = hostileAnswers[nameOf.get(Number(new URL(url).port))!]!
    counts.set(ended, (counts.get(ended) ?? 0) + 1)
    if (ended !== String(answer.ends)) wrong += 1
    if (durationMs > (answer.slow ? endsWithinMs : quickMs)) late += 1
  }
  const faults = [
    ...(wrong > 0 ? [`${wrong} ended otherwise`] : []),
    ...(late > 0 ? [`${late} too late`] : []),
    ...(report.grownBytes > grownBytesMax ? ['grown too far'] : []),
    ...(report.socketBytesMax > socketBytesMax ? ['read too much'] : []),
  ]
  const longest = Math.max(...report.attempts.map(({ durationMs }) => durationMs))
  const endings = [...counts].map(([ended, count]) => `${count} x ${ended}`).join(', ')
  print(
    (names.length === 1 ? names[0]! : `all ${names.length} kinds at once`).padEnd(38) +
      `${(longest / 1_000).toFixed(2)} s`.padStart(9) +
      `${(report.grownBytes / 1e6).toFixed(1)} MB`.padStart(10) +
      `${Math.ceil(report.socketBytesMax / 1_024)} KiB`.padStart(10) +
      `${Math.round(report.blockedMsMax)} ms`.padStart(9) +
      `  ${endings}${faults.map((fault) => `  <-- ${fault}`).join('')}`,
  )
  return faults.length
}
