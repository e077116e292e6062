/** `di requests`, `di signature check` and `di telemetry check`: what is wrong with submissions. */
import { Option } from 'commander'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { checkTelemetry, type TelemetryCheck } from '#shared/core/telemetry/check-telemetry.ts'
import { type Answer, command, group, limit, read, toPath } from './commands.ts'
import { CliError, readInputFile } from './context.ts'
import { type Column, toColumns, toTime } from './tables.ts'

const signaturePath = '/tenants/{tenant_id}/signature-check'

type Requests = Answer<'/tenants/{tenant_id}/requests'>
type SignatureCheck = Answer<typeof signaturePath, 'post'>
type SignatureOptions = { body: string; signature: string }

export const requests = read(
  'requests <slug>',
  'the latest submissions of a tenant with their answers, from every edge',
  '/tenants/{tenant_id}/requests',
  {
    options: [['--refused', 'refused ones alone'], limit(50)],
    query: (options: { refused?: true; limit: number }) => {
      return { outcome: options.refused ? 'refused' : 'all', limit: options.limit }
    },
    text: toRequestsText,
  },
)

export const signature = group('signature', 'find out why a signature is refused', [
  command<SignatureOptions>(
    'check <slug>',
    'check a signature of a body with the secrets of a tenant',
    [
      new Option('--body <file>', 'the body, exactly as it was sent').makeOptionMandatory(),
      new Option('--signature <value>', 'the value of X-Service-Signature').makeOptionMandatory(),
    ],
    async (context, args, { body, signature }) => {
      const body_base64 = readInputFile(context, body).toString('base64')
      const path = toPath(signaturePath, args)
      const check = await context.adminFetch('POST', path, { body_base64, signature })
      context.out(check as SignatureCheck, toSignatureText)
    },
  ),
])

export const telemetry = group('telemetry', 'check submissions without sending them', [
  command(
    'check <file>',
    'what the edge would say of a body: errors, warnings, the default score',
    [],
    (context, [file]) => {
      const check = checkTelemetry(readInputFile(context, file!), Date.now())
      context.out(check, toTelemetryText)
      if (check.status !== 200) throw new CliError(`The answer would be ${check.status}.`)
    },
  ),
])

function toRequestsText({ data, silent_edges: silent }: Requests): string {
  const notes = silent.map((edge) => `Edge ${edge} did not answer; its submissions are missing.`)
  if (data.some(({ verified }) => !verified)) {
    notes.push('Texts after ? are not verified: anyone may have sent them.')
  }
  const table =
    data.length === 0 ? 'The edges remember no submissions.' : toColumns(requestColumns, data)
  return [table, ...notes].join('\n')
}

type Submission = Requests['data'][number]

const showGiven = ({ verified }: Submission, text: string | null) =>
  text === null ? null : `${verified ? '' : '? '}${text}`

const requestColumns: readonly Column<Submission>[] = [
  ['AT', ({ at }) => toTime(at)],
  ['KIND', 'kind'],
  ['ANSWER', ({ status, code }) => `${status} ${code}`],
  ['WHY', (one) => one.reason ?? `${one.rasp_score} ${one.rasp_action}`],
  ['DEVICE', (one) => showGiven(one, one.device_id)],
  ['SDK', (one) => showGiven(one, one.sdk_version)],
  ['EDGE', 'edge_id'],
  ['REQUEST', 'request_id'],
  ['EVENT', (one) => one.event_id ?? one.detail],
]

function toSignatureText(check: SignatureCheck): string {
  const { valid, signature_form: form, received, findings, body_errors: errors } = check
  return [
    valid ? 'The signature is right.' : 'The signature is refused.',
    `Form: ${form}`,
    `Body: ${received.bytes} bytes, SHA-256 ${received.sha256}`,
    ...findings.map(({ code, text }) => `- ${text} (${code})`),
    ...errors.map(({ path, message }) => `- ${toVisible(path)} ${toVisible(message)}`),
  ].join('\n')
}

function toTelemetryText({ score, errors, warnings }: TelemetryCheck): string {
  const lines = [...errors, ...warnings].map(({ path, message }) => {
    return `- ${toVisible(path)} ${toVisible(message)}`
  })
  if (score === null) return ['The body is refused.', ...lines].join('\n')
  const { rasp_score, rasp_action, flags } = score
  const result = `Score ${rasp_score}, ${rasp_action} under the default policy`
  const first = flags.length === 0 ? `${result}.` : `${result}: ${flags.join(', ')}.`
  return ['The body is accepted.', first, ...lines].join('\n')
}
