/** `di phones ...`: the installs of a phone with the evidence, and corrections of them. */
import { Option } from 'commander'
import { type Answer, change, group, read } from '../commands.ts'
import { type Column, toColumns, toFields, toTime } from '../tables.ts'

const pagePath = '/tenants/{tenant_id}/phones/{phone_id}'
const correctionsPath = '/tenants/{tenant_id}/phone-corrections'
const undoPath = `${correctionsPath}/{correction_id}/undo` as const

type Page = Answer<typeof pagePath>
type Install = Page['phone']['installs'][number]
type User = Page['phone']['users'][number]
type Correction = Page['corrections'][number]

const reason = new Option('--reason <text>', 'why, for the audit log').makeOptionMandatory()

export const phones = group('phones', 'phones: which installs are on one', [
  read('show <slug> <phone-id>', 'installs with evidence, users and corrections', pagePath, {
    text: toPageText,
  }),
  change(
    'split <slug> <device-id>',
    'make an install a phone of its own',
    ['post', correctionsPath],
    {
      options: [reason],
      body: ({ reason }: { reason: string }, [, device_id]) => ({
        device_id,
        phone_id: null,
        reason,
      }),
      text: toCorrectionText,
    },
  ),
  change(
    'join <slug> <device-id> <phone-id>',
    'put an install on a phone',
    ['post', correctionsPath],
    {
      options: [reason],
      body: ({ reason }: { reason: string }, [, device_id, phone_id]) => ({
        device_id,
        phone_id,
        reason,
      }),
      text: toCorrectionText,
    },
  ),
  change('undo <slug> <correction-id>', 'take a correction back', ['post', undoPath], {
    text: toCorrectionText,
  }),
])

const installColumns: readonly Column<Install>[] = [
  ['INSTALL', 'device_id'],
  ['LINK', 'link'],
  ['CONFIDENCE', 'confidence'],
  ['FIRST SEEN', 'first_seen_at'],
  ['LAST SEEN', 'last_seen_at'],
  ['RISK', 'risk_score'],
  ['EVIDENCE', toEvidenceText],
]

const userColumns: readonly Column<User>[] = [
  ['USER', 'user_id'],
  ['INSTALLS', 'installs'],
  ['LAST SEEN', 'last_seen_at'],
]

const correctionColumns: readonly Column<Correction>[] = [
  ['CORRECTION', 'correction_id'],
  ['KIND', 'kind'],
  ['INSTALL', 'device_id'],
  ['PHONE', 'phone_id'],
  ['AT', ({ at }) => toTime(at)],
  ['BY', 'by'],
  ['UNDONE', ({ undone_at: at }) => (at === null ? '-' : toTime(at))],
]

/** What weighs most first: `identifier keychain_id +9.5, boot -0.5`. */
function toEvidenceText({ evidence }: Install): string {
  const weighed = evidence.toSorted((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
  const texts = weighed.map(
    ({ field, weight }) => `${field} ${weight < 0 ? '' : '+'}${weight.toFixed(1)}`,
  )
  return texts.join(', ') || '-'
}

function toPageText({ phone, alerts, corrections }: Page): string {
  const tables = [
    toColumns(installColumns, phone.installs),
    ...(phone.users.length === 0 ? [] : [toColumns(userColumns, phone.users)]),
    ...(corrections.length === 0 ? [] : [toColumns(correctionColumns, corrections)]),
  ]
  const fields = toFields({
    phone_id: phone.phone_id,
    first_seen: toTime(phone.first_seen_at),
    last_seen: toTime(phone.last_seen_at),
    risk_score: phone.risk_score,
    installs: phone.installs_total,
    users: phone.users_total,
    alerts: alerts.total,
  })
  return [fields, ...tables].join('\n\n')
}

function toCorrectionText(correction: Correction): string {
  const { correction_id, kind, device_id, phone_id, undone_at } = correction
  return toFields({
    correction_id,
    kind,
    device_id,
    phone_id,
    undone: undone_at === null ? undefined : toTime(undone_at),
  })
}
