/** Programs that sign and send telemetry, for the reference page. Tests run the same files. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../../ingest/examples')

const samples = [
  ['Python', 'python', 'send_telemetry.py'],
  ['Java', 'java', 'SendTelemetry.java'],
  ['Go', 'go', 'send_telemetry.go'],
  ['C#', 'csharp', 'SendTelemetry.cs'],
  ['PHP', 'php', 'send_telemetry.php'],
] as const

/** @returns the programs as markdown, each one folded */
export function readSigningSamples(): string {
  const programs = samples.map(([language, fence, file]) => {
    const text = readFileSync(join(folder, file), 'utf8').trimEnd()
    const code = `\`\`\`${fence}\n${text}\n\`\`\``
    return `<details><summary>${language}</summary>\n\n${code}\n\n</details>`
  })
  return `Programs that sign and send:\n\n${programs.join('\n\n')}`
}
