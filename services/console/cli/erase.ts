/** `di erase` and `di erasures`: a device or a user, from every store, and the receipts. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Erasure, ErasureReceipt, KeptMentions } from '#shared/io/erasure/erasure-job-store.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toFields, toTable } from './tables.ts'

const pollMs = 500

/** Adds the commands `erase` and `erasures`. */
export function registerErase(program: Command, context: CliContext): void {
  program
    .command('erase <slug>')
    .description('erase a device or a user of a tenant from every store; cannot be undone')
    .option('--device <id>', 'everything of this device')
    .option('--user <id>', 'everything of this user or account, on all devices')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: { device?: string; user?: string }) => {
      const { device, user } = options
      if ((device === undefined) === (user === undefined)) {
        throw new CliError('Give one of --device ID and --user ID.')
      }
      const subject = device === undefined ? { user_id: user } : { device_id: device }
      const path = `${toTenantPath(slug)}/erasures`
      const requested = (await context.adminFetch('POST', path, {
        ...subject,
        wait: false,
      })) as Erasure
      context.out(await awaitReceipt(context, requested), toReceiptText)
    })
  const erasures = program.command('erasures').description('requested erasures and their receipts')
  erasures
    .command('list <slug>')
    .description('the latest erasures of a tenant')
    .option('--json', 'print one JSON document')
    .action(async (slug: string) => {
      const answer = await context.adminFetch('GET', `${toTenantPath(slug)}/erasures?limit=100`)
      context.out(answer as { data: Erasure[] }, ({ data }) => toListText(data))
    })
  erasures
    .command('show <slug> <erasure_id>')
    .description('how far an erasure is, and its receipt')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, id: string) => {
      const path = `${toTenantPath(slug)}/erasures/${encodeURIComponent(id)}`
      context.out((await context.adminFetch('GET', path)) as Erasure, toErasureText)
    })
}

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
    const path = `${toTenantPath(tenantId)}/erasures/${id}`
    erasure = (await context.adminFetch('GET', path)) as Erasure
  }
}

function toListText(erasures: Erasure[]): string {
  if (erasures.length === 0) return 'No erasure was requested.'
  return toTable(
    ['ERASURE', 'SUBJECT', 'STATE', 'REQUESTED', 'BY'],
    erasures.map((one) => [
      one.erasure_id,
      `${one.subject.kind} ${one.subject.sha256.slice(0, 12)}`,
      one.state,
      one.created_at,
      one.requested_by,
    ]),
  )
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
  const all = [toMentionsText(receipt.kept_mentions), ...notes]
  return [fields, table, all.map((note) => `- ${note}`).join('\n')].join('\n\n')
}

function toMentionsText({ events }: KeptMentions): string {
  const hold = 'of other devices or users hold the text of the id in a free field and are kept'
  return events === null
    ? `Not counted, there are too many: events ${hold}.`
    : `${events} events ${hold}.`
}
