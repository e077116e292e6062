/** `di erase`: a device or a user, from every store. */
import type { Command } from 'commander'
import type { ErasureReceipt, KeptMentions } from '../erasure/erase.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toFields, toTable } from './tables.ts'

/** Mutations of large tables take long; fetch itself waits no longer for a response. */
const requestMaxMs = 5 * 60 * 1000

/** Adds the command `erase`. */
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
      const receipt = await context.adminFetch(
        'POST',
        `${toTenantPath(slug)}/erasures`,
        device === undefined ? { user_id: user } : { device_id: device },
        { timeoutMs: requestMaxMs },
      )
      context.out(receipt as ErasureReceipt, toReceiptText)
    })
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
