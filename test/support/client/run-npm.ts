// npm as a person calls it: without what `npm test` sets for its own scripts.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/.test(name)))

/** @returns what it prints */
export async function runNpm(args: readonly string[], cwd: string): Promise<string> {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier']
  const { stdout } = await promisify(execFile)('npm', [...args, ...quiet], { cwd, env })
  return stdout.trim()
}
