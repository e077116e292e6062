/** `di labels ...`: what devices, users, sessions and events turned out to be. */
import { Option } from 'commander'
import {
  labelFaultsShown,
  labelFileBytesMax,
  labelsPageMax,
  labelsPerCallMax,
} from '#shared/core/base/limits/outcomes.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { type Outcome, outcomes } from '#shared/core/outcomes/labels.ts'
import {
  type Answer,
  change,
  command,
  cursor,
  group,
  limit,
  read,
  toMore,
  toPath,
} from '../commands.ts'
import { type CliContext, CliError, readTextFile } from '../context.ts'
import { toFields } from '../tables.ts'
import { type LabelFault, labelColumns, readLabelFile } from './label-file.ts'

const path = '/tenants/{tenant_id}/labels'
const codesPath = `${path}/codes` as const

type Listed = Answer<typeof path>
type Label = Listed['data'][number]
type Code = Answer<typeof codesPath>['data'][number]
type Filters = Partial<Record<'device' | 'user' | 'session' | 'event' | 'external', string>> & {
  label?: string
  from?: string
  to?: string
  limit: number
  cursor?: string
}

export const labels = group('labels', 'what turned out to be fraud, and what did not', [
  command<{ dryRun?: true }>(
    'import <slug> <file>',
    `add the labels of a CSV file with these columns: ${labelColumns.join(', ')}`,
    [['--dry-run', 'check every line and add nothing']],
    importFile,
  ),
  read('list <slug>', 'list labels, newest first, superseded ones included', path, {
    options: [
      ['--device <id>', 'of this device'],
      ['--user <id>', 'of this user or account'],
      ['--session <id>', 'of this session'],
      ['--event <id>', 'of this event'],
      ['--label <code>', 'with this label'],
      ['--external <id>', 'with this external id'],
      ['--from <time>', 'received at this time or later'],
      ['--to <time>', 'received before this time'],
      limit(labelsPageMax),
      cursor,
    ],
    query: ({ device, user, session, event, external, ...rest }: Filters) => ({
      ...rest,
      device_id: device,
      user_id: user,
      session_id: session,
      event_id: event,
      external_id: external,
    }),
    columns: [
      ['RECEIVED', 'created_at'],
      ['LABEL', ({ label, is_latest: isLatest }) => `${label}${isLatest ? '' : ' (superseded)'}`],
      ['OF', toSubjectText],
      ['OCCURRED', 'occurred_at'],
      ['AMOUNT', ({ amount, currency }) => (amount === null ? '' : `${amount} ${currency}`)],
      ['CASE', 'external_id'],
      ['BY', 'actor'],
    ],
    empty: 'There are no such labels.',
    note: toMore,
  }),
  group('codes', 'the codes that a label may have', [
    read('list <slug>', 'list the codes, with what each means', codesPath, {
      columns: [
        ['CODE', 'code'],
        ['MEANS', ({ means }: Code) => means ?? '-'],
        ['DECLARED', ({ is_declared: isDeclared }: Code) => (isDeclared ? 'yes' : '-')],
      ],
      empty: '',
    }),
    command<{ means: Outcome }>(
      'add <slug> <code>',
      'declare a code, with what a label of it counts as',
      [
        new Option('--means <outcome>', 'what it counts as')
          .choices(outcomes)
          .makeOptionMandatory(),
      ],
      async (context, [slug, code], { means }) => {
        const of = toPath(`${codesPath}/{code}`, [slug, code])
        context.out((await context.adminFetch('PUT', of, { means })) as Code, toFields)
      },
    ),
    change(
      'remove <slug> <code>',
      'remove a code; its labels stay',
      ['delete', `${codesPath}/{code}`],
      {
        text: ({ code }) => `New labels cannot have the code ${code} now.`,
      },
    ),
  ]),
])

function toSubjectText({ subject }: Label): string {
  const [[name, id] = ['', '']] = Object.entries(subject)
  return `${name.replace('_id', '')} ${id}`
}

async function importFile(
  context: CliContext,
  [slug, file]: readonly (string | undefined)[],
  { dryRun }: { dryRun?: true },
): Promise<void> {
  const text = await readTextFile(context, file!)
  if (Buffer.byteLength(text) > labelFileBytesMax) {
    throw new CliError(`${file} is larger than ${labelFileBytesMax / 2 ** 20} MiB: split it.`)
  }
  const known = (await context.adminFetch('GET', toPath(codesPath, [slug]))) as Answer<
    typeof codesPath
  >
  const codes = new Map(
    known.data.flatMap(({ code, means }) => (means === null ? [] : [[code, means]])),
  )
  const check = { nowMs: Date.now(), codes }
  const { labels: found, faults } = readLabelFile(text, check)
  const valid = found.length
  if (dryRun) context.out({ valid, faults }, () => toCheckText(valid, faults))
  if (faults.length > 0) {
    throw new CliError(
      `${dryRun ? '' : `${toFaultsText(faults)}\n\n`}Nothing was added: ${faults.length} faults.`,
    )
  }
  if (dryRun) return
  for (let at = 0; at < valid; at += labelsPerCallMax) {
    const some = found.slice(at, at + labelsPerCallMax)
    try {
      await context.adminFetch('POST', toPath(path, [slug]), some)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      const added = `${at} of ${valid} labels were added; to import the file again is safe.`
      throw new CliError(`${error.message}\n${added}`, { cause: error })
    }
  }
  context.out({ tenant_id: slug!, added: valid }, toFields)
}

const toCheckText = (valid: number, faults: readonly LabelFault[]): string =>
  faults.length === 0 ? `${valid} labels, no faults.` : toFaultsText(faults)

function toFaultsText(faults: readonly LabelFault[]): string {
  const shown = faults.slice(0, labelFaultsShown).map(({ line, column, message }) => {
    return toVisible(`line ${line}: ${column === '' ? '' : `${column} `}${message}`)
  })
  const more = faults.length - shown.length
  return [...shown, ...(more === 0 ? [] : [`... and ${more} more`])].join('\n')
}
