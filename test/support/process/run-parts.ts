/** Runs the parts of a command one after another, each in a process of its own. */
import { spawnSync } from 'node:child_process'

export type RunPart = {
  /** The part with its options. */
  name: string
  startedAt: Date
  tookMs: number
  /** Its exit status was 0. */
  ok: boolean
}

/**
 * @param command as a person types it, for the heading of each part
 * @param file the script, which gets the words of the part
 */
export function* runParts(
  command: string,
  file: string,
  parts: readonly (readonly string[])[],
): Generator<RunPart> {
  for (const part of parts) {
    const name = part.join(' ')
    process.stdout.write(`\n=== ${command} ${name}\n`)
    const startedAt = new Date()
    const startedMs = performance.now()
    const { status } = spawnSync(process.execPath, [file, ...part], { stdio: 'inherit' })
    yield { name, startedAt, tookMs: performance.now() - startedMs, ok: status === 0 }
  }
  process.stdout.write('\n')
}
