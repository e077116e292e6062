/** `di replay`: has scorers store and decide again what was accepted since an instant. */
import { Option } from 'commander'
import { parseInstant } from '#shared/core/base/instants.ts'
import type { Replay } from '#shared/io/nats/replay-telemetry.ts'
import { command } from '../commands.ts'
import { type CliContext, CliError } from '../context.ts'

type Replayed = {
  since: string
  messages: number
  oldest_at: string | null
  /** Null without `--wait`. */
  replayed: boolean | null
}

export const addReplay = command<{ since: string; wait?: true }>(
  'replay',
  'have scorers store and decide again what was accepted since an instant',
  [
    new Option(
      '--since <time>',
      'ISO-8601: before the state that a store was put back to',
    ).makeOptionMandatory(),
    ['--wait', 'return once everything is stored and decided'],
  ],
  async (context, _, { since, wait }) => {
    const sinceMs = parseInstant(since)
    if (sinceMs === null) throw new CliError('--since is no ISO-8601 time with an offset.')
    context.out(await replay(context, sinceMs, wait === true), toText)
  },
)

async function replay(context: CliContext, sinceMs: number, wait: boolean): Promise<Replayed> {
  // Loaded here, because only this command needs NATS.
  const { connectAsOperator } = await import('./operator-nats.ts')
  const { awaitReplayed, replayTelemetry } = await import('#shared/io/nats/replay-telemetry.ts')
  const nats = await connectAsOperator(context)
  try {
    const replays = await replayTelemetry(nats, sinceMs)
    if (wait) await awaitReplayed(nats, replays)
    return {
      since: new Date(sinceMs).toISOString(),
      messages: replays.reduce((sum, { messages }) => sum + messages, 0),
      oldest_at: findLatestStart(replays),
      replayed: wait ? true : null,
    }
  } catch (error) {
    throw new CliError(`The replay failed: ${(error as Error).message}`, { cause: error })
  } finally {
    await nats.close()
  }
}

/** From then on every stream is complete. An empty one misses nothing beside others. */
function findLatestStart(replays: readonly Pick<Replay, 'oldestAt'>[]): string | null {
  const starts = replays.flatMap(({ oldestAt }) => (oldestAt === null ? [] : [oldestAt]))
  return starts.sort().at(-1) ?? null
}

function toText({ since, messages, oldest_at: oldestAt, replayed }: Replayed): string {
  const done = replayed
    ? `${messages} messages were stored and decided again.`
    : `${messages} messages are stored and decided again; \`di_consume_pending\` shows how far.`
  const isComplete = oldestAt !== null && oldestAt <= since
  const missing = isComplete
    ? []
    : [
        `The stream has nothing from before ${oldestAt ?? 'now'}: what was accepted between ` +
          `${since} and then cannot be replayed. \`di reconcile SLUG\` names what is missing.`,
      ]
  return [done, ...missing].join('\n')
}
