import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Summary } from '../../deploy/fleet/check/summary.ts'
import type { TestStack } from '../support/process/stack.ts'

const cli = fileURLToPath(new URL('../../services/console/cli.ts', import.meta.url))

/**
 * Runs `di fleet` with always the same seed against a local stack; it receives the webhooks too.
 * @returns its summary, once it has checked that everything is in place
 */
export async function runFleetCommand(
  { dataDir }: TestStack,
  fleet: { rate: number; devices: number; seconds: number },
): Promise<Summary> {
  const { rate, devices, seconds } = fleet
  const size = ['--rate', `${rate}`, '--devices', `${devices}`, '--duration', `${seconds}`]
  const child = spawn(
    process.execPath,
    [cli, 'fleet', '--json', '--receive', '--seed', '1', ...size],
    { env: { ...process.env, DATA_DIR: dataDir }, stdio: ['ignore', 'pipe', 'ignore'] },
  )
  const ended = once(child, 'close')
  const summary = (await json(child.stdout)) as Summary
  await ended
  return summary
}
