/** `di deliveries ...`: list and show deliveries, replay them, test the webhook. */
import { type Command, InvalidArgumentError } from 'commander'
import type { Delivery } from '#shared/core/deliveries/delivery-schema.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toFields, toTable, toTime } from './tables.ts'

type DeliveryPage = { data: Delivery[]; next_cursor: string | null }
type Replayed = { tenant_id: string; replayed: number; data: Delivery[] }
type Tested = { tenant_id: string; data: Delivery[] }
type ListOptions = { state?: string; alert?: string; limit: number; cursor?: string }
type ReplayOptions = { alert?: string; since?: string; failed?: true }

const json = ['--json', 'print one JSON document'] as const
const pathOf = (slug: string) => `${toTenantPath(slug)}/deliveries`

/** A replay of a million deliveries is two hundred statements. */
const replayMaxMs = 10 * 60_000
/** A test event is tried for 15 s, after a moment until it is claimed. */
const testMaxMs = 20_000
const testPollMs = 200

/** Adds the group `deliveries`. */
export function registerDeliveries(program: Command, context: CliContext): void {
  const deliveries = program
    .command('deliveries')
    .description('list deliveries of alerts, replay them, test the webhook')
  addReads(deliveries, context)
  addReplay(deliveries, context)
  deliveries
    .command('test <slug>')
    .description('send a test event to the webhook and wait for the outcome')
    .option(...json)
    .action((slug: string) => testWebhook(context, slug))
}

function addReads(deliveries: Command, context: CliContext): void {
  deliveries
    .command('list <slug>')
    .description('list deliveries with their attempts, newest first')
    .option('--state <state>', 'pending, sending, delivered, failed or skipped')
    .option('--alert <id>', 'only the delivery of this alert')
    .option('--limit <n>', 'at most this many', toLimit, 50)
    .option('--cursor <cursor>', '`next_cursor` of the previous page')
    .option(...json)
    .action(async (slug: string, options: ListOptions) => {
      const query = new URLSearchParams({ limit: String(options.limit) })
      if (options.state !== undefined) query.set('state', options.state)
      if (options.alert !== undefined) query.set('alert_id', options.alert)
      if (options.cursor !== undefined) query.set('cursor', options.cursor)
      const page = await context.adminFetch('GET', `${pathOf(slug)}?${query}`)
      context.out(page as DeliveryPage, toPageText)
    })
  deliveries
    .command('show <slug> <delivery-id>')
    .description('show one delivery with every attempt and what the receiver answered')
    .option(...json)
    .action(async (slug: string, deliveryId: string) => {
      const path = `${pathOf(slug)}/${encodeURIComponent(deliveryId)}`
      context.out((await context.adminFetch('GET', path)) as Delivery, toDeliveryText)
    })
}

function addReplay(deliveries: Command, context: CliContext): void {
  deliveries
    .command('replay <slug>')
    .description('send deliveries again with the same id and bytes; the retry schedule restarts')
    .option('--alert <id>', 'the delivery of this alert, in any state')
    .option('--since <time>', 'all created at this time or later, in any state')
    .option('--failed', 'only those that failed or were skipped')
    .option(...json)
    .action(async (slug: string, options: ReplayOptions) => {
      const { alert, since, failed } = options
      const isScope = since !== undefined || failed !== undefined
      if ((alert !== undefined) === isScope) {
        throw new CliError('Give one of --alert ID, --since TIME, --failed, or the last two.')
      }
      const body = { alert_id: alert, since, failed }
      const limit = { timeoutMs: replayMaxMs }
      const answer = await context.adminFetch('POST', `${pathOf(slug)}/replay`, body, limit)
      context.out(answer as Replayed, toReplayedText)
    })
}

async function testWebhook(context: CliContext, slug: string): Promise<void> {
  const sent = (await context.adminFetch('POST', `${pathOf(slug)}/test`)) as Delivery
  const path = `${pathOf(slug)}/${encodeURIComponent(sent.delivery_id)}`
  const deadline = performance.now() + testMaxMs
  let delivery = sent
  while (delivery.attempts.length === 0 && delivery.ended_at === null) {
    if (performance.now() > deadline) break
    await new Promise((resolve) => setTimeout(resolve, testPollMs))
    delivery = (await context.adminFetch('GET', path)) as Delivery
  }
  const result: Tested = { tenant_id: slug, data: [delivery] }
  context.out(result, () => toDeliveryText(delivery))
  if (delivery.state !== 'delivered') throw new CliError(toFailureText(delivery))
}

function toFailureText(delivery: Delivery): string {
  const last = delivery.attempts.at(-1)
  if (last !== undefined) {
    const what = last.status === null ? `${last.error_kind}` : `the answer was ${last.status}`
    const more = last.error === null ? '' : ` (${last.error})`
    return `The test event was not delivered: ${what}${more}.`
  }
  if (delivery.reason !== null) return `The test event was not sent: ${delivery.reason}.`
  return `The test event was not tried within ${testMaxMs / 1_000} s. Is delivery running?`
}

/** A whole number from 1 to 500. */
export function toLimit(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= 500) return value
  throw new InvalidArgumentError('must be a whole number from 1 to 500')
}

function toPageText({ data, next_cursor }: DeliveryPage): string {
  if (data.length === 0) return 'There are no such deliveries.'
  const table = toListTable(data)
  return next_cursor === null ? table : `${table}\n\nMore: --cursor ${next_cursor}`
}

function toReplayedText({ replayed, data }: Replayed): string {
  if (replayed === 0) return 'There is nothing to send again.'
  const what = `${replayed} ${replayed === 1 ? 'delivery is' : 'deliveries are'} sent again`
  return `${what}${data.length < replayed ? `, the first ${data.length}` : ''}:\n${toListTable(data)}`
}

function toListTable(deliveries: Delivery[]): string {
  return toTable(
    ['DELIVERY', 'ALERT', 'STATE', 'ATTEMPTS', 'LAST', 'NEXT', 'CREATED'],
    deliveries.map((delivery) => {
      const last = delivery.attempts.at(-1)
      return [
        delivery.delivery_id,
        delivery.alert_id ?? (delivery.event === 'risk.alert' ? '-' : delivery.event),
        delivery.reason === null ? delivery.state : `${delivery.state} (${delivery.reason})`,
        String(delivery.attempts.length),
        String(last?.status ?? last?.error_kind ?? '-'),
        toTime(delivery.due_at),
        toTime(delivery.created_at),
      ]
    }),
  )
}

function toDeliveryText(delivery: Delivery): string {
  const { attempts, reason } = delivery
  const fields = toFields({
    delivery_id: delivery.delivery_id,
    alert_id: delivery.alert_id,
    event: delivery.event,
    state: reason === null ? delivery.state : `${delivery.state} (${reason})`,
    created: toTime(delivery.created_at),
    next: toTime(delivery.due_at),
    ended: toTime(delivery.ended_at),
  })
  if (attempts.length === 0) return `${fields}\n\nIt has not been tried yet.`
  const table = toTable(
    ['ATTEMPT', 'AT', 'TOOK', 'STATUS', 'ERROR', 'ADDRESS'],
    attempts.map((one) => [
      String(one.attempt),
      toTime(one.at),
      `${one.duration_ms} ms`,
      String(one.status ?? '-'),
      one.error === null ? (one.error_kind ?? '-') : `${one.error_kind}: ${one.error}`,
      one.address ?? '-',
    ]),
  )
  const answers = attempts
    .filter((one) => one.answer !== null && one.answer !== '')
    .map((one) => `Answer to attempt ${one.attempt}:\n${toPrintable(one.answer!)}`)
  return [fields, table, ...answers].join('\n\n')
}

/** Replaces control characters: a receiver wrote this text, and it goes to a terminal. */
function toPrintable(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) =>
    '\t\n'.includes(character) ? character : '\ufffd',
  )
}
