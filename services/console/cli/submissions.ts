/** `di requests`, `di signature check` and `di telemetry check`: what is wrong with submissions. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { checkTelemetry, type TelemetryCheck } from '#shared/core/telemetry/check-telemetry.ts'
import type { SignatureCheck } from '#shared/core/telemetry/signature-check.ts'
import type { Requests } from '../tenants/request-log-routes.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toLimit } from './deliveries.ts'
import { toTable, toTime } from './tables.ts'

const json = ['--json', 'print one JSON document'] as const

/** Adds `requests` and the groups `signature` and `telemetry`. */
export function registerSubmissions(program: Command, context: CliContext): void {
  addRequests(program, context)
  program
    .command('signature')
    .description('find out why a signature is refused')
    .command('check <slug>')
    .description('check a signature of a body with the secrets of a tenant')
    .requiredOption('--body <file>', 'the body, exactly as it was sent')
    .requiredOption('--signature <value>', 'the value of X-Service-Signature')
    .option(...json)
    .action(async (slug: string, options: { body: string; signature: string }) => {
      const body = {
        body_base64: readFile(context, options.body).toString('base64'),
        signature: options.signature,
      }
      const check = await context.adminFetch('POST', `${toTenantPath(slug)}/signature-check`, body)
      context.out(check as SignatureCheck, toSignatureText)
    })
  program
    .command('telemetry')
    .description('check submissions without sending them')
    .command('check <file>')
    .description('what the edge would say of a body: errors, warnings, the default score')
    .option(...json)
    .action((file: string) => {
      const check = checkTelemetry(readFile(context, file), Date.now())
      context.out(check, toTelemetryText)
      if (check.status !== 200) throw new CliError(`The answer would be ${check.status}.`)
    })
}

function addRequests(program: Command, context: CliContext): void {
  program
    .command('requests <slug>')
    .description('the latest submissions of a tenant with their answers, from every edge')
    .option('--refused', 'refused ones alone')
    .option('--limit <n>', 'at most this many', toLimit, 50)
    .option(...json)
    .action(async (slug: string, options: { refused?: true; limit: number }) => {
      const outcome = options.refused ? 'refused' : 'all'
      const path = `${toTenantPath(slug)}/requests?outcome=${outcome}&limit=${options.limit}`
      context.out((await context.adminFetch('GET', path)) as Requests, toRequestsText)
    })
}

function toRequestsText({ data, silent_edges: silent }: Requests): string {
  const notes = silent.map((edge) => `Edge ${edge} did not answer; its submissions are missing.`)
  if (data.some(({ verified }) => !verified)) {
    notes.push('Texts after ? are not verified: anyone may have sent them.')
  }
  const rows = data.map((row) => {
    const show = (text: string | null) => {
      return text === null ? '-' : `${row.verified ? '' : '? '}${text}`
    }
    return [
      toTime(row.at),
      `${row.status} ${row.code}`,
      row.reason ?? `${row.rasp_score} ${row.rasp_action}`,
      show(row.device_id),
      show(row.sdk_version),
      row.edge_id,
      row.request_id,
      row.event_id ?? row.detail ?? '-',
    ]
  })
  const head = ['AT', 'ANSWER', 'WHY', 'DEVICE', 'SDK', 'EDGE', 'REQUEST', 'EVENT']
  const table = rows.length === 0 ? 'The edges remember no submissions.' : toTable(head, rows)
  return [table, ...notes].join('\n')
}

/** Reads a file, relative to the folder in which npm was called. */
function readFile({ env }: CliContext, file: string): Buffer {
  try {
    return readFileSync(resolve(env.INIT_CWD ?? '.', file))
  } catch (error) {
    throw new CliError(`${file} cannot be read`, { cause: error })
  }
}

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
