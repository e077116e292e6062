/** The reasons of rejected evidence for readers, from the table that is in force. */
import { attestationReasons } from '#shared/core/attestation/reasons.ts'
import { toMarkdown } from './markdown-table.ts'

const head = `<!-- Made by \`npm run generate\` from reasons.ts: do not edit. -->

# Why evidence is rejected

The first failed step names the reason. The steps are in [README.md](README.md).
`

/** @returns the text of `shared/core/attestation/REASONS.md` */
export function renderAttestationReasons(): string {
  const rows = Object.entries(attestationReasons).map(([code, { meaning, advice }]) => [
    `\`${code}\``,
    meaning,
    advice,
  ])
  return `${head}\n${toMarkdown(['reason', 'what it means', 'what to do'], rows)}\n`
}
