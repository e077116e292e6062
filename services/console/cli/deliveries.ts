/** `di deliveries ...`: list and show deliveries, replay them, test the webhook. */
import { deliveryEvents } from '#shared/core/deliveries/webhook-events.ts'
import { type Answer, change, command, cursor, group, limit, read, toMore } from './commands.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { type Column, toColumns, toFields, toTable, toTime } from './tables.ts'

const path = '/tenants/{tenant_id}/deliveries'

type Delivery = Answer<`${typeof path}/{delivery_id}`>
type Replayed = Answer<`${typeof path}/replay`, 'post'>
type ReplayOptions = { alert?: string; since?: string; failed?: true }

/** A replay of a million deliveries is two hundred statements. */
const replayMaxMs = 10 * 60_000
/** A test event is tried for 15 s, after a moment until it is claimed. */
const testMaxMs = 20_000
const testPollMs = 200

const columns: readonly Column<Delivery>[] = [
  ['DELIVERY', 'delivery_id'],
  ['EVENT', 'event'],
  ['ALERT', 'alert_id'],
  ['STATE', toState],
  ['ATTEMPTS', ({ attempts }) => attempts.length],
  ['LAST', ({ attempts }) => attempts.at(-1)?.status ?? attempts.at(-1)?.error_kind],
  ['NEXT', 'due_at'],
  ['CREATED', 'created_at'],
]

export const deliveries = group(
  'deliveries',
  'list deliveries of alerts, replay them, test the webhook',
  [
    read('list <slug>', 'list deliveries with their attempts, newest first', path, {
      options: [
        ['--state <state>', 'pending, sending, delivered, failed or skipped'],
        ['--event <kind>', deliveryEvents.join(', ')],
        ['--alert <id>', 'only the deliveries of this alert'],
        limit(50),
        cursor,
      ],
      query: ({ alert, ...more }: { alert?: string }) => ({ ...more, alert_id: alert }),
      columns,
      empty: 'There are no such deliveries.',
      note: toMore,
    }),
    read(
      'show <slug> <delivery-id>',
      'show one delivery with every attempt and what the receiver answered',
      `${path}/{delivery_id}`,
      { text: toDeliveryText },
    ),
    change(
      'replay <slug>',
      'send deliveries again with the same id and bytes; the retry schedule restarts',
      ['post', `${path}/replay`],
      {
        options: [
          ['--alert <id>', 'the deliveries of this alert, in any state'],
          ['--since <time>', 'all created at this time or later, in any state'],
          ['--failed', 'only those that failed or were skipped'],
        ],
        body: ({ alert, since, failed }: ReplayOptions) => {
          const isScope = since !== undefined || failed !== undefined
          if ((alert !== undefined) === isScope) {
            throw new CliError('Give one of --alert ID, --since TIME, --failed, or the last two.')
          }
          return { alert_id: alert, since, failed }
        },
        timeoutMs: replayMaxMs,
        text: toReplayedText,
      },
    ),
    command(
      'test <slug>',
      'send a test event to the webhook and wait for the outcome',
      [],
      (context, [slug]) => testWebhook(context, slug!),
    ),
  ],
)

async function testWebhook(context: CliContext, slug: string): Promise<void> {
  const base = `${toTenantPath(slug)}/deliveries`
  const sent = (await context.adminFetch('POST', `${base}/test`)) as Delivery
  const shown = `${base}/${encodeURIComponent(sent.delivery_id)}`
  const deadline = performance.now() + testMaxMs
  let delivery = sent
  while (delivery.attempts.length === 0 && delivery.ended_at === null) {
    if (performance.now() > deadline) break
    await new Promise((resolve) => setTimeout(resolve, testPollMs))
    delivery = (await context.adminFetch('GET', shown)) as Delivery
  }
  const result = { tenant_id: slug, data: [delivery] }
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

function toReplayedText({ replayed, data }: Replayed): string {
  if (replayed === 0) return 'There is nothing to send again.'
  const what = `${replayed} ${replayed === 1 ? 'delivery is' : 'deliveries are'} sent again`
  return `${what}${data.length < replayed ? `, the first ${data.length}` : ''}:\n${toColumns(columns, data)}`
}

function toState({ state, reason }: Delivery): string {
  return reason === null ? state : `${state} (${reason})`
}

function toDeliveryText(delivery: Delivery): string {
  const { attempts } = delivery
  const fields = toFields({
    delivery_id: delivery.delivery_id,
    alert_id: delivery.alert_id,
    event: delivery.event,
    state: toState(delivery),
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
