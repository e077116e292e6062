/** `di cases ...`: the queue of cases, one case, the next one, and judging it. */
import { Option } from 'commander'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { caseFilterSchema, caseSorts } from '#shared/core/cases/case-schemas.ts'
import { type Answer, change, cursor, group, limit, read } from '../commands.ts'
import { CliError } from '../context.ts'
import { toFields, toTime } from '../tables.ts'

type Case = Answer<'/cases/{case_id}'>['case']
type Values = Record<string, string | number | undefined>

/** The option of each filter: `--min-risk` for `min_risk`. */
const filters = Object.entries(caseFilterSchema.shape).map(([name, schema]) => {
  const about = schema.description ?? name.replaceAll('_', ' ')
  return { name, option: new Option(`--${name.replaceAll('_', '-')} <value>`, about) }
})
const filterOptions = filters.map(({ option }) => option)
const sort = new Option('--sort <order>', 'which comes first').choices([...caseSorts])

const toFilter = (values: Values): Values =>
  Object.fromEntries(
    filters
      .map(({ name, option }) => [name, values[option.attributeName()]])
      .filter(([, value]) => value !== undefined),
  )

type JudgeOptions = {
  note?: string
  label?: string
  allow?: true
  deny?: true
  reason?: string
  expires?: string
  expectedVersion?: string
}

const nextCase = ['post', '/tenants/{tenant_id}/cases/next'] as const

export const cases = group('cases', 'settle the alerts of a phone, a device or a user together', [
  read('list <slug>', 'list the cases of a tenant', '/tenants/{tenant_id}/cases', {
    options: [...filterOptions, sort, limit(50), cursor],
    query: ({ limit, cursor, sort, ...values }: Values) => ({
      limit,
      cursor,
      sort,
      ...toFilter(values),
    }),
    columns: [
      ['CASE', 'case_id'],
      ['SUBJECT', toSubject],
      ['STATE', toState],
      ['ALERTS', ({ open_alerts, alerts }) => `${open_alerts} of ${alerts} open`],
      ['RISK', ({ action, risk_score }) => `${action} ${risk_score}`],
      ['DUE', ({ due_at, breached }) => toDue(due_at, breached)],
      ['ASSIGNEE', 'assignee'],
      ['FLAGS', ({ flags }) => flags.map(({ code }) => code).join(', ')],
    ],
    empty: 'There are no such cases.',
    note: ({ next_cursor: next }) => (next === null ? '' : `More: --cursor ${next}`),
  }),
  read('show <case-id>', 'show one case: whom it is about, notes, history', '/cases/{case_id}', {
    text: toDetailText,
  }),
  change('next <slug>', 'lease the next free case', nextCase, {
    options: [...filterOptions.filter((one) => one.attributeName() !== 'state'), sort],
    body: ({ sort, ...values }: Values) => ({ filter: toFilter(values), sort }),
    text: ({ case: one }) => (one === null ? 'No case of this queue is free.' : toCaseText(one)),
  }),
  change(
    'judge <case-id> <disposition>',
    `judge the open alerts of a case: ${dispositions.filter((one) => one !== 'OPEN').join(', ')}`,
    ['post', '/cases/{case_id}/judgement'],
    {
      options: [
        ['--note <text>', 'why; kept with the change of each alert'],
        ['--label <code>', 'label its devices or its user, such as chargeback'],
        ['--allow', 'put its devices or its user on the allow list'],
        ['--deny', 'put its devices or its user on the deny list'],
        ['--reason <code>', 'why they are on the list, as a code'],
        ['--expires <time>', 'when the entry ends, such as 2026-12-31'],
        ['--expected-version <n>', 'judge nothing when its alerts changed since this version'],
      ],
      body: toJudgement,
      text: ({ case: one, judged, label_ids: labels, entry_ids: entries }) =>
        `${toCaseText(one)}\n\n${judged} alerts judged, ${labels.length} labels and ` +
        `${entries.length} list entries added.`,
    },
  ),
])

function toJudgement(options: JudgeOptions, [, disposition]: readonly (string | undefined)[]) {
  const { note, label, allow, deny, reason, expires, expectedVersion } = options
  if (allow && deny) throw new CliError('Give one of --allow and --deny.')
  if ((allow || deny) && reason === undefined) throw new CliError('Give --reason CODE.')
  const list = { list: allow ? 'allow' : 'deny', reason, expires_at: expires }
  return {
    disposition: disposition!.toUpperCase(),
    note,
    ...(label === undefined ? {} : { label: { label } }),
    ...(allow || deny ? { list } : {}),
    ...(expectedVersion === undefined ? {} : { expected_version: Number(expectedVersion) }),
  }
}

function toSubject({ subject }: Pick<Case, 'subject'>): string {
  return `${subject.kind} ${subject.id}`
}

function toState({ state, snoozed_until: until }: Pick<Case, 'state' | 'snoozed_until'>): string {
  return until === null ? state : `${state}, snoozed until ${toTime(until)}`
}

function toDue(at: string | null, breached: boolean): string {
  return at === null ? '-' : `${toTime(at)}${breached ? ' (overdue)' : ''}`
}

function toCaseText(one: Omit<Case, 'money' | 'here'>): string {
  return toFields({
    case_id: one.case_id,
    subject: toSubject(one),
    state: toState(one),
    alerts: `${one.open_alerts} of ${one.alerts} open`,
    risk: `${one.action} ${one.risk_score}`,
    flags: one.flags.map(({ code, alerts }) => `${code} (${alerts})`).join(', '),
    first_alert_at: toTime(one.first_alert_at),
    latest_alert_at: toTime(one.latest_alert_at),
    due_at: toDue(one.due_at, one.breached),
    assignee: one.assignee ?? '-',
    judged_by: one.judged_by ?? '-',
    leased_by: one.leased_by ?? '-',
    version: String(one.version),
  })
}

function toDetailText({ case: one, devices, users, notes, history }: Answer<'/cases/{case_id}'>) {
  const money = one.money.map(({ amount, currency }) => `${amount} ${currency}`).join(', ')
  return [
    toCaseText(one),
    ...(money === '' ? [] : [`Lost by its labels: ${money}`]),
    `Devices: ${devices.map(toVisible).join(', ')}`,
    ...(users.length === 0 ? [] : [`Users: ${users.map(toVisible).join(', ')}`]),
    ...history.map(({ at, actor, kind, details }) =>
      toVisible(`${toTime(at)}  ${kind} by ${actor} ${JSON.stringify(details)}`),
    ),
    ...notes.map(({ at, author, note }) => toVisible(`${toTime(at)}  ${author}: ${note}`)),
  ].join('\n')
}
