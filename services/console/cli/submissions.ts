/** `di signature check` and `di telemetry check`: what is wrong with a submission. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { checkTelemetry, type TelemetryCheck } from '#shared/core/telemetry/check-telemetry.ts'
import type { SignatureCheck } from '#shared/core/telemetry/signature-check.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toVisible } from './tables.ts'

const json = ['--json', 'print one JSON document'] as const

/** Adds the groups `signature` and `telemetry`. */
export function registerSubmissions(program: Command, context: CliContext): void {
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
