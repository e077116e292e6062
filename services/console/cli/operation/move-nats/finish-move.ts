/** The last part of a move to other NATS servers: the old ones have nothing left that counts. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Nats } from '#shared/io/nats/connection.ts'
import { type CliContext, CliError } from '../../context.ts'
import { patiently } from './patiently.ts'

export type MoveFinished = {
  /** Messages by stream. */
  copied: Record<string, number>
}

const lookEveryMs = 500

/**
 * Waits for edges to leave, seals the telemetry streams, waits until scorers have stored and
 * decided all of them, and copies dead letters and the reports of edges. Until it ends, scorers
 * stay at the old servers: what is accepted at the new ones is decided after all that came before
 * it. Repeating it is harmless.
 */
export async function finishMove(context: CliContext): Promise<MoveFinished> {
  // Loaded here, because other commands need no server.
  const { connectAsOperator } = await import('../operator-nats.ts')
  const { NATS_TO_URL, NATS_TO_URL_FILE } = context.env
  if (!NATS_TO_URL && !NATS_TO_URL_FILE) {
    throw new CliError('Set NATS_TO_URL with the operator’s user `di` of the new servers.')
  }
  const from = await connectAsOperator(context)
  try {
    const env = { ...context.env, NATS_URL: NATS_TO_URL, NATS_URL_FILE: NATS_TO_URL_FILE }
    const to = await connectAsOperator({ ...context, env })
    try {
      await patiently('Comparing the servers', () => requireNewStreams(from, to))
      await drain(context, from)
      return { copied: await copyRest(from, to) }
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
}

/** @throws CliError unless the new servers have streams of their own for all of the old ones */
async function requireNewStreams(from: Nats, to: Nats): Promise<void> {
  if (to.telemetryStreams.length < from.telemetryStreams.length) {
    throw new CliError('The new servers lack streams: run `di move-nats prepare` first.')
  }
  for (const { stream } of from.telemetryStreams) {
    const [old, next] = [from, to].map((nats) => nats.manager.streams.info(stream))
    if ((await old)?.created === (await next)?.created) {
      throw new CliError('NATS_URL and NATS_TO_URL are the same servers.')
    }
  }
}

async function drain(context: CliContext, from: Nats): Promise<void> {
  const { findLiveEdges } = await import('#shared/io/tenants/directory/live-edges.ts')
  const { countUndecided, sealTelemetry } = await import(
    '#shared/io/nats/streams/seal-telemetry.ts'
  )
  const tell = createTeller(context)
  for (;;) {
    const edges = await patiently('Listing the edges', () => findLiveEdges(from))
    if (edges.length === 0) break
    tell(`waiting for edges that are still at the old servers: ${edges.join(', ')}`)
    await sleep(lookEveryMs)
  }
  await patiently('Closing the old streams', () => sealTelemetry(from))
  for (;;) {
    const undecided = await patiently('Reading the old streams', () => countUndecided(from))
    if (undecided === 0) return
    tell(`waiting for scorers at the old servers: ${undecided} messages are not decided`)
    await sleep(lookEveryMs)
  }
}

/** Says each thing once, and nothing where stdout is a JSON document. */
function createTeller({ json, write }: CliContext): (line: string) => void {
  let last = ''
  return (line) => {
    if (line !== last && !json) void write(`${line}\n`)
    last = line
  }
}

async function copyRest(from: Nats, to: Nats): Promise<MoveFinished['copied']> {
  const { copyMessages, publishMessage, streamsToCopy } = await import(
    '#shared/io/backup/stream-backup.ts'
  )
  const copied: MoveFinished['copied'] = {}
  for (const stream of streamsToCopy) {
    const write = (line: string) => publishMessage(to, line)
    const copy = () => copyMessages(from, stream, { from: null, write })
    copied[stream] = await patiently(`Copying ${stream}`, copy)
  }
  return copied
}
