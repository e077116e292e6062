/** `di erase` and `di erasures`: a device or a user, from every store, and the receipts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, command, group, read } from './commands.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toFields, toTable } from './tables.ts'

const path = '/tenants/{tenant_id}/erasures'

type Erasure = Answer<`${typeof path}/{erasure_id}`>
type ErasureReceipt = NonNullable<Erasure['receipt']>
type EraseOptions = { device?: string; user?: string }

const pollMs = 500

export const erase = command<EraseOptions>(
  'erase <slug>',
  'erase a device or a user of a tenant from every store; cannot be undone',
  [
    ['--device <id>', 'everything of this device'],
    ['--user <id>', 'everything of this user or account, on all devices'],
  ],
  async (context, [slug], { device, user }) => {
    if ((device === undefined) === (user === undefined)) {
      throw new CliError('Give one of --device ID and --user ID.')
    }
    const subject = device === undefined ? { user_id: user } : { device_id: device }
    const body = { ...subject, wait: false }
    const requested = await context.adminFetch('POST', `${toTenantPath(slug!)}/erasures`, body)
    context.out(await awaitReceipt(context, requested as Erasure), toReceiptText)
  },
)

export const erasures = group('erasures', 'requested erasures and their receipts', [
  read('list <slug>', 'the latest erasures of a tenant', path, {
    query: () => ({ limit: 100 }),
    columns: [
      ['ERASURE', 'erasure_id'],
      ['SUBJECT', ({ subject }) => `${subject.kind} ${subject.sha256.slice(0, 12)}`],
      ['STATE', 'state'],
      ['REQUESTED', ({ created_at }) => created_at],
      ['BY', 'requested_by'],
    ],
    empty: 'No erasure was requested.',
  }),
  read(
    'show <slug> <erasure_id>',
    'how far an erasure is, and its receipt',
    `${path}/{erasure_id}`,
    { text: toErasureText },
  ),
])

async function awaitReceipt(context: CliContext, requested: Erasure): Promise<ErasureReceipt> {
  const { tenant_id: tenantId, erasure_id: id } = requested
  for (let erasure = requested; ; ) {
    if (erasure.receipt !== null) return erasure.receipt
    if (erasure.problem !== null) {
      const next =
        erasure.state === 'failed'
          ? ''
          : ` It is tried again by itself; \`di erasures show ${tenantId} ${id}\` shows it.`
      throw new CliError(`${erasure.problem}${next}`)
    }
    await sleep(pollMs)
    const shown = `${toTenantPath(tenantId)}/erasures/${id}`
    erasure = (await context.adminFetch('GET', shown)) as Erasure
  }
}

function toErasureText(erasure: Erasure): string {
  if (erasure.receipt !== null) return toReceiptText(erasure.receipt)
  const { subject, progress, problem } = erasure
  const fields = toFields({
    tenant_id: erasure.tenant_id,
    subject: `a ${subject.kind}, SHA-256 ${subject.sha256}`,
    state: erasure.state,
    requested_by: erasure.requested_by,
    created_at: erasure.created_at,
    ...(problem === null ? {} : { problem }),
  })
  const rows = progress.map(({ store, state, rows }) => [store, state, String(rows ?? '-')])
  return [fields, toTable(['STORE', 'STATE', 'ROWS'], rows)].join('\n\n')
}

function toReceiptText(receipt: ErasureReceipt): string {
  const { subject, counts, notes } = receipt
  const fields = toFields({
    tenant_id: receipt.tenant_id,
    erased: `a ${subject.kind}, SHA-256 ${subject.sha256}`,
    started_at: receipt.started_at,
    finished_at: receipt.finished_at,
  })
  const rows = Object.entries(counts).map(([store, { before, after }]) => [
    store,
    String(before),
    String(after),
  ])
  const table = toTable(['STORE', 'BEFORE', 'AFTER'], rows)
  const all = [...toMentionTexts(receipt.kept_mentions), ...notes]
  return [fields, table, all.map((note) => `- ${note}`).join('\n')].join('\n\n')
}

function toMentionTexts({ events, others }: ErasureReceipt['kept_mentions']): string[] {
  const hold = 'of other devices or users hold the text of the id in a free field and are kept'
  return [
    events === null
      ? `Not counted, there are too many: events ${hold}.`
      : `${events} events ${hold}.`,
    ...others.map(({ place, rows }) =>
      rows === null
        ? `${place} was not searched for the id: it has too many rows.`
        : `${place} has the id in ${rows} ${rows === 1 ? 'row' : 'rows'} about others, which stay.`,
    ),
  ]
}
