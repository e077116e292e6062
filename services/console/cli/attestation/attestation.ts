/**
 * `di attestation ...`: how far a fleet attests; and `check`, the steps by which evidence of a phone
 * is verified, and the one that fails. It runs the code of the service on a file, without a stack.
 */
import { Option } from 'commander'
import { attestationReasons } from '#shared/core/attestation/reasons.ts'
import { type AttestationCheck, attestationProviders } from '#shared/core/attestation/steps.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { command, group } from '../commands.ts'
import { toFields, toTable } from '../tables.ts'
import type { CheckOptions } from './check-file.ts'
import { coverage } from './coverage.ts'

export const attestation = group(
  'attestation',
  'how far a fleet attests, and why a phone is refused',
  [
    command<CheckOptions>(
      'check <file>',
      'verify evidence step by step: a chain in PEM, an App Attest object, a Play ' +
        'token, or the evidence of a registration in JSON',
      [
        new Option('--provider <provider>', 'instead of recognising it').choices(
          attestationProviders,
        ),
        ['--tenant <slug>', 'judges the app as well, by the apps of this tenant: asks the console'],
        ['--challenge <base64>', 'the challenge that it must be for; else reported, not judged'],
        ['--body <file>', 'the body that an assertion signs, or that a Play token is for'],
        ['--at <time>', 'the moment to check at, as 2026-01-02T03:04:05Z; now by default'],
        ['--status <file>', 'the list of revoked certificates that Android publishes'],
        [
          '--public-key <file>',
          'the attested key of an assertion: PEM, or DER as it is or in base64',
        ],
        ['--keys <file>', 'Play: {"decryption_key":"BASE64","verification_key":"BASE64"}'],
      ],
      async (context, [file], options) => {
        // Its libraries are loaded for this command alone.
        const { checkFile } = await import('./check-file.ts')
        context.out(await checkFile(context, file!, options), toCheckText)
      },
    ),
    coverage,
  ],
)

function toCheckText({ provider, verdict, reason, level, facts, steps }: AttestationCheck): string {
  const rows = steps.map(({ step, ok, detail }) => [ok ? 'ok' : 'FAILED', step, detail])
  const unjudged = (facts.not_judged as string[]).join(', ')
  const { not_judged: _, ...shown } = facts
  return [
    toFields({
      provider,
      verdict: reason === null ? verdict : `${verdict}: ${reason}`,
      level,
      why: reason === null ? undefined : attestationReasons[reason].meaning,
      'what to do': reason === null ? undefined : attestationReasons[reason].advice,
      'not judged': unjudged === '' ? undefined : unjudged,
    }),
    toTable(['', 'STEP', 'DETAIL'], rows),
    `FACTS\n${toFactLines(shown).join('\n')}`,
  ].join('\n\n')
}

/** Members of members are indented; lists of plain values are on one line. */
function toFactLines(facts: Record<string, unknown>, indent = '  '): string[] {
  return Object.entries(facts).flatMap(([name, value]) => {
    const isNested = typeof value === 'object' && value !== null && !isPlainList(value)
    if (!isNested) return [`${indent}${name}: ${toVisible(toPlain(value))}`]
    return [`${indent}${name}:`, ...toFactLines(value as Record<string, unknown>, `${indent}  `)]
  })
}

const isPlainList = (value: object): boolean =>
  Array.isArray(value) && value.every((entry) => typeof entry !== 'object')

const toPlain = (value: unknown): string =>
  Array.isArray(value) ? value.join(', ') : String(value)
